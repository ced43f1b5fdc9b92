//===- GpuPipeline.cpp - The stages from attnfuse to NVVM -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Pipelines/Pipelines.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::attnfuse;

void mlir::attnfuse::buildFusePipeline(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createAttnFuseFusePass());
}

void mlir::attnfuse::buildKernelPipeline(OpPassManager &pm) {
  pm.addPass(createConvertAttnFuseToGPUPass());
}

void mlir::attnfuse::buildGpuLoweringPipeline(OpPassManager &pm) {
  // Nested, so that the functions beside the kernels, which describe what the
  // kernels compute, keep their tensors and score regions.
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::attnfuse::buildGpuPipeline(OpPassManager &pm) {
  buildFusePipeline(pm);
  pm.addPass(createAttnFuseDecideRotationPass());
  pm.addPass(createAttnFuseSelectSchedulePass());
  buildKernelPipeline(pm);
  buildGpuLoweringPipeline(pm);
}

void mlir::attnfuse::registerGpuPipelines() {
  PassPipelineRegistration<>(
      "attnfuse-gpu-pipeline",
      "building blocks to kernels in the llvm and nvvm dialects, for the "
      "machine in the module's attnfuse.target",
      buildGpuPipeline);
  PassPipelineRegistration<>(
      "attnfuse-lower-gpu-modules",
      "the bodies of gpu.modules to the llvm and nvvm dialects",
      buildGpuLoweringPipeline);
}
