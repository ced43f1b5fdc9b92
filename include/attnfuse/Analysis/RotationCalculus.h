//===- RotationCalculus.h - What rotating k costs ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/rotation-calculus.md derives the model and compares it with
// measurements.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_ROTATIONCALCULUS_H
#define ATTNFUSE_ANALYSIS_ROTATIONCALCULUS_H

#include "attnfuse/Analysis/TileVisits.h"
#include "attnfuse/Target/TargetInfo.h"

namespace mlir::attnfuse {

/// A kernel that rotates k: where it is pipelined, while others compute; and
/// whether keys are split where that pays.
struct RotationTile {
  BlockTile block;
  bool isPipelined;
  bool splitsKeys = false;
};

/// What rotating k adds to the time of an attention, in picoseconds: integers
/// where the sizes are known.
struct RotationCosts {
  /// In the kernel, in every visit of a tile.
  SizeExpression fused;
  /// Once, by a kernel before it.
  SizeExpression split;

  RotationCosts(AttentionOp op, const AttentionSizes &sizes,
                const RotationTile &tile, const TargetInfo &target);

  /// 1 where the fused way is expected to be the quicker one, else 0.
  SizeExpression isFusedQuicker() const { return isAtMost(fused, split); }
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_ROTATIONCALCULUS_H
