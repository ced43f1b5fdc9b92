//===- Pipelines.h - Named pass pipelines -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_PIPELINES_H
#define ATTNFUSE_PIPELINES_PIPELINES_H

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace mlir::attnfuse {

/// Lowers a module of functions on tensors to the LLVM dialect for the host:
/// through linalg, one-shot bufferization (identity layouts at function
/// boundaries) and loops. Returned buffers belong to the caller. Buffers are
/// allocated and released by
/// `_mlir_memref_to_llvm_alloc` and `_mlir_memref_to_llvm_free`, which whoever
/// loads the code provides.
void buildCpuPipeline(OpPassManager &pm);

/// The interfaces of upstream dialects that the CPU pipeline calls, for
/// contexts that do not register all dialects and extensions.
void registerCpuPipelineInterfaces(DialectRegistry &registry);

/// Registers `attnfuse-cpu-pipeline`.
void registerCpuPipeline();

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
