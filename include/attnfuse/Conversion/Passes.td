//===- Passes.td - Conversions out of the attnfuse dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_CONVERSION_PASSES_TD
#define ATTNFUSE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnFuseToLinalgPass : Pass<"convert-attnfuse-to-linalg"> {
  let summary = "lower building blocks and attnfuse.attention to linalg on tensors";
  let description = [{
    The reference lowering: exact semantics of docs/spec.md for every machine
    that upstream MLIR reaches, with scores at full size in f32. It is not
    meant to be fast.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ConvertAttnFuseToGPUPass : Pass<"convert-attnfuse-to-gpu", "::mlir::ModuleOp"> {
  let summary = "generate one GPU kernel for every attnfuse.attention";
  let description = [{
    For each function whose body is one scheduled `attnfuse.attention` of its
    arguments, or dense constants, adds a `gpu.module` with the kernel, in the
    llvm, nvvm, scf, arith and math dialects, and its manifest as the attribute `attnfuse.manifest`
    (docs/manifest.md). The function is left in place as the description of
    what the kernel computes. A function of any other shape is an error at the
    op that is in the way.

    A function that `attnfuse-outline` made, whose uses are all
    `attnfuse.launch`, is erased, and its launches name the kernels instead.
    With `outlined-only`, no other function is looked at, and one that is
    launched but public, or has other uses too, is an error at a launch.
  }];
  let options = [
    Option<"outlinedOnly", "outlined-only", "bool", "false",
           "convert what is launched, and nothing else">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect"];
}

def AttnFuseLowerKernelsPass : Pass<"attnfuse-lower-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "lower the bodies of attention kernels to the llvm and nvvm dialects";
  let description = [{
    For a `gpu.module` with a manifest; any other is left as it is.
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def AttnFuseMergeKernelsPass : Pass<"attnfuse-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "put all attention kernels of a module into one gpu.module";
  let description = [{
    The kernels of each `gpu.module` with a manifest move to one of the name
    `attnfuse_kernels` (or the next that is free), whose manifest is the array
    of theirs. A module has one target, so this is one `gpu.module` per target.
    Later kernels join earlier ones. Launches follow. A `gpu.module` without a
    manifest is left as it is.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def AttnFuseSerializeKernelsPass : Pass<"attnfuse-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "translate attention kernels to PTX";
  let description = [{
    Replaces the one `gpu.module` with a manifest by a `gpu.binary` of the same
    name with the PTX as its object and the whole manifest (docs/manifest.md)
    as its attribute `attnfuse.manifest`. The machine is that of the module's
    `attnfuse.target`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
}

def ConvertAttnFuseLaunchToRuntimePass
    : Pass<"convert-attnfuse-launch-to-runtime", "::mlir::ModuleOp"> {
  let summary = "lower attnfuse.launch to calls of the runtime library";
  let description = [{
    Each launch on memrefs becomes a call of `attnfuseHostLaunch`
    (attnfuse-c/Host.h), and each `gpu.binary` that is launched global
    constants with its PTX and manifest. What is made of memrefs takes
    `expand-strided-metadata` and `finalize-memref-to-llvm` after this. Where no
    op of the dialect is left, its attributes on the module and its functions go
    too.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

#endif // ATTNFUSE_CONVERSION_PASSES_TD
