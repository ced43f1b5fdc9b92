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

/// Query heads, or packs of them, of which K and V fill half of the cache, in
/// whole groups that share a key head; at least 1, and an i32 for all sizes.
static json::Value getHeadsPerSection(const AttentionProblem &problem,
                                      const KernelTile &shape,
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
      apply("ceildiv",
            apply("ceildiv", abi.getDimExpression(op.getQuery(), 1),
                  apply("max", abi.getDimExpression(op.getKey(), 1), 1)),
            shape.packedHeads);
  return apply(
      "min",
      apply("max", apply("mul", std::move(keyHeads), std::move(group)), 1),
      kMaxLength);
}

static TileLengths getLengths(const AttentionProblem &problem) {
  // Where keys are split, all blocks begin at once with what they get.
  if (!problem.limits.upper || problem.splitsKeys())
    return TileLengths::Equal;
  AttentionOp op = problem.getOp();
  return problem.limits.lower || op.getRowOffsets() ? TileLengths::Any
                                                    : TileLengths::Growing;
}

static TileDeal getDeal(KernelBuilder &b, const AttentionProblem &problem,
                        const KernelTile &shape, int64_t l2Bytes) {
  Value headsPerSection = b.toI32(problem.getAbi().getValue(
      b, getHeadsPerSection(problem, shape, l2Bytes)));
  Value heads = problem.getNumHeadGroups(b, shape);
  // Each part is dealt out like a head. The grid has a block for each.
  if (problem.splitsKeys())
    heads = b.mul(heads, problem.numParts);
  return TileDeal(b, b.blockId(), b.gridSize(), heads,
                  problem.getNumRowBlocks(b, shape), headsPerSection,
                  getLengths(problem));
}

TileOrder::TileOrder(KernelBuilder &b, const AttentionProblem &problem,
                     const KernelTile &shape, int64_t l2Bytes)
    : problem(problem), shape(shape),
      deal(getDeal(b, problem, shape, l2Bytes)) {}

TileRecord TileOrder::getFirst(KernelBuilder &b) const {
  return getRecord(b, b.i32(0));
}

TileRecord TileOrder::getNext(KernelBuilder &b, Value round) const {
  // Where keys are split, the grid has a block for each part of a tile.
  return problem.splitsKeys() ? TileRecord::getNone(b) : getRecord(b, round);
}

TileRecord TileOrder::getRecord(KernelBuilder &b, Value round) const {
  TileRecord none = TileRecord::getNone(b);
  return {b.ifElse(
      deal.hasTile(b, round), ValueRange(none.words).getTypes(),
      [&] { return TileRecord::get(b, getTile(b, round)).words; },
      [&] { return none.words; })};
}

QueryTile TileOrder::getTile(KernelBuilder &b, Value round) const {
  TileDeal::Tile tile = deal.getTile(b, round);
  Value part;
  if (problem.splitsKeys()) {
    part = b.remU(tile.head, problem.numParts);
    tile.head = b.divU(tile.head, problem.numParts);
  }
  return problem.getQueryTile(b, shape, tile.head, tile.rowBlock, part);
}
