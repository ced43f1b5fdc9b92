//===- KernelFunction.h - What becomes kernels, and with what ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_KERNELFUNCTION_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_KERNELFUNCTION_H

namespace mlir {
class Operation;
class Value;
} // namespace mlir

namespace mlir::attnfuse {

/// Whether there is an op of the dialect under `root` other than a launch of
/// kernels. The project's passes leave all other functions as they are.
bool holdsAttention(Operation *root);

/// Whether kernels can hold the constant `value`: an integer or dense elements.
bool isKernelConstant(Value value);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_KERNELFUNCTION_H
