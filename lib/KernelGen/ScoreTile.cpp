//===- ScoreTile.cpp - Scores of a tile, changed and masked ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ScoreTile.h"
#include "attnfuse/Analysis/ScoreLoads.h"
#include "attnfuse/KernelGen/ScoreChain.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

void ScoreTile::applyChain(KernelBuilder &b, MutableArrayRef<Value> scores,
                           Value firstKey, const StagedLoads &staged) const {
  if (!problem.scalesScores())
    return;
  Part part(b, "score_chain");
  AttentionOp op = problem.getOp();
  ScoreChain chain(op, problem.getAbi());
  ScorePosition at{query.batch, query.head, {},          {},
                   0,           problem.nq, problem.nkv, problem.numHeads};
  Value threadKey = b.add(firstKey, column);
  // Rows and keys past the ends have no elements in the tensors that the region
  // reads by them.
  bool staysInside = llvm::any_of(getElementLoads(op), [&](Operation *load) {
    return !llvm::is_contained(staged.loads, load);
  });
  Value lastRow = b.sub(problem.nq, 1), lastKey = b.sub(problem.nkv, 1);
  // By column tile, so that few staged elements are held at a time.
  for (int64_t columnTile = 0; columnTile < shape.columnTiles; ++columnTile) {
    SmallVector<Values> elements;
    for (size_t n = 0; n < staged.loads.size(); ++n)
      elements.push_back(staged.getElements(n, columnTile));
    for (int64_t rowTile = 0; rowTile < shape.rowTiles; ++rowTile)
      for (int64_t e = 0; e < AccumulatorTile::kElements; ++e) {
        Value &score = scores[shape.getIndex(rowTile, columnTile, e)];
        score = b.mulF(score, b.f32(problem.getScale()),
                       arith::FastMathFlags::contract);
        if (!op.hasScoreChain())
          continue;
        at.query = getRow(b, 2 * rowTile + e / 2);
        at.firstKey = threadKey;
        at.keyOffset = AccumulatorTile::getColumnOffset(2 * columnTile + e % 2);
        if (staysInside) {
          at.query = b.min(at.query, lastRow);
          at.firstKey = b.min(b.add(threadKey, at.keyOffset), lastKey);
          at.keyOffset = 0;
        }
        SmallVector<ScoreChain::KnownLoad> known;
        for (auto [load, ofLoad] : llvm::zip_equal(staged.loads, elements))
          known.push_back({load, ofLoad[e]});
        score = chain.apply(b, score, at, known, staged.result);
      }
  }
}

void ScoreTile::applyMask(KernelBuilder &b, MutableArrayRef<Value> scores,
                          Value firstKey) const {
  Part part(b, "mask");
  const BandLimits &limits = problem.limits;
  Value threadKey = b.add(firstKey, column);
  Value hidden = b.f32(-std::numeric_limits<double>::infinity());
  for (int64_t r = 0; r < shape.getNumRows(); ++r) {
    // Limits of a row relative to the thread's first key, so that keys compare
    // as constants.
    Value first, last = b.sub(problem.nkv, 1);
    if (limits.upper)
      last = b.min(last, b.add(getRow(b, r), limits.upper));
    last = b.sub(last, threadKey);
    if (limits.lower)
      first = b.sub(b.add(getRow(b, r), limits.lower), threadKey);
    for (auto [n, index] : llvm::enumerate(shape.getRowIndices(r))) {
      Value key = b.i32(AccumulatorTile::getColumnOffset(n));
      Value visible = b.le(key, last);
      if (limits.lower)
        visible = b.andI(visible, b.le(first, key));
      scores[index] = b.select(visible, scores[index], hidden);
    }
  }
}
