//===- WarpProducts.cpp - A warp's rows of S and O ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpProducts.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm80;

WarpProducts::WarpProducts(KernelBuilder &b, const KernelTile &tile,
                           const PaddedHeadDims &dims, Type type,
                           Value queryTile, Value warpRow, Value lane)
    : b(b), queryLayout(tile.tileM, dims.qk), keyLayout(tile.tileN, dims.qk),
      valueLayout(tile.tileN, dims.v),
      scoreShape{tile.getRowTilesPerWarp(),
                 tile.tileN / AccumulatorTile::kColumns},
      outputShape{tile.getRowTilesPerWarp(),
                  dims.v / AccumulatorTile::kColumns},
      type(type), queryTile(queryTile), warpRow(warpRow), lane(lane) {}

/// Columns tiles 2 `pair` and 2 `pair` + 1 of `accumulators` += A B, by row
/// tile; `fragments` are B's of both.
static void multiplyPair(KernelBuilder &b, Type type, ArrayRef<Values> a,
                         ValueRange fragments, AccumulatorTile shape,
                         int64_t pair, MutableArrayRef<Value> accumulators) {
  for (int64_t rowTile = 0; rowTile < shape.rowTiles; ++rowTile)
    for (int64_t of = 0; of < 2; ++of)
      multiplyAccumulate(
          b, type, a[rowTile], fragments.slice(2 * of, 2),
          accumulators.slice(shape.getIndex(rowTile, 2 * pair + of, 0),
                             AccumulatorTile::kElements));
}

int64_t WarpProducts::getQuerySteps() const {
  return queryLayout.getColumns() / kMmaK;
}

SmallVector<Values> WarpProducts::loadQuery(int64_t step) const {
  LanePosition position = getLanePositionA(b, lane);
  LaneAddress address(b, queryLayout, queryTile, b.add(warpRow, position.row),
                      position.chunkLowBit);
  SmallVector<Values> fragments;
  for (int64_t rowTile = 0; rowTile < scoreShape.rowTiles; ++rowTile)
    fragments.push_back(loadMatrix(b, address.get(b, rowTile * kMmaM, step * 2),
                                   /*transposed=*/false));
  return fragments;
}

SmallVector<Values> WarpProducts::loadQuery() const {
  SmallVector<Values> fragments;
  for (int64_t step = 0; step < getQuerySteps(); ++step)
    fragments.append(loadQuery(step));
  return fragments;
}

Values WarpProducts::getScores(ArrayRef<Values> query, Value keyTile) const {
  Part part(b, "qk");
  LanePosition position = getLanePositionB(b, lane);
  LaneAddress address(b, keyLayout, keyTile, position.row,
                      position.chunkLowBit);
  Values scores(scoreShape.getSize(), b.f32(0));
  for (int64_t step = 0; step < getQuerySteps(); ++step) {
    SmallVector<Values> a =
        query.empty() ? loadQuery(step)
                      : SmallVector<Values>(query.slice(
                            step * scoreShape.rowTiles, scoreShape.rowTiles));
    for (int64_t pair = 0; pair < scoreShape.columnTiles / 2; ++pair) {
      Values fragments = loadMatrix(
          b, address.get(b, pair * 2 * kMmaN, step * 2), /*transposed=*/false);
      multiplyPair(b, type, a, fragments, scoreShape, pair, scores);
    }
  }
  return scores;
}

void WarpProducts::addWeightedSum(ArrayRef<Value> weights, Value valueTile,
                                  MutableArrayRef<Value> output) const {
  Part part(b, "pv");
  LanePosition position = getLanePositionBTransposed(b, lane);
  LaneAddress address(b, valueLayout, valueTile, position.row,
                      position.chunkLowBit);
  for (int64_t step = 0; step < valueLayout.getRows() / kMmaK; ++step) {
    SmallVector<Values> a;
    for (int64_t rowTile = 0; rowTile < scoreShape.rowTiles; ++rowTile) {
      Values &fragment = a.emplace_back();
      // Two neighbouring accumulators are one A fragment.
      for (int64_t pair = 0; pair < 4; ++pair) {
        int64_t first = scoreShape.getIndex(rowTile, step * 2, pair * 2);
        fragment.push_back(b.pack(weights[first], weights[first + 1], type));
      }
    }
    for (int64_t pair = 0; pair < outputShape.columnTiles / 2; ++pair) {
      Values fragments = loadMatrix(b, address.get(b, step * kMmaK, pair * 2),
                                    /*transposed=*/true);
      multiplyPair(b, type, a, fragments, outputShape, pair, output);
    }
  }
}
