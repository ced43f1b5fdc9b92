//===- TileOrder.cpp - Which block computes which query tile --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/TileOrder.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;
namespace json = llvm::json;

/// Query heads of which K and V fill half of the cache, in whole groups that
/// share a key head; at least 1, and an i32 for all sizes.
static json::Value getHeadsPerSection(const AttentionProblem &problem,
                                      int64_t l2Bytes) {
  AttentionOp op = problem.getOp();
  const KernelAbi &abi = problem.getAbi();
  auto apply = [](StringRef operation, json::Value a, json::Value b) {
    return json::Value(json::Array{operation, std::move(a), std::move(b)});
  };
  int64_t bytesPerKey = 2 * (op.getHeadDim() + op.getValueHeadDim());
  json::Value keyHeads = apply(
      "ceildiv", l2Bytes / 2,
      apply("max",
            apply("mul", abi.getDimExpression(op.getKey(), 2), bytesPerKey),
            1));
  json::Value group =
      apply("ceildiv", abi.getDimExpression(op.getQuery(), 1),
            apply("max", abi.getDimExpression(op.getKey(), 1), 1));
  return apply(
      "min",
      apply("max", apply("mul", std::move(keyHeads), std::move(group)), 1),
      kMaxLength);
}

TileOrder::TileOrder(KernelBuilder &b, const AttentionProblem &problem,
                     int64_t tileM, int64_t l2Bytes)
    : problem(problem), tileM(tileM), block(b.blockId()),
      gridSize(b.gridSize()) {
  KernelAbi &abi = problem.getAbi();
  AttentionOp op = problem.getOp();
  rowBlocks = b.ceilDiv(problem.nq, tileM);
  heads = b.mul(b.toI32(abi.getDim(b, op.getQuery(), 0)), problem.numHeads);
  headsPerSection = b.min(
      heads, b.toI32(abi.getValue(b, getHeadsPerSection(problem, l2Bytes))));
  total = b.mul(heads, rowBlocks);
}

Value TileOrder::getTileNumber(KernelBuilder &b, Value round) const {
  Value backwards = b.sub(b.sub(gridSize, 1), block);
  Value isOdd = b.eq(b.andI(round, 1), 1);
  return b.add(b.mul(round, gridSize), b.select(isOdd, backwards, block));
}

void TileOrder::forEachTile(
    KernelBuilder &b,
    function_ref<Value(Value, const QueryTile &, Value)> body) const {
  // Carries (round, number). A block without a tile in one round has none in
  // later ones.
  b.whileLoop(
      {b.i32(0), b.i32(0)},
      [&](ValueRange state) { return b.lt(getTileNumber(b, state[0]), total); },
      [&](ValueRange state) -> Values {
        QueryTile query = getTile(b, getTileNumber(b, state[0]));
        Value number = body(state[0], query, state[1]);
        return {b.add(state[0], 1), number};
      });
}

QueryTile TileOrder::getTile(KernelBuilder &b, Value tileNumber) const {
  Value perSection = b.mul(headsPerSection, rowBlocks);
  Value firstHead = b.mul(b.divU(tileNumber, perSection), headsPerSection);
  Value inSection = b.remU(tileNumber, perSection);
  Value sectionHeads = b.min(headsPerSection, b.sub(heads, firstHead));
  Value rowBlock = b.divU(inSection, sectionHeads);
  // Below a diagonal the last rows have the most keys.
  if (problem.limits.upper)
    rowBlock = b.sub(b.sub(rowBlocks, 1), rowBlock);
  Value head = b.add(firstHead, b.remU(inSection, sectionHeads));
  return problem.getQueryTile(b, head, rowBlock, tileM);
}
