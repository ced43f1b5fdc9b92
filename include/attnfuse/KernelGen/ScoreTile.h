//===- ScoreTile.h - Scores of a tile, changed and masked -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SCORETILE_H
#define ATTNFUSE_KERNELGEN_SCORETILE_H

#include "attnfuse/KernelGen/AccumulatorTile.h"
#include "attnfuse/KernelGen/AttentionProblem.h"

namespace mlir::attnfuse::kernelgen {

/// One thread's elements of tiles of the score matrix, between the product
/// with K and the normalizer.
class ScoreTile {
public:
  /// `row` is the thread's row 0 in the score matrix, `column` its first column
  /// in a tile.
  ScoreTile(const AttentionProblem &problem, const QueryTile &query,
            AccumulatorTile shape, Value row, Value column)
      : problem(problem), query(query), shape(shape), row(row), column(column) {
  }

  /// Loads of the score region, and the values of the n-th for a column tile of
  /// 8, by accumulator element.
  struct StagedLoads {
    SmallVector<Operation *> loads;
    llvm::function_ref<Values(int64_t n, int64_t columnTile)> getElements;
    /// What is wanted of the region, by default what it yields.
    Value result = {};
  };

  /// Scales the scores and runs the op's score region on them, if that is not
  /// left to the normalizer. `firstKey` is the tile's. There is one row tile if
  /// loads are staged.
  void applyChain(KernelBuilder &b, MutableArrayRef<Value> scores,
                  Value firstKey, const StagedLoads &staged) const;
  void applyChain(KernelBuilder &b, MutableArrayRef<Value> scores,
                  Value firstKey) const {
    applyChain(b, scores, firstKey, StagedLoads());
  }
  /// Sets the scores to -inf that a band or the end of the keys hides.
  void applyMask(KernelBuilder &b, MutableArrayRef<Value> scores,
                 Value firstKey) const;

private:
  Value getRow(KernelBuilder &b, int64_t index) const {
    return b.add(row, AccumulatorTile::getRowOffset(index));
  }

  const AttentionProblem &problem;
  QueryTile query;
  AccumulatorTile shape;
  Value row, column;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_SCORETILE_H
