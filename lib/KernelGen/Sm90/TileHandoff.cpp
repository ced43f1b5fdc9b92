//===- TileHandoff.cpp - From who deals tiles to who computes -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/TileHandoff.h"
#include "attnfuse/KernelGen/KernelResources.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

/// Words of a record: first row, head, batch entry, part.
static constexpr int64_t kWords = kQueryTileBytes / 4;
/// In place of a first row.
static constexpr int64_t kEnd = -1;

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
  write(b, round, Values(kWords, b.i32(kEnd)));
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

void TileHandoff::forEachTile(
    KernelBuilder &b, const AttentionProblem &problem, Value isWarpLeader,
    function_ref<Value(Value, const QueryTile &, Value)> body) const {
  // Carries the round, the next key tile's number and the round's record.
  Values init{b.i32(0), b.i32(0)};
  init.append(take(b, b.i32(0), isWarpLeader));
  b.whileLoop(
      init, [&](ValueRange state) { return b.le(b.i32(0), state[2]); },
      [&](ValueRange state) -> Values {
        QueryTile tile = problem.getQueryTileAt(b, state[4], state[3], state[2],
                                                state[5]);
        Value number = body(state[0], tile, state[1]);
        Value round = b.add(state[0], 1);
        Values next{round, number};
        next.append(take(b, round, isWarpLeader));
        return next;
      });
}
