//===- TileHandoff.cpp - From who deals tiles to who computes -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/TileHandoff.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

namespace {
/// The words of a record.
enum Word { kFirstRow, kHead, kBatch, kPart };
/// In place of a part, which is 0 where keys are not split.
constexpr int64_t kEnd = -1;
} // namespace

/// By its address and not by its symbol, whose address would be made anew.
Value TileHandoff::getRecord(KernelBuilder &b, Value round) const {
  return b.create<LLVM::IntToPtrOp>(b.sharedPtrType(), slot.getTile(b, round));
}

void TileHandoff::write(KernelBuilder &b, Value round,
                        ArrayRef<Value> words) const {
  slot.waitEmpty(b, round);
  b.store(b.makeVector(words), getRecord(b, round), kQueryTileBytes);
  arrive(b, slot.getFull(b, round));
}

void TileHandoff::put(KernelBuilder &b, Value round,
                      const QueryTile &tile) const {
  write(
      b, round,
      {tile.firstRow, tile.head, tile.batch, tile.part ? tile.part : b.i32(0)});
}

void TileHandoff::putEnd(KernelBuilder &b, Value round) const {
  write(b, round, {b.i32(0), b.i32(0), b.i32(0), b.i32(kEnd)});
}

Values TileHandoff::take(KernelBuilder &b, Value round,
                         Value isWarpLeader) const {
  slot.waitFull(b, round);
  Value vector = b.load(VectorType::get({kWords}, b.getI32Type()),
                        getRecord(b, round), kQueryTileBytes);
  // All lanes have the same: for the assembler, which keeps such values in
  // registers of the warp.
  Values words;
  for (int64_t word = 0; word < kWords; ++word)
    words.push_back(b.firstLane(b.extractElement(vector, word)));
  syncWarp(b);
  slot.releaseIf(b, isWarpLeader, round);
  return words;
}

Value TileHandoff::isTile(KernelBuilder &b, ValueRange record) {
  return b.le(b.i32(0), record[kPart]);
}

QueryTile TileHandoff::getTile(KernelBuilder &b,
                               const AttentionProblem &problem,
                               ValueRange record) {
  return problem.getQueryTileAt(b, record[kBatch], record[kHead],
                                record[kFirstRow], record[kPart]);
}
