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
