//===- Pipelines.h - Named pass pipelines -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_PIPELINES_PIPELINES_H
#define ATTNFUSE_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

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

/// Building blocks to one attnfuse.attention per chain. Functions without are
/// left as they are.
void buildFusePipeline(OpPassManager &pm);

/// Each scheduled attnfuse.attention to a gpu.module with its kernel. The
/// module holds `attnfuse.target`.
void buildKernelPipeline(OpPassManager &pm);

/// The bodies of gpu.modules with a manifest to the llvm and nvvm dialects.
/// Everything else is left as it is.
void buildGpuLoweringPipeline(OpPassManager &pm);

/// All of it, schedules included: `attnfuse-gpu-pipeline`.
void buildGpuPipeline(OpPassManager &pm);

struct AttnFuseToPTXPipelineOptions
    : PassPipelineOptions<AttnFuseToPTXPipelineOptions> {
  PassOptions::Option<bool> serialize{
      *this, "serialize",
      llvm::cl::desc("go on to a gpu.binary with PTX; else stop at one "
                     "gpu.module in the llvm and nvvm dialects"),
      llvm::cl::init(true)};
};

/// For modules in which attention stands among other ops, in tensors
/// throughout: each becomes an attnfuse.launch of kernels in one gpu.binary,
/// for the machine in the module's `attnfuse.target`. Bufferize after it.
/// Functions and gpu.modules without attention are left as they are; chains
/// that do not fuse are left in place, after a remark. Named
/// `attnfuse-to-ptx-pipeline`.
void buildAttnFuseToPTXPipeline(
    OpPassManager &pm, const AttnFuseToPTXPipelineOptions &options = {});

/// Registers the pipelines for GPUs: `attnfuse-gpu-pipeline`,
/// `attnfuse-lower-gpu-modules` and `attnfuse-to-ptx-pipeline`.
void registerGpuPipelines();

} // namespace mlir::attnfuse

#endif // ATTNFUSE_PIPELINES_PIPELINES_H
