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
constexpr int64_t kNoTile = -1;
} // namespace

TileRecord TileRecord::get(KernelBuilder &b, const QueryTile &tile) {
  return {
      {tile.firstRow, tile.head, tile.batch, tile.part ? tile.part : b.i32(0)}};
}

TileRecord TileRecord::getNone(KernelBuilder &b) {
  return {{b.i32(0), b.i32(0), b.i32(0), b.i32(kNoTile)}};
}

Value TileRecord::isTile(KernelBuilder &b) const {
  return b.le(b.i32(0), words[kPart]);
}

QueryTile TileRecord::getTile(KernelBuilder &b,
                              const AttentionProblem &problem) const {
  return problem.getQueryTileAt(b, words[kBatch], words[kHead],
                                words[kFirstRow], words[kPart]);
}

/// By its address and not by its symbol, whose address would be made anew.
Value TileHandoff::getSlot(KernelBuilder &b, Value round) const {
  return b.create<LLVM::IntToPtrOp>(b.sharedPtrType(), ring.getTile(b, round));
}

void TileHandoff::put(KernelBuilder &b, Value round,
                      const TileRecord &record) const {
  ring.waitEmpty(b, round);
  b.store(b.makeVector(record.words), getSlot(b, round), kTileRecordBytes);
  arrive(b, ring.getFull(b, round));
}

TileRecord TileHandoff::take(KernelBuilder &b, Value round,
                             Value isWarpLeader) const {
  ring.waitFull(b, round);
  Value vector = b.load(VectorType::get({TileRecord::kWords}, b.getI32Type()),
                        getSlot(b, round), kTileRecordBytes);
  // All lanes have the same: for the assembler, which keeps such values in
  // registers of the warp.
  TileRecord record;
  for (int64_t word = 0; word < TileRecord::kWords; ++word)
    record.words.push_back(b.firstLane(b.extractElement(vector, word)));
  syncWarp(b);
  ring.releaseIf(b, isWarpLeader, round);
  return record;
}
