//===- AttentionForward.h - The forward kernel for sm_90a -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A persistent block of one loading and up to three computing warpgroups
// (FlashAttention-3, arXiv 2407.08608). The first loads tiles of Q, K and V
// through the tensor memory accelerator, and rotates K where the op says so; a
// computing warpgroup has 64 query rows, with its scores, weights and output in
// registers. Step n of the key loop issues S(n) = Q K(n)^T and O += P(n-1)
// V(n-1), and turns S(n) into P(n) while the second product runs.
//
// Steps are emitted up to three times, for the tiles that a diagonal cuts,
// those that nothing cuts, and those that a lower limit cuts, in the order in
// which they are walked; only the second kind is without mask code.
//
// A weight of 0 must add nothing though its V be infinite or NaN (spec S7),
// which no product of matrices gives. A warp whose output is not finite
// computes it anew by ExactRows.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_ATTENTIONFORWARD_H
#define ATTNFUSE_KERNELGEN_SM90_ATTENTIONFORWARD_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/Target/TargetInfo.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// Emits the body of `kernel`, with `sharedMemory` for its dynamic shared
/// memory. The op has a schedule with a pipeline; q, k, v and the output are
/// arguments and a result.
void buildAttentionForward(AttentionOp op, const KernelTile &tile,
                           LLVM::LLVMFuncOp kernel, LLVM::GlobalOp sharedMemory,
                           KernelAbi &abi, const TargetInfo &target);

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_ATTENTIONFORWARD_H
