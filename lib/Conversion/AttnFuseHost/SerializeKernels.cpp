//===- SerializeKernels.cpp - Attention kernels to PTX in a gpu.binary ----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Target/PTX/TranslateToPTX.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSESERIALIZEKERNELSPASS
#include "attnfuse/Conversion/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
struct SerializeKernelsPass
    : attnfuse::impl::AttnFuseSerializeKernelsPassBase<SerializeKernelsPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    AttnFuseSerializeKernelsPassBase::getDependentDialects(registry);
    registerPTXTranslations(registry);
  }

  void runOnOperation() override {
    gpu::GPUModuleOp kernels;
    for (auto candidate : getOperation().getOps<gpu::GPUModuleOp>()) {
      if (!candidate->hasAttr(kManifestAttrName))
        continue;
      if (kernels) {
        candidate
                .emitError("expected all kernels in one gpu.module; run "
                           "attnfuse-merge-kernels first")
                .attachNote(kernels.getLoc())
            << "the first is here";
        return signalPassFailure();
      }
      kernels = candidate;
    }
    if (!kernels)
      return markAllAnalysesPreserved();
    if (failed(serialize(kernels)))
      signalPassFailure();
  }

  LogicalResult serialize(gpu::GPUModuleOp kernels) {
    auto fail = [&](llvm::Error error) {
      return kernels.emitError(llvm::toString(std::move(error)));
    };
    llvm::Expected<TargetInfo> target = getTargetOf(getOperation());
    if (!target)
      return fail(target.takeError());
    llvm::Expected<std::string> ptx = translateToPTX(getOperation(), *target);
    if (!ptx)
      return fail(ptx.takeError());
    llvm::Expected<std::string> manifest =
        assembleManifest(getOperation(), *target);
    if (!manifest)
      return fail(manifest.takeError());

    OpBuilder b(kernels);
    auto nvvm = NVVM::NVVMTargetAttr::get(
        b.getContext(), /*optLevel=*/2, "nvptx64-nvidia-cuda", target->chip,
        "+ptx" + std::to_string(target->ptxVersion));
    auto object = gpu::ObjectAttr::get(
        b.getContext(), nvvm, gpu::CompilationTarget::Assembly,
        b.getStringAttr(*ptx), /*properties=*/nullptr, /*kernels=*/nullptr);
    auto binary = gpu::BinaryOp::create(b, kernels.getLoc(), kernels.getName(),
                                        /*offloadingHandler=*/nullptr,
                                        b.getArrayAttr({object}));
    binary->setDiscardableAttrs(kernels->getDiscardableAttrDictionary());
    binary->setAttr(kManifestAttrName, b.getStringAttr(*manifest));
    kernels.erase();
    return success();
  }
};
} // namespace
