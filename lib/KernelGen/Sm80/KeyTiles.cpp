//===- KeyTiles.cpp - The ring of K and V tiles ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyTiles.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "attnfuse/KernelGen/Sm80/TileCopy.h"
#include "attnfuse/KernelGen/ValueFilter.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm80;

KeyTiles::KeyTiles(KernelBuilder &b, const AttentionProblem &problem,
                   const KernelTile &tile, const QueryTile &query, Value shared,
                   Value thread)
    : b(b), problem(problem), tile(tile),
      dims(problem.getOp().getHeadDim(), problem.getOp().getValueHeadDim()),
      plan(dims, tile), keyLayout(tile.tileN, dims.qk),
      valueLayout(tile.tileN, dims.v), thread(thread),
      firstKeyTile(b.offsetPtr(shared, plan.k)),
      firstValueTile(b.offsetPtr(shared, plan.v)),
      keyBase(problem.getHeadBase(b, problem.getOp().getKey(), query.batch,
                                  query.keyHead)),
      valueBase(problem.getHeadBase(b, problem.getOp().getValue(), query.batch,
                                    query.keyHead)),
      walk(problem.getWalk(b, tile, query)) {}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

Value KeyTiles::getKeyTile(Value slotOffset) const {
  return b.offsetPtr(firstKeyTile, slotOffset);
}

Value KeyTiles::getValueTile(Value slotOffset) const {
  return b.offsetPtr(firstValueTile, slotOffset);
}

Value KeyTiles::getNextSlot(Value slotOffset) const {
  if (tile.stages == 1)
    return slotOffset;
  return b.select(b.eq(slotOffset, getLastSlot()), b.i32(0),
                  b.add(slotOffset, plan.slotBytes));
}

Value KeyTiles::getPreviousSlot(Value slotOffset) const {
  return b.select(b.eq(slotOffset, 0), b.i32(getLastSlot()),
                  b.sub(slotOffset, plan.slotBytes));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void KeyTiles::loadKeys(ValueRange position, Value slotOffset) {
  AttentionOp op = problem.getOp();
  TileCopy(b, keyLayout, op.getHeadDim(), tile.getThreads(), thread)
      .load(b,
            {keyBase, problem.getAbi().getStride(b, op.getKey(), 2),
             walk.getFirstKey(b, position), problem.nkv},
            getKeyTile(slotOffset));
}

void KeyTiles::loadValues(ValueRange position, Value slotOffset) {
  AttentionOp op = problem.getOp();
  TileCopy(b, valueLayout, op.getValueHeadDim(), tile.getThreads(), thread)
      .load(b,
            {valueBase, problem.getAbi().getStride(b, op.getValue(), 2),
             walk.getFirstKey(b, position), problem.nkv},
            getValueTile(slotOffset));
}

void KeyTiles::loadGroup(ValueRange position, function_ref<void()> load) {
  b.ifThen(walk.isValid(b, position), load);
  commitCopies(b);
}

void KeyTiles::loadBoth(ValueRange position, Value slotOffset) {
  loadGroup(position, [&] {
    loadKeys(position, slotOffset);
    loadValues(position, slotOffset);
  });
}

void KeyTiles::loadFirst(ValueRange position) {
  if (tile.stages == 1)
    return loadGroup(position, [&] { loadKeys(position, b.i32(0)); });
  Values at(position);
  for (int64_t ahead = 0; ahead < tile.stages - 1; ++ahead) {
    if (ahead > 0)
      at = b.ifElse(
          walk.isValid(b, at), ValueRange(at).getTypes(),
          [&] { return walk.next(b, at); }, [&] { return at; });
    loadBoth(at, b.i32(ahead * plan.slotBytes));
  }
}

void KeyTiles::awaitKeys(ValueRange position, Value slotOffset) {
  if (tile.stages == 1) {
    Part part(b, "load_v");
    waitCopies(b, 0);
    b.barrier();
    loadValues(position, slotOffset);
    commitCopies(b);
    return;
  }
  Part part(b, "load_ahead");
  waitCopies(b, tile.stages - 2);
  b.barrier();
  loadBoth(walk.next(b, position, tile.stages - 1),
           getPreviousSlot(slotOffset));
}

void KeyTiles::awaitValues(ValueRange next, Value slotOffset) {
  if (tile.stages > 1)
    return;
  Part part(b, "load_k");
  waitCopies(b, 0);
  b.barrier();
  loadGroup(next, [&] { loadKeys(next, slotOffset); });
}

void KeyTiles::filterValues(Value keepsFinite, Value slotOffset) {
  AttentionOp op = problem.getOp();
  TileCopy(b, valueLayout, op.getValueHeadDim(), tile.getThreads(), thread)
      .transform(b, getValueTile(slotOffset), [&](Value pair) {
        return kernelgen::filterValues(b, pair, op.getElementType(),
                                       keepsFinite);
      });
  b.barrier();
}
