//===- OutputRows.h - A thread's rows of the results ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_OUTPUTROWS_H
#define ATTNFUSE_KERNELGEN_OUTPUTROWS_H

#include "attnfuse/KernelGen/AccumulatorTile.h"
#include "attnfuse/KernelGen/AttentionProblem.h"
#include "attnfuse/KernelGen/Normalizer.h"

namespace mlir::attnfuse::kernelgen {

/// Stores what a thread holds of the results straight to global memory, of
/// split keys to where the parts are kept; rows past the end and columns past
/// the head size are left out.
class OutputRows {
public:
  /// `row` is the thread's row 0 in the score matrix, `column` its first output
  /// column in the part of the output that starts at `firstColumn`, a run-time
  /// value; null stands for 0.
  OutputRows(const AttentionProblem &problem, const QueryTile &query,
             AccumulatorTile shape, Value row, Value column,
             Value firstColumn = {})
      : problem(problem), query(query), shape(shape), row(row), column(column),
        firstColumn(firstColumn) {}

  Value getRow(KernelBuilder &b, int64_t index) const {
    return b.add(row, AccumulatorTile::getRowOffset(index));
  }
  /// Four lanes write the neighbouring elements of 8 columns.
  void store(KernelBuilder &b, ArrayRef<Value> output) const;
  /// Stores the f32 elements over those stored before that are not finite.
  void replaceNonFinite(KernelBuilder &b, ArrayRef<Value> output) const;
  /// Stores NaN over the elements whose `mark` is not 0.
  void storeNaN(KernelBuilder &b, ArrayRef<Value> marks) const;
  /// Stores what is kept of the finished rows: the log-sum-exp, if the function
  /// returns it; of split keys their states.
  void storeStates(KernelBuilder &b, const OnlineNormalizer &normalizer,
                   ArrayRef<OnlineNormalizer::Row> rows) const;
  /// The same for rows of which NaN was stored.
  void replaceNaNStates(KernelBuilder &b, const OnlineNormalizer &normalizer,
                        ArrayRef<OnlineNormalizer::Row> rows) const;

private:
  /// Calls `body` for every pair of neighbouring columns inside the output:
  /// index of the first element, and the pair's address.
  void forEachPair(KernelBuilder &b,
                   function_ref<void(int64_t index, Value address)> body) const;

  /// Calls `body` for every row whose state this thread stores: the row's
  /// number in the thread, and the state's address.
  void forEachState(KernelBuilder &b,
                    function_ref<void(int64_t row, Value address)> body) const;
  void storeState(KernelBuilder &b, const OnlineNormalizer &normalizer,
                  const OnlineNormalizer::Row &row, Value address) const;

  const AttentionProblem &problem;
  QueryTile query;
  AccumulatorTile shape;
  Value row, column, firstColumn;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_OUTPUTROWS_H
