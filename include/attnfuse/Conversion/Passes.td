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
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect"];
}

#endif // ATTNFUSE_CONVERSION_PASSES_TD
