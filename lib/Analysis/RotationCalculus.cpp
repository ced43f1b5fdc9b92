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

AttentionSizes AttentionSizes::get(AttentionOp op) {
  auto getSize = [](Value tensor, unsigned dim, StringRef name) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return type.isDynamicDim(dim) ? SizeExpression(llvm::json::Value(name))
                                  : SizeExpression(type.getDimSize(dim));
  };
  AttentionSizes sizes{
      getSize(op.getQuery(), 0, "B"), getSize(op.getQuery(), 1, "Hq"),
      getSize(op.getKey(), 1, "Hkv"), getSize(op.getQuery(), 2, "Nq"),
      getSize(op.getKey(), 2, "Nkv")};
  if (op.getColIndices())
    sizes.numBlocks = getSize(op.getColIndices(), 0, "nnz");
  return sizes;
}

/// Keys that a tile of `tileM` rows reaches by one band, on average over all
/// tiles, limited to those that exist.
static SizeExpression getKeysOfBand(BandAttr band, const AttentionSizes &sizes,
                                    int64_t tileM) {
  const SizeExpression &nq = sizes.queries, &nkv = sizes.keys;
  SizeExpression both = min(nq, nkv);
  // Rows beyond the keys' diagonal see none.
  if (band.getLeft() && band.getRight())
    return ceilDiv(min(nkv, *band.getLeft() + *band.getRight() + tileM) * both,
                   max(nq, 1));
  // Rows see a triangle of `both` x `both` scores and, where there are more
  // keys or more rows, all or none of the others.
  SizeExpression triangle = ceilDiv(both * both, max(nq * 2, 1));
  SizeExpression moreKeys = max(nkv - nq, 0);
  bool isRight = bool(band.getRight());
  bool isBottom = band.getAlign() == Alignment::BottomRight;
  int64_t reach = isRight ? *band.getRight() : band.getLeft().value_or(0);
  SizeExpression keys = both - triangle;
  if (isBottom)
    keys = isRight ? moreKeys + triangle : triangle;
  else if (!isRight)
    keys = moreKeys + triangle;
  return min(nkv, keys + (tileM / 2 + reach));
}

/// The same at most.
static SizeExpression
getMostKeysOfBand(BandAttr band, const AttentionSizes &sizes, int64_t tileM) {
  std::optional<int64_t> left = band.getLeft(), right = band.getRight();
  if (left && right)
    return min(sizes.keys, *left + *right + tileM);
  // The diagonal ends at the last row and key, or begins at the first.
  bool isBottom = band.getAlign() == Alignment::BottomRight;
  if (right && !isBottom)
    return min(sizes.keys, sizes.queries + *right);
  if (left && isBottom)
    return min(sizes.keys, sizes.queries + *left);
  return sizes.keys;
}

TileVisits::TileVisits(AttentionOp op, const AttentionSizes &sizes,
                       const TileShape &tile)
    : queryTiles(0), ofQueryTile(0), ofLongest(0), inAll(0) {
  int64_t rows = tile.getRowsPerHead();
  // Heads that share a tile count as one.
  SizeExpression heads = sizes.batch * ceilDiv(sizes.queryHeads, tile.heads);
  queryTiles = heads * ceilDiv(sizes.queries, rows);
  if (BlocksAttr blocks = op.getBlocksAttr(); blocks && sizes.numBlocks) {
    auto type = cast<RankedTensorType>(op.getRowOffsets().getType());
    // Lists are of all heads, or of some.
    SizeExpression lists = 1;
    if (type.getRank() == 3)
      for (auto [dim, size] :
           {std::pair(0, sizes.batch), std::pair(1, sizes.queryHeads)})
        lists = lists * (type.getDimSize(dim) == 1 ? SizeExpression(1) : size);
    SizeExpression tiles = llvm::divideCeil(blocks.getQueryBlock(), rows) *
                           llvm::divideCeil(blocks.getKeyBlock(), tile.n);
    inAll = *sizes.numBlocks * ceilDiv(heads, max(lists, 1)) * tiles;
    ofQueryTile = ofLongest = ceilDiv(inAll, max(queryTiles, 1));
    return;
  }
  SizeExpression keys = sizes.keys, mostKeys = sizes.keys;
  for (BandAttr band : op.getBands().getAsRange<BandAttr>()) {
    keys = min(std::move(keys), getKeysOfBand(band, sizes, rows));
    mostKeys = min(std::move(mostKeys), getMostKeysOfBand(band, sizes, rows));
  }
  ofQueryTile = ceilDiv(keys, tile.n);
  ofLongest = ceilDiv(mostKeys, tile.n);
  inAll = queryTiles * ofQueryTile;
}

RotationCosts::RotationCosts(AttentionOp op, const AttentionSizes &sizes,
                             const RotationTile &tile, const TargetInfo &target)
    : fused(0), split(0) {
  int64_t width =
      2 * cast<RankedTensorType>(op.getKCos().getType()).getShape()[1];
  double kiFeatures = double(tile.shape.n * width) / 1024;
  double headDims = double(op.getHeadDim() + op.getValueHeadDim());
  // What one visit takes, and what of it a visit without a rotation takes
  // anyway, beside it; what a query tile takes off. In clocks of an SM.
  double visit = kiFeatures * target.keyRotationClocks, beside = 0, hidden = 0;
  if (tile.isPipelined) {
    visit =
        target.loaderLatencyClocks + kiFeatures * target.loaderRotationClocks;
    beside = target.visitPerProduct * 2.0 *
             double(tile.shape.m * tile.shape.n) * headDims /
             double(target.tensorFlopsPerClock);
    hidden = target.hiddenClocksPerFeature * double(op.getHeadDim());
  }
  // Blocks that share an SM rotate beside each other, and beside each other's
  // reading of K and V.
  bool sharesSm = tile.isPipelined && tile.blocksPerSm > 1;
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
  TileVisits visits(op, sizes, tile.shape);
  // The last query tile is not done sooner than its own visits, or a part of
  // its keys than the part's.
  SizeExpression ofLast = visits.ofQueryTile;
  if (tile.splitsKeys) {
    KeySplits splits(op, sizes, {tile.shape, tile.blocksPerSm}, target,
                     target.smCount);
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
