//===- WeightedSum.cpp - Weights times v, row by row ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightedSum.h"
#include "llvm/Support/Parallel.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;

/// Calls `visit(row, r)` for every row number r of a matrix of `shape`. Rows
/// are independent of each other and run in parallel.
template <typename Visit>
static void forEachRow(ArrayRef<int64_t> shape, bool wantErrors, Visit visit) {
  int64_t heads = shape[1], queries = shape[2];
  llvm::parallelFor(0, shape[0] * heads * queries, [&](size_t number) {
    int64_t r = number;
    Row row(r / queries / heads, r / queries % heads, r % queries, shape,
            wantErrors);
    visit(row, r);
  });
}

namespace {
/// Output and expected error of one row.
class RowSum {
public:
  RowSum(const Row &row, const Array &value, const SumTypes &types)
      : row(row), value(value), weightRoundoff(getUnitRoundoff(types.value)),
        outputRoundoff(getUnitRoundoff(types.output)),
        underflow(getUnderflow(types.output)) {}

  void compute(double *output, double *error) const {
    int64_t dim = value.shape[3], heads = value.shape[1];
    int64_t head = row.h / (row.hq / heads);
    const double *values =
        &value.floats[(row.b * heads + head) * row.nkv * dim];
    std::vector<double> squares(dim, 0.0);
    double numVisible = 0;
    for (int64_t j = 0; j < row.nkv; ++j)
      numVisible += row.visible[j] && row.score[j] != 0;
    double accumulation = kRoundoffF32 * 2 * std::sqrt(numVisible);
    for (int64_t j = 0; j < row.nkv; ++j) {
      if (!row.visible[j])
        continue;
      const double *v = values + j * dim;
      // A weight of 0 adds nothing, whatever v is.
      double weight = row.score[j];
      if (weight != 0)
        for (int64_t d = 0; d < dim; ++d)
          output[d] += weight * v[d];
      if (!row.wantErrors)
        continue;
      double unit = std::pow(weight * (weightRoundoff + accumulation), 2) +
                    std::pow(row.error[j], 2);
      if (unit != 0)
        for (int64_t d = 0; d < dim; ++d)
          squares[d] += unit * v[d] * v[d];
    }
    if (!row.wantErrors)
      return;
    // Roundings that all weights of a row share, and that of the output.
    double relative = std::pow(weightRoundoff, 2) +
                      std::pow(outputRoundoff, 2) + std::pow(accumulation, 2) +
                      std::pow(row.divisorError, 2);
    for (int64_t d = 0; d < dim; ++d)
      error[d] =
          std::isinf(row.divisorError)
              ? INFINITY
              : std::sqrt(squares[d] + relative * output[d] * output[d]) +
                    underflow;
  }

private:
  const Row &row;
  const Array &value;
  double weightRoundoff, outputRoundoff, underflow;
};
} // namespace

SumResults reference::weightedSum(const ScoreNode &weights,
                                  ArrayRef<int64_t> shape, const Array *value,
                                  const SumTypes &types, bool wantErrors) {
  SumResults results;
  std::vector<int64_t> rows(shape.begin(), shape.end() - 1);
  results.lse = Array::ofFloats(rows);
  if (wantErrors)
    results.lseError = Array::ofFloats(rows);
  if (value) {
    std::vector<int64_t> outputShape = rows;
    outputShape.push_back(value->shape[3]);
    results.output = Array::ofFloats(outputShape);
    if (wantErrors)
      results.outputError = Array::ofFloats(outputShape);
  }
  forEachRow(shape, wantErrors, [&](Row &row, int64_t r) {
    weights.evaluate(row);
    results.lse.floats[r] = row.lse;
    if (wantErrors)
      results.lseError.floats[r] = row.lseError;
    if (!value)
      return;
    int64_t dim = value->shape[3];
    RowSum(row, *value, types)
        .compute(results.output.floats.data() + r * dim,
                 wantErrors ? results.outputError.floats.data() + r * dim
                            : nullptr);
  });
  return results;
}

std::pair<Array, Array> reference::evaluateScores(const ScoreNode &node,
                                                  ArrayRef<int64_t> shape,
                                                  bool wantErrors) {
  Array scores = Array::ofFloats(shape);
  Array errors = Array::ofFloats(wantErrors ? shape : ArrayRef<int64_t>(0));
  forEachRow(shape, wantErrors, [&](Row &row, int64_t r) {
    node.evaluate(row);
    for (int64_t j = 0; j < row.nkv; ++j) {
      int64_t index = r * row.nkv + j;
      scores.floats[index] = row.visible[j] ? row.score[j] : -INFINITY;
      if (wantErrors && row.visible[j])
        errors.floats[index] =
            row.error[j] + 4 * kRoundoffF32 * std::abs(row.score[j]);
    }
  });
  return {std::move(scores), std::move(errors)};
}
