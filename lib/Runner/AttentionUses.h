//===- AttentionUses.h - Rotations, lists, bands of a function --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of a function that inputs are made for and work is counted by, in
// one form for building blocks and for the fused op.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_ATTENTIONUSES_H
#define ATTNFUSE_LIB_RUNNER_ATTENTIONUSES_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::attnfuse {

struct RotationUse {
  /// `input` is [B, H, N, D]; `offset` and `positions` may be null.
  Value input, cos, sin, offset, positions;
  int64_t staticOffset;
};

struct BlockUse {
  Value rowOffsets, colIndices;
  int64_t queryBlock, keyBlock;
  /// Tensors whose dimension 2 is the number of queries, and whose dimension
  /// `keysDim` is the number of keys.
  Value queries, keys;
  unsigned keysDim;
};

struct AttentionUse {
  /// Null where the function starts from scores.
  Value query, key;
  Value value, output;
  SmallVector<BandAttr> bands;
  SmallVector<BlockUse> blocks;
};

SmallVector<RotationUse> getRotations(func::FuncOp function);
SmallVector<BlockUse> getBlockUses(func::FuncOp function);
SmallVector<AttentionUse> getAttentions(func::FuncOp function);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_ATTENTIONUSES_H
