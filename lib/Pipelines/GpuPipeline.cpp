//===- GpuPipeline.cpp - The stages from attnfuse to NVVM -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::attnfuse;

void mlir::attnfuse::buildFusePipeline(OpPassManager &pm) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createAttnFuseSimplifyPass());
  functions.addPass(createAttnFuseFusePass());
  // What the fused op's bands say about its scores.
  functions.addPass(createAttnFuseSimplifyPass());
}

void mlir::attnfuse::buildKernelPipeline(OpPassManager &pm) {
  pm.addPass(createConvertAttnFuseToGPUPass());
}

void mlir::attnfuse::buildGpuLoweringPipeline(OpPassManager &pm) {
  // Nested, so that the functions beside the kernels, which describe what the
  // kernels compute, keep their tensors and score regions.
  pm.addNestedPass<gpu::GPUModuleOp>(createAttnFuseLowerKernelsPass());
}

void mlir::attnfuse::buildGpuPipeline(OpPassManager &pm) {
  buildFusePipeline(pm);
  pm.addPass(createAttnFuseDecideRotationPass());
  pm.addPass(createAttnFuseSelectSchedulePass());
  buildKernelPipeline(pm);
  buildGpuLoweringPipeline(pm);
}

void mlir::attnfuse::buildAttnFuseToPTXPipeline(
    OpPassManager &pm, const AttnFuseToPTXPipelineOptions &options) {
  buildFusePipeline(pm);
  // Before the schedule, which may depend on q, k and v being arguments.
  pm.addPass(createAttnFuseOutlinePass());
  pm.addPass(createAttnFuseDecideRotationPass());
  pm.addPass(createAttnFuseSelectSchedulePass());
  pm.addPass(createConvertAttnFuseToGPUPass({/*outlinedOnly=*/true}));
  buildGpuLoweringPipeline(pm);
  pm.addPass(createAttnFuseMergeKernelsPass());
  if (options.serialize)
    pm.addPass(createAttnFuseSerializeKernelsPass());
}

void mlir::attnfuse::registerGpuPipelines() {
  PassPipelineRegistration<>(
      "attnfuse-gpu-pipeline",
      "building blocks to kernels in the llvm and nvvm dialects, for the "
      "machine in the module's attnfuse.target",
      buildGpuPipeline);
  PassPipelineRegistration<>(
      "attnfuse-lower-gpu-modules",
      "the bodies of attention kernels to the llvm and nvvm dialects",
      buildGpuLoweringPipeline);
  PassPipelineRegistration<AttnFuseToPTXPipelineOptions>(
      "attnfuse-to-ptx-pipeline",
      "building blocks among other ops to launches of kernels in PTX, for the "
      "machine in the module's attnfuse.target",
      buildAttnFuseToPTXPipeline);
}
