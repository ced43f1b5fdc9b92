//===- Pipelines.h - The stages from attnfuse to NVVM ------------*- C++ -*-
//===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_PIPELINES_H
#define ATTNFUSE_PIPELINES_PIPELINES_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::attnfuse {

/// Building blocks to one attnfuse.attention per chain.
void buildFusePipeline(OpPassManager &pm);

/// Each scheduled attnfuse.attention to a gpu.module with its kernel. The
/// module holds `attnfuse.target`.
void buildKernelPipeline(OpPassManager &pm);

/// The bodies of gpu.modules to the llvm and nvvm dialects. Everything outside
/// of gpu.modules is left as it is.
void buildGpuLoweringPipeline(OpPassManager &pm);

/// All of it, schedules included: `attnfuse-gpu-pipeline`.
void buildGpuPipeline(OpPassManager &pm);

/// Registers `attnfuse-gpu-pipeline` and `attnfuse-lower-gpu-modules`.
void registerGpuPipelines();

} // namespace mlir::attnfuse

#endif // ATTNFUSE_PIPELINES_PIPELINES_H
