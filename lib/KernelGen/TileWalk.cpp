//===- TileWalk.cpp - Which key tiles a query tile visits
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

TileWalk::TileWalk(KernelBuilder &b, BandLimits limits,
                   std::optional<BlockList> blocks, Value firstRow,
                   int64_t tileM, int64_t tileN, Value nq, Value nkv)
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
}

Values TileWalk::begin(KernelBuilder &b) {
  return blocks ? seek(b, blocks->begin, b.i32(0)) : Values{firstTile};
}

Values TileWalk::next(KernelBuilder &b, ValueRange position) {
  if (!blocks)
    return {b.add(position[0], 1)};
  return seek(b, position[0], b.add(position[1], 1));
}

Value TileWalk::isValid(KernelBuilder &b, ValueRange position) {
  return blocks ? b.lt(position[0], blocks->end) : b.lt(position[0], endTile);
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

Values TileWalk::seek(KernelBuilder &b, Value entry, Value tileInBlock) {
  int64_t tiles = blocks->tilesPerBlock;
  // Carries (entry, tile in block, tile, searching).
  Values found = b.whileLoop(
      {entry, tileInBlock, b.i32(0), b.i1(true)},
      [&](ValueRange state) { return state[3]; },
      [&](ValueRange state) -> Values {
        Value wraps = b.eq(state[1], tiles);
        Value entry = b.add(state[0], b.select(wraps, b.i32(1), b.i32(0)));
        Value inBlock = b.select(wraps, b.i32(0), state[1]);
        Value inList = b.lt(entry, blocks->end);
        Value index = b.toI64(entry);
        Values tile = b.ifElse(
            inList, b.getI32Type(),
            [&]() -> Values {
              Value address = b.offsetPtr(
                  blocks->indices, b.mul(b.mul(index, blocks->stride), 4));
              Value block = b.load(b.getI32Type(), address, 4);
              return {b.add(b.mul(block, tiles), inBlock)};
            },
            [&]() -> Values { return {b.i32(0)}; });
        Value inRange =
            b.andI(b.le(firstTile, tile[0]), b.lt(tile[0], endTile));
        Value searching = b.andI(inList, b.xorI(inRange, b.i1(true)));
        Value nextInBlock = b.select(searching, b.add(inBlock, 1), inBlock);
        return {entry, nextInBlock, tile[0], searching};
      });
  return {found[0], found[1], found[2]};
}
