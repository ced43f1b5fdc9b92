//===- TileWalk.cpp - Which key tiles a query tile visits -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/TileWalk.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

/// A bound of a band that never limits.
static constexpr int64_t kUnlimited = kMaxLength + 1;

BandLimits BandLimits::get(KernelBuilder &b, ArrayAttr bands, Value nq,
                           Value nkv) {
  BandLimits limits;
  for (BandAttr band : bands.getAsRange<BandAttr>()) {
    Value diagonal =
        band.getAlign() == Alignment::BottomRight ? b.sub(nkv, nq) : b.i32(0);
    if (band.getLeft()) {
      Value lower = b.sub(diagonal, std::min(*band.getLeft(), kUnlimited));
      limits.lower = limits.lower ? b.max(limits.lower, lower) : lower;
    }
    if (band.getRight()) {
      Value upper = b.add(diagonal, std::min(*band.getRight(), kUnlimited - 1));
      limits.upper = limits.upper ? b.min(limits.upper, upper) : upper;
    }
  }
  return limits;
}

/// The tiles [first, end) of a part of `count` tiles.
static std::pair<Value, Value>
getTilesOfPart(KernelBuilder &b, const WalkPart &part, Value count) {
  Value each = b.divU(count, part.count);
  Value oneMore = b.remU(count, part.count);
  auto getStart = [&](Value index) {
    return b.add(b.mul(index, each), b.min(index, oneMore));
  };
  return {getStart(part.index), getStart(b.add(part.index, 1))};
}

TileWalk::TileWalk(KernelBuilder &b, BandLimits limits,
                   std::optional<BlockList> blocks, Value firstRow,
                   int64_t tileM, int64_t tileN, Value nq, Value nkv,
                   std::optional<WalkPart> part)
    : limits(limits), blocks(blocks), firstRow(firstRow), nkv(nkv),
      tileN(tileN) {
  lastRow = b.sub(b.min(b.add(firstRow, tileM), nq), 1);
  Value endKey = nkv;
  if (limits.upper)
    endKey = b.max(b.min(b.add(b.add(lastRow, limits.upper), 1), nkv), 0);
  endTile = b.ceilDiv(endKey, tileN);
  firstTile = limits.lower
                  ? b.divU(b.max(b.add(firstRow, limits.lower), 0), tileN)
                  : b.i32(0);
  if (!part)
    return;
  if (blocks) {
    takePartOfList(b, *part);
    return;
  }
  auto [first, end] =
      getTilesOfPart(b, *part, b.max(b.sub(endTile, firstTile), 0));
  endTile = b.add(firstTile, end);
  firstTile = b.add(firstTile, first);
}

void TileWalk::takePartOfList(KernelBuilder &b, const WalkPart &part) {
  int64_t tiles = blocks->tilesPerBlock;
  Value begin = blocks->begin;
  auto [first, end] =
      getTilesOfPart(b, part, b.mul(b.sub(blocks->end, begin), tiles));
  endOfList = {b.add(begin, b.divU(end, tiles)), b.remU(end, tiles)};
  blocks->begin = b.add(begin, b.divU(first, tiles));
  firstInBlock = b.remU(first, tiles);
}

Values TileWalk::begin(KernelBuilder &b) {
  if (!blocks)
    return {b.sub(endTile, 1)};
  // Carries (entry, tile in block, tile); -1 stands for an ended list.
  Values last{b.sub(blocks->end, 1), b.i32(blocks->tilesPerBlock - 1)};
  if (firstInBlock)
    last = stepBack(b, endOfList);
  auto load = [&](Value entry, Value inBlock) {
    return b.ifElse(
        b.le(blocks->begin, entry), b.getI32Type(),
        [&]() -> Values { return {loadTile(b, entry, inBlock)}; },
        [&]() -> Values { return {b.i32(-1)}; })[0];
  };
  return b.whileLoop(
      {last[0], last[1], load(last[0], last[1])},
      [&](ValueRange position) { return b.le(endTile, position[2]); },
      [&](ValueRange position) -> Values {
        Values previous = stepBack(b, position);
        return {previous[0], previous[1], load(previous[0], previous[1])};
      });
}

Values TileWalk::next(KernelBuilder &b, ValueRange position, int64_t count) {
  if (!blocks)
    return {b.sub(position[0], count)};
  Values previous(position);
  for (; count > 0; --count)
    previous = stepBack(b, previous);
  // Before the first entry of the list its first is loaded again.
  Value entry = b.max(previous[0], blocks->begin);
  return {previous[0], previous[1], loadTile(b, entry, previous[1])};
}

Value TileWalk::isValid(KernelBuilder &b, ValueRange position) {
  Value inRange = b.le(firstTile, position.back());
  if (!blocks)
    return inRange;
  inRange = b.andI(inRange, b.le(blocks->begin, position[0]));
  if (!firstInBlock)
    return inRange;
  return b.andI(inRange, b.orI(b.lt(blocks->begin, position[0]),
                               b.le(firstInBlock, position[1])));
}

Values TileWalk::stepBack(KernelBuilder &b, ValueRange position) {
  Value inBlock = b.sub(position[1], 1);
  Value leaves = b.lt(inBlock, 0);
  return {b.sub(position[0], b.select(leaves, b.i32(1), b.i32(0))),
          b.select(leaves, b.i32(blocks->tilesPerBlock - 1), inBlock)};
}

Value TileWalk::loadTile(KernelBuilder &b, Value entry, Value inBlock) {
  Value address = b.offsetPtr(blocks->indices,
                              b.mul(b.mul(b.toI64(entry), blocks->stride), 4));
  Value block = b.load(b.getI32Type(), address, 4);
  return b.add(b.mul(block, blocks->tilesPerBlock), inBlock);
}

Value TileWalk::getFirstKey(KernelBuilder &b, ValueRange position) {
  return b.mul(position.back(), tileN);
}

Value TileWalk::isBoundary(KernelBuilder &b, Value firstKey) {
  Value lastKey = b.add(firstKey, tileN - 1);
  Value cut = b.le(nkv, lastKey);
  if (limits.upper)
    cut = b.orI(cut, b.lt(b.add(firstRow, limits.upper), lastKey));
  if (limits.lower)
    cut = b.orI(cut, b.lt(firstKey, b.add(lastRow, limits.lower)));
  return cut;
}
