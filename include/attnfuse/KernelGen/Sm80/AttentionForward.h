//===- AttentionForward.h - The forward kernel from sm_80 on ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel for a whole attention variant: a block of warps owns `tile_m`
// query rows, each warp whole rows of 16, and walks over the key tiles:
//
//   load Q; [rotate Q]
//   for each visited key tile:
//     K has landed | load V | [rotate K] | S = Q K^T
//     [score region] | [mask, boundary tiles only]
//     V has landed, K is free | load next K
//     S -> P, in registers | O = factor O + P V
//   O, log-sum-exp -> memory
//
// K and V have one stage each, so that V's load runs under the product with
// K, and the next K's under the normaliser and the product with V.
//
// NaN and infinities in V. A masked key has weight 0, but 0 times NaN would
// reach every row of its tile through the MMA. So when a block's output is not
// finite, which is rare, the block runs twice more: with V's non-finite
// elements set to 0, and with V replaced by 1 where it is not finite and 0
// elsewhere, which tells the rows that do see such an element.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM80_ATTENTIONFORWARD_H
#define ATTNFUSE_KERNELGEN_SM80_ATTENTIONFORWARD_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/KernelGen/KernelResources.h"

namespace mlir::attnfuse::kernelgen::sm80 {

/// Fills `kernel`, an empty llvm.func with an entry block, with the forward
/// kernel of `op`, which has a schedule. `sharedMemory` is the module's
/// external shared-memory array.
void buildAttentionForward(AttentionOp op, const KernelTile &tile,
                           LLVM::LLVMFuncOp kernel, LLVM::GlobalOp sharedMemory,
                           KernelAbi &abi);

} // namespace mlir::attnfuse::kernelgen::sm80

#endif // ATTNFUSE_KERNELGEN_SM80_ATTENTIONFORWARD_H
