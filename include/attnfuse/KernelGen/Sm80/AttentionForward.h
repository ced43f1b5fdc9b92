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
//     K has landed | load what there is room for | [rotate K] | S = Q K^T
//     [score region] | [mask, boundary tiles only]
//     V has landed | [load the next K]
//     S -> P, in registers | [O = factor O] | O += P V
//   O, log-sum-exp -> memory
//
// With one stage there is room for V at the beginning of its step, and for the
// next K in the middle: V's load runs under the product with K, K's under the
// normaliser and the product with V. Each has a barrier before it, by which all
// warps are done with what it overwrites.
//
// With more, the tiles lie in a ring of slots. K and V of a tile are one group
// of copies, issued `stages` - 1 steps ahead into the slot of the step before
// the present one. One barrier a step says both that all threads' copies have
// landed and that all warps are done with that slot.
//
// The output is rescaled only when a row's reference has grown by more than
// 2^8, which the final division makes good.
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
