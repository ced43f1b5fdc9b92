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

#include "attnfuse/Analysis/SizeExpression.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Target/TargetInfo.h"

namespace mlir::attnfuse {

/// Sizes of a launch; `numBlocks` is the length of the list of a block-sparse
/// pattern.
struct AttentionSizes {
  SizeExpression batch, queryHeads, keyHeads, queries, keys;
  std::optional<SizeExpression> numBlocks = std::nullopt;

  /// From the op's types. What they leave open has a name.
  static AttentionSizes get(AttentionOp op);
};

/// `m` query rows, as many of each of `heads` heads, and `n` keys.
struct TileShape {
  constexpr TileShape(int64_t m, int64_t n, int64_t heads = 1)
      : m(m), n(n), heads(heads) {}
  int64_t m, n, heads;

  int64_t getRowsPerHead() const { return m / heads; }
};

/// The tile of a kernel's blocks, and how many of them an SM holds.
struct BlockTile {
  TileShape shape;
  int64_t blocksPerSm;
};

/// The tile of a kernel that rotates k; where it is pipelined, while others
/// compute. What else is taken for granted: the blocks of it that an SM holds,
/// and whether keys are split where that pays.
struct RotationTile {
  TileShape shape;
  bool isPipelined;
  int64_t blocksPerSm = 1;
  bool splitsKeys = false;
};

/// Query tiles of a launch, the key tiles that one of them visits, on average
/// and (but for lists of blocks) at most, and those that all visit.
struct TileVisits {
  TileVisits(AttentionOp op, const AttentionSizes &sizes,
             const TileShape &tile);
  SizeExpression queryTiles, ofQueryTile, ofLongest, inAll;
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
