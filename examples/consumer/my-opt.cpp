//===- my-opt.cpp - A small compiler with attention in it -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What it takes to compile attention among ops of one's own: --my-gpu-pipeline
// for a GPU, --my-cpu-pass for the host.
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/AttnFuseToLinalg.h"
#include "attnfuse/InitAll.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// Attention to kernels, everything else to memrefs, as the compiler likes it.
static void buildMyGpuPipeline(OpPassManager &pm) {
  attnfuse::buildAttnFuseToPTXPipeline(pm);
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  options.allowReturnAllocsFromLoops = true;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  pm.addPass(attnfuse::createConvertAttnFuseLaunchToRuntimePass());
  pm.addPass(createCanonicalizerPass());
}

namespace {
/// The project's patterns in a conversion of one's own.
struct MyCpuPass : PassWrapper<MyCpuPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MyCpuPass)
  StringRef getArgument() const override { return "my-cpu-pass"; }
  StringRef getDescription() const override { return "attention to linalg"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                scf::SCFDialect, tensor::TensorDialect>();
  }
  void runOnOperation() override {
    ConversionTarget target(getContext());
    target.addIllegalDialect<attnfuse::AttnFuseDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(&getContext());
    attnfuse::populateAttnFuseToLinalgConversionPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry
      .insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
              memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
  attnfuse::registerAllDialects(registry);
  attnfuse::registerAllPasses();
  registerCanonicalizerPass();
  PassRegistration<MyCpuPass>();
  PassPipelineRegistration<>("my-gpu-pipeline", "attention to launches",
                             buildMyGpuPipeline);
  return asMainReturnCode(MlirOptMain(argc, argv, "my compiler\n", registry));
}
