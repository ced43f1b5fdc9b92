//===- TileVisits.h - Tiles of a launch and what they visit -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_TILEVISITS_H
#define ATTNFUSE_ANALYSIS_TILEVISITS_H

#include "attnfuse/Analysis/SizeExpression.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

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
  int64_t blocksPerSm = 1;
};

/// Query tiles of a launch, the key tiles that one of them visits, on average
/// and (but for lists of blocks) at most, and those that all visit.
struct TileVisits {
  TileVisits(AttentionOp op, const AttentionSizes &sizes,
             const TileShape &tile);
  SizeExpression queryTiles, ofQueryTile, ofLongest, inAll;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_TILEVISITS_H
