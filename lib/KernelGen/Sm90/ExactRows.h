//===- ExactRows.h - Output rows where numbers are not finite ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_KERNELGEN_SM90_EXACTROWS_H
#define ATTNFUSE_LIB_KERNELGEN_SM90_EXACTROWS_H

#include "BlockContext.h"
#include "attnfuse/KernelGen/AccumulatorTile.h"
#include "attnfuse/KernelGen/Normalizer.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// Computes a warp's 16 rows of the output by itself: straight from global
/// memory, so that it needs nothing that the other warps or the loader have,
/// and in few registers. Far slower than the pipeline; meant for the rare rows
/// in which infinities and NaN meet weights of 0 (ValueFilter.h), or have
/// spoilt a row's reference.
class ExactRows {
public:
  /// Columns of the output that are computed at a time.
  static constexpr int64_t kColumns = 16;
  static constexpr AccumulatorTile kShape{1,
                                          kColumns / AccumulatorTile::kColumns};

  /// `row` is the thread's row 0 in the score matrix.
  ExactRows(const BlockContext &context, const OnlineNormalizer &normalizer,
            const QueryTile &query, TileWalk walk, Value row, Value lane)
      : context(context), problem(context.problem), normalizer(normalizer),
        query(query), walk(walk), row(row), lane(lane) {}

  using Rows = OnlineNormalizer::Rows;

  /// Calls `store` with the first column (a run-time value) and the elements
  /// (by kShape) of each part of the output. Returns the finished rows.
  Rows emit(KernelBuilder &b,
            function_ref<void(Value column, ArrayRef<Value> output)> store);

private:
  /// Of the keys so far: the rows, and their weights times the finite elements
  /// of V and times marks of the others (ValueFilter.h).
  struct Sums {
    Rows rows;
    Values output, marks;
    Values flatten() const;
    static Sums unflatten(ValueRange values);
  };

  Sums getInitial(KernelBuilder &b) const;
  Sums sumOverKeys(KernelBuilder &b, Value column);
  void addKeys(KernelBuilder &b, Sums &sums, Value firstKey, Value column);
  Values getScores(KernelBuilder &b, Value firstKey);

  const BlockContext &context;
  const AttentionProblem &problem;
  const OnlineNormalizer &normalizer;
  QueryTile query;
  TileWalk walk;
  Value row, lane;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_LIB_KERNELGEN_SM90_EXACTROWS_H
