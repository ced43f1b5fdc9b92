//===- RotateTensor.h - The kernel of a rotation ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_ROTATETENSOR_H
#define ATTNFUSE_KERNELGEN_ROTATETENSOR_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelAbi.h"

namespace mlir::attnfuse::kernelgen {

/// How a tensor [B, H, N, D] is cut into blocks of threads.
struct RotationGrid {
  explicit RotationGrid(RopeOp op);

  static constexpr int64_t kThreads = 256;
  /// What a thread moves of one row at a time: units of pairs, then vectors
  /// of features that are not rotated.
  int64_t rotatedUnits, copiedUnits, copiedVectorSize;
  /// Rows, and heads, of a block.
  int64_t rows, heads;

  int64_t getUnits() const { return rotatedUnits + copiedUnits; }
};

/// Builds the body of `kernel`: `op.getResult()` becomes `op.getInput()`,
/// rotated. Blocks are numbered by row, head and batch entry, rows fastest.
/// With `releasesDependents` a kernel that was launched to start early may.
void buildRotateTensor(RopeOp op, LLVM::LLVMFuncOp kernel, KernelAbi &abi,
                       bool releasesDependents);

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_ROTATETENSOR_H
