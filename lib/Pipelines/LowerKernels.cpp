//===- LowerKernels.cpp - Bodies of kernels to llvm and nvvm --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttributeNames.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSELOWERKERNELSPASS
#include "attnfuse/Conversion/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
struct LowerKernelsPass
    : attnfuse::impl::AttnFuseLowerKernelsPassBase<LowerKernelsPass> {
  LowerKernelsPass() : pipeline(gpu::GPUModuleOp::getOperationName()) {
    pipeline.addPass(createSCFToControlFlowPass());
    pipeline.addPass(createConvertToLLVMPass());
    pipeline.addPass(createReconcileUnrealizedCastsPass());
  }
  LowerKernelsPass(const LowerKernelsPass &other) = default;

  void getDependentDialects(DialectRegistry &registry) const override {
    AttnFuseLowerKernelsPassBase::getDependentDialects(registry);
    pipeline.getDependentDialects(registry);
  }

  void runOnOperation() override {
    if (getOperation()->hasAttr(kManifestAttrName) &&
        failed(runPipeline(pipeline, getOperation())))
      signalPassFailure();
  }

  OpPassManager pipeline;
};
} // namespace
