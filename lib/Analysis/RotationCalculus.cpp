//===- RotationCalculus.cpp - What rotating k costs -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/RotationCalculus.h"
#include "attnfuse/Analysis/KeySplits.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;

RotationCosts::RotationCosts(AttentionOp op, const AttentionSizes &sizes,
                             const RotationTile &tile, const TargetInfo &target)
    : fused(0), split(0) {
  int64_t width =
      2 * cast<RankedTensorType>(op.getKCos().getType()).getShape()[1];
  double kiFeatures = double(tile.block.shape.n * width) / 1024;
  double headDims = double(op.getHeadDim() + op.getValueHeadDim());
  // What one visit takes, and what of it a visit without a rotation takes
  // anyway, beside it; what a query tile takes off. In clocks of an SM.
  double visit = kiFeatures * target.keyRotationClocks, beside = 0, hidden = 0;
  if (tile.isPipelined) {
    visit =
        target.loaderLatencyClocks + kiFeatures * target.loaderRotationClocks;
    beside = target.visitPerProduct * 2.0 *
             double(tile.block.shape.m * tile.block.shape.n) * headDims /
             double(target.tensorFlopsPerClock);
    hidden = target.hiddenClocksPerFeature * double(op.getHeadDim());
  }
  // Blocks that share an SM rotate beside each other, and beside each other's
  // reading of K and V.
  bool sharesSm = tile.isPipelined && tile.block.blocksPerSm > 1;
  double sharing = sharesSm ? target.loaderSharing : 1;
  SizeExpression memory = 0;
  if (sharesSm)
    memory = sizes.batch * sizes.keyHeads * sizes.keys *
             std::llround(2.0 * headDims * 1e3 / target.rotationGbPerSecond);
  auto getTime = [&](const SizeExpression &visits, const SizeExpression &tiles,
                     double share, double scale) {
    SizeExpression rotating = visits * std::llround(visit * share * scale);
    if (!tile.isPipelined)
      return rotating;
    return rotating - max(visits * std::llround(beside * scale), memory) -
           tiles * std::llround(hidden * scale);
  };
  double picoseconds = 1e3 / target.clockGhz;
  TileVisits visits(op, sizes, tile.block.shape);
  // The last query tile is not done sooner than its own visits, or a part of
  // its keys than the part's.
  SizeExpression ofLast = visits.ofQueryTile;
  if (tile.splitsKeys) {
    KeySplits splits(op, sizes, tile.block, target, target.smCount);
    ofLast = ceilDiv(ofLast, 1 + splits.pays() * (splits.count - 1));
  }
  fused = max(max(getTime(visits.inAll, visits.queryTiles, sharing,
                          picoseconds / double(target.smCount)),
                  getTime(ofLast, 1, 1, picoseconds)),
              0);
  // Each key row is read and written.
  double row = 4.0 * double(op.getHeadDim()) * 1e3 / target.rotationGbPerSecond;
  split = SizeExpression(std::llround(target.rotationLaunchNs * 1e3)) +
          sizes.batch * sizes.keyHeads * sizes.keys * std::llround(row);
}
