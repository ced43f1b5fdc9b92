//===- MergeKernels.cpp - One gpu.module for a module's kernels -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSEMERGEKERNELSPASS
#include "attnfuse/Conversion/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
struct MergeKernelsPass
    : attnfuse::impl::AttnFuseMergeKernelsPassBase<MergeKernelsPass> {
  void runOnOperation() override {
    // What this pass has made before has an array for its manifest.
    gpu::GPUModuleOp merged;
    SmallVector<gpu::GPUModuleOp> parts;
    for (auto kernels : getOperation().getOps<gpu::GPUModuleOp>()) {
      Attribute manifest = kernels->getAttr(kManifestAttrName);
      if (manifest && isa<ArrayAttr>(manifest) && !merged)
        merged = kernels;
      else if (manifest)
        parts.push_back(kernels);
    }
    if (parts.empty())
      return markAllAnalysesPreserved();

    SymbolTable symbols(getOperation());
    OpBuilder b(parts.front());
    if (!merged) {
      merged = gpu::GPUModuleOp::create(b, parts.front().getLoc(),
                                        "attnfuse_kernels");
      merged->setAttr(kManifestAttrName, b.getArrayAttr({}));
      merged->remove();
      symbols.insert(merged, parts.front()->getIterator());
    }
    SymbolTable inside(merged);
    for (gpu::GPUModuleOp part : parts)
      if (failed(moveInto(part, merged, inside)))
        return signalPassFailure();
    SymbolTableCollection tables;
    getOperation().walk([&](LaunchOp launch) {
      SymbolRefAttr kernel = launch.getKernel();
      Operation *root =
          tables.lookupNearestSymbolFrom(launch, kernel.getRootReference());
      if (llvm::is_contained(parts, root))
        launch.setKernelAttr(SymbolRefAttr::get(merged.getNameAttr(),
                                                kernel.getNestedReferences()));
    });
    for (gpu::GPUModuleOp part : parts)
      symbols.erase(part);
  }

  /// Symbols that are alike in both, such as the name of the dynamic shared
  /// memory, become one.
  LogicalResult moveInto(gpu::GPUModuleOp part, gpu::GPUModuleOp merged,
                         SymbolTable &symbols) {
    for (Operation &op : llvm::make_early_inc_range(*part.getBody())) {
      Operation *known = nullptr;
      if (auto symbol = dyn_cast<SymbolOpInterface>(op))
        known = symbols.lookup(symbol.getNameAttr());
      if (known && OperationEquivalence::isEquivalentTo(
                       known, &op, OperationEquivalence::IgnoreLocations)) {
        op.erase();
        continue;
      }
      if (known) {
        InFlightDiagnostic diagnostic =
            op.emitError("expected kernels of different names in one module, "
                         "got two '")
            << SymbolTable::getSymbolName(&op).getValue() << "'";
        diagnostic.attachNote(known->getLoc()) << "the other one";
        return diagnostic;
      }
      op.remove();
      if (isa<SymbolOpInterface>(op))
        symbols.insert(&op);
      else
        merged.getBody()->push_back(&op);
    }
    auto entries = llvm::to_vector(
        merged->getAttrOfType<ArrayAttr>(kManifestAttrName).getValue());
    Attribute more = part->getAttr(kManifestAttrName);
    if (auto array = dyn_cast<ArrayAttr>(more))
      llvm::append_range(entries, array);
    else
      entries.push_back(more);
    merged->setAttr(kManifestAttrName, ArrayAttr::get(&getContext(), entries));
    return success();
  }
};
} // namespace
