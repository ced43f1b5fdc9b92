//===- CombinePartials.h - The kernel that combines parts -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_COMBINEPARTIALS_H
#define ATTNFUSE_KERNELGEN_COMBINEPARTIALS_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelAbi.h"

namespace mlir::attnfuse::kernelgen {

/// How the rows [B, Hq, Nq] of the output are dealt to blocks of threads: a
/// warp combines a row, or all warps of a block one row of many parts.
struct CombineGrid {
  CombineGrid(llvm::json::Value rows, const PartialResults &partials);

  static constexpr int64_t kWarps = 8, kThreads = 32 * kWarps;
  /// Parts up to which a warp has a row for itself.
  static constexpr int64_t kPartsOfWarp = 8;

  /// Rows of a block, kWarps or 1, and blocks; expressions.
  llvm::json::Value rowsPerBlock, blocks;

  /// Dynamic shared memory, in bytes.
  static int64_t getSharedMemory(int64_t valueHeadDim) {
    return kWarps * 4 * valueHeadDim;
  }
};

/// Builds the body of `kernel`: the op's results become those of the parts that
/// `abi` names, combined in the order of the keys' parts by a fixed tree, so
/// that they do not depend on which part was ready first.
void buildCombinePartials(AttentionOp op, const CombineGrid &grid,
                          LLVM::LLVMFuncOp kernel, LLVM::GlobalOp sharedMemory,
                          KernelAbi &abi);

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_COMBINEPARTIALS_H
