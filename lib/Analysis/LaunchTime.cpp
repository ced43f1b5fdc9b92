//===- LaunchTime.cpp - Large blocks against small ones -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/LaunchTime.h"
#include <algorithm>
#include <cassert>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// What differs between blocks of one warpgroup and larger ones.
struct BlockTimes {
  /// Keys that a walk would have got through while its block begins and ends.
  int64_t overheadKeys;
  /// Time of an SM, full of such blocks, for a key of a row.
  int64_t perKey;
};
} // namespace

/// Measured on an H200 (docs/performance.md).
static BlockTimes getBlockTimes(const BlockTile &tile) {
  if (tile.shape.m > kSmallBlockRows)
    return {96, 50};
  // The more of them share an SM, the better its units are used.
  constexpr int64_t perKey[] = {70, 65, 56};
  return {48, perKey[std::min<int64_t>(tile.blocksPerSm, 3) - 1]};
}

SizeExpression
mlir::attnfuse::estimateLaunchTime(AttentionOp op, const AttentionSizes &sizes,
                                   const BlockTile &tile,
                                   const SizeExpression &smCount) {
  assert(tile.shape.m % kSmallBlockRows == 0 && tile.blocksPerSm > 0);
  TileVisits visits(op, sizes, tile.shape);
  BlockTimes times = getBlockTimes(tile);
  SizeExpression longest = visits.ofLongest * tile.shape.n + times.overheadKeys;

  // Of `places` blocks, an SM takes 1/3 + 2/3 * r / places of the time of all
  // to do r. In thirds of that time, times places:
  int64_t places = tile.blocksPerSm;
  SizeExpression units = 0;
  if (op.getBands().empty() && !op.getBlocksAttr()) {
    // Walks of equal length end together: in rounds, of which the last may
    // leave places empty.
    SizeExpression blocks = ceilDiv(visits.queryTiles, smCount);
    SizeExpression ofLast = mod(blocks, places);
    units = longest *
            (3 * (blocks - ofLast) + 2 * ofLast + places * min(ofLast, 1));
  } else {
    // The longest come first, and the shorter fill the gaps; towards the end of
    // its walk the longest block is alone.
    SizeExpression mean =
        visits.ofQueryTile * tile.shape.n + times.overheadKeys;
    units = max(longest * (2 + places),
                3 * ceilDiv(visits.queryTiles * mean, smCount));
  }
  return units * (tile.shape.m / kSmallBlockRows * times.perKey);
}
