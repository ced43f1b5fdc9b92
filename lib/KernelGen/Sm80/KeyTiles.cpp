//===- KeyTiles.cpp - The ring of K and V tiles ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyTiles.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
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
      plan(dims, tile), keys(getOperand(problem.getOp().getKey(), dims.qk,
                                        query, b.offsetPtr(shared, plan.k))),
      values(getOperand(problem.getOp().getValue(), dims.v, query,
                        b.offsetPtr(shared, plan.v))),
      thread(thread), walk(problem.getWalk(b, tile, query)) {}

KeyTiles::Operand KeyTiles::getOperand(Value tensor, int64_t paddedColumns,
                                       const QueryTile &query,
                                       Value firstTile) const {
  return {tensor, SharedLayout(tile.tileN, paddedColumns),
          cast<RankedTensorType>(tensor.getType()).getDimSize(3),
          problem.getHeadBase(b, tensor, query.batch, query.keyHead),
          firstTile};
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

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

TileCopy KeyTiles::getCopy(const Operand &operand) const {
  return TileCopy(b, operand.layout, operand.columns, tile.getThreads(),
                  thread);
}

void KeyTiles::load(const Operand &operand, ValueRange position,
                    Value slotOffset) {
  getCopy(operand).load(b,
                        {operand.base,
                         problem.getAbi().getStride(b, operand.tensor, 2),
                         walk.getFirstKey(b, position), problem.nkv},
                        getTile(operand, slotOffset));
}

void KeyTiles::loadGroup(ValueRange position, function_ref<void()> load) {
  b.ifThen(walk.isValid(b, position), load);
  commitCopies(b);
}

void KeyTiles::loadBoth(ValueRange position, Value slotOffset) {
  loadGroup(position, [&] {
    load(keys, position, slotOffset);
    load(values, position, slotOffset);
  });
}

void KeyTiles::loadFirst(ValueRange position) {
  if (tile.stages == 1)
    return loadGroup(position, [&] { load(keys, position, b.i32(0)); });
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
    load(values, position, slotOffset);
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
  loadGroup(next, [&] { load(keys, next, slotOffset); });
}

void KeyTiles::filterValues(Value keepsFinite, Value slotOffset) {
  Type type = problem.getOp().getElementType();
  getCopy(values).transform(b, getValueTile(slotOffset), [&](Value pair) {
    return kernelgen::filterValues(b, pair, type, keepsFinite);
  });
  b.barrier();
}
