//===- LaunchTime.cpp - Large blocks against small ones -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/LaunchTime.h"
#include <cassert>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// What differs between blocks of one warpgroup and larger ones.
struct BlockTimes {
  /// Keys that a walk would have got through while its block begins and ends.
  int64_t overheadKeys;
  /// Time of an SM, full of such blocks, for a key of a row, in fiftieths of
  /// that of large ones.
  int64_t perKey;
};
/// Tiles and keys are below 2^30 each by the manifest's checks, so that all
/// that comes before is below 2^62. This is days of any machine, and still fits
/// when it is weighed.
constexpr int64_t kMostUnits = int64_t(1) << 55;
} // namespace

/// Measured on an H200 (docs/performance.md).
static BlockTimes getBlockTimes(const BlockTile &tile) {
  if (tile.shape.m > kSmallBlockRows)
    return {96, 50};
  // The more of them share an SM, the better its units are used.
  constexpr int64_t perKey[] = {70, 65, 56};
  assert(tile.blocksPerSm >= 1 && tile.blocksPerSm <= 3);
  return {48, perKey[tile.blocksPerSm - 1]};
}

SizeExpression
mlir::attnfuse::estimateLaunchTime(AttentionOp op, const AttentionSizes &sizes,
                                   const BlockTile &tile,
                                   const SizeExpression &smCount) {
  assert(tile.shape.m % kSmallBlockRows == 0);
  TileVisits visits(op, sizes, tile.shape);
  BlockTimes times = getBlockTimes(tile);
  auto getWalk = [&](const SizeExpression &keyTiles) {
    return keyTiles * tile.shape.n + times.overheadKeys;
  };
  SizeExpression longest = getWalk(visits.ofLongest);

  // In thirds of a block's share of a full SM: a round costs as many as there
  // are places, and each block two more.
  int64_t places = tile.blocksPerSm;
  auto ofBlocks = [&](const SizeExpression &blocks) {
    return 2 * blocks + places * ceilDiv(blocks, places);
  };
  SizeExpression units = 0;
  if (op.getBands().empty() && !op.getBlocksAttr())
    // Walks of equal length end together: in rounds, of which the last may
    // leave places empty.
    units = longest * ofBlocks(ceilDiv(visits.queryTiles, smCount));
  else
    // With a causal mask the longest come first, the shorter fill the gaps, and
    // towards the end of its walk the longest is alone. Other bands are taken
    // likewise, and lists, of which only the mean is known.
    units = max(
        longest * ofBlocks(1),
        3 * ceilDiv(visits.queryTiles * getWalk(visits.ofQueryTile), smCount));
  return min(std::move(units), kMostUnits) *
         (tile.shape.m / kSmallBlockRows * times.perKey);
}
