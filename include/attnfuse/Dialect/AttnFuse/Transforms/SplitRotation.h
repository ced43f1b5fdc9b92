//===- SplitRotation.h - Rotations before an attention ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SPLITROTATION_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SPLITROTATION_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

namespace mlir::attnfuse {

/// Whether the plan has a rotation before `op`, at some sizes or at all.
bool hasSplitRotation(AttentionOp op);

/// An attention with rotations in ops of their own.
struct SplitAttention {
  SmallVector<RopeOp, 2> rotations;
  AttentionOp attention;
};

/// Builds a copy of `op` before it, in which what the plan splits, or has by
/// size, is rotated by attnfuse.rope. The copy has no plan.
SplitAttention buildSplitAttention(OpBuilder &b, AttentionOp op);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SPLITROTATION_H
