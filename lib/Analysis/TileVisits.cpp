//===- TileVisits.cpp - Tiles of a launch and what they visit -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/TileVisits.h"
#include "llvm/Support/MathExtras.h"

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

/// Keys that a tile of `tileM` rows reaches by one side of a band, on average
/// over all tiles, limited to those that exist.
static SizeExpression getKeysOfSide(Alignment align, bool isRight,
                                    int64_t reach, const AttentionSizes &sizes,
                                    int64_t tileM) {
  const SizeExpression &nq = sizes.queries, &nkv = sizes.keys;
  // Rows see a triangle of `both` x `both` scores and, where there are more
  // keys or more rows, all or none of the others.
  SizeExpression both = min(nq, nkv);
  SizeExpression triangle = ceilDiv(both * both, max(nq * 2, 1));
  SizeExpression moreKeys = max(nkv - nq, 0);
  SizeExpression keys = both - triangle;
  if (align == Alignment::BottomRight)
    keys = isRight ? moreKeys + triangle : triangle;
  else if (!isRight)
    keys = moreKeys + triangle;
  return min(nkv, keys + (tileM / 2 + reach));
}

/// The same by a band. One of two sides is as narrow as the narrower side, and
/// as both of them.
static SizeExpression getKeysOfBand(BandAttr band, const AttentionSizes &sizes,
                                    int64_t tileM) {
  std::optional<int64_t> left = band.getLeft(), right = band.getRight();
  auto ofSide = [&](bool isRight, int64_t reach) {
    return getKeysOfSide(band.getAlign(), isRight, reach, sizes, tileM);
  };
  if (!left || !right)
    return ofSide(bool(right), right ? *right : left.value_or(0));
  // Rows beyond the keys' diagonal see none.
  SizeExpression inside = ceilDiv(min(sizes.keys, *left + *right + tileM) *
                                      min(sizes.queries, sizes.keys),
                                  max(sizes.queries, 1));
  return min(min(inside, ofSide(true, *right)), ofSide(false, *left));
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
    // No more are listed than there are, and no block reaches beyond the keys.
    int64_t queryBlock = blocks.getQueryBlock(),
            keyBlock = blocks.getKeyBlock();
    SizeExpression listed =
        min(*sizes.numBlocks, lists * ceilDiv(sizes.queries, queryBlock) *
                                  ceilDiv(sizes.keys, keyBlock));
    SizeExpression tiles = ceilDiv(min(sizes.queries, queryBlock), rows) *
                           ceilDiv(min(sizes.keys, keyBlock), tile.n);
    inAll = listed * ceilDiv(heads, max(lists, 1)) * tiles;
    ofQueryTile = ofLongest =
        min(ceilDiv(inAll, max(queryTiles, 1)), ceilDiv(sizes.keys, tile.n));
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
