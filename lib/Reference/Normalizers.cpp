//===- Normalizers.cpp - Scores to weights --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scores.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;

namespace {
/// Its result has a weight for every key, 0 for the masked ones, so that
/// nothing of its own row's mask is left.
class NormalizerNode : public ScoreNode {
public:
  NormalizerNode(ScoreNodePtr input, Normalizer kind, Type weightType)
      : input(std::move(input)), kind(kind),
        underflow(getUnderflow(weightType)) {}

  void mask(Row &) const override {}

  void score(Row &row) const override {
    Row scores(row.b, row.h, row.i, {0, row.hq, row.nq, row.nkv},
               row.wantErrors);
    input->evaluate(scores);
    for (int64_t j = 0; j < row.nkv; ++j)
      if (scores.score[j] == -INFINITY)
        scores.visible[j] = 0;
    if (kind == Normalizer::Softmax)
      softmax(scores, row);
    else
      relu(scores, row);
  }

private:
  void softmax(const Row &scores, Row &row) const {
    double max = -INFINITY;
    for (int64_t j = 0; j < row.nkv; ++j)
      if (scores.visible[j])
        max =
            std::isnan(scores.score[j]) ? NAN : std::max(max, scores.score[j]);
    double sum = 0, numVisible = 0;
    for (int64_t j = 0; j < row.nkv; ++j) {
      row.score[j] = scores.visible[j] ? std::exp(scores.score[j] - max) : 0.0;
      sum += row.score[j];
      numVisible += scores.visible[j];
    }
    row.lse = numVisible == 0 ? -INFINITY : max + std::log(sum);
    if (numVisible == 0)
      return;
    double lseError = 0, squares = 0;
    for (int64_t j = 0; j < row.nkv; ++j) {
      row.score[j] /= sum;
      if (!row.wantErrors || !scores.visible[j])
        continue;
      double error = getExponentError(scores, j, max);
      lseError += row.score[j] * error;
      // Beyond 1 the first-order model of docs/numerics.md says nothing more of
      // an exponential.
      error = std::min(error, 1.0);
      squares += std::pow(row.score[j] * error, 2);
      row.error[j] = std::hypot(row.score[j] * error, underflow / sum);
    }
    double sumError = kRoundoffF32 * (4 + 2 * std::sqrt(numVisible));
    row.divisorError = std::sqrt(squares) + sumError;
    row.lseError = lseError + sumError +
                   2 * kRoundoffF32 * (std::abs(max) + std::abs(row.lse));
    // Scores below that may be taken as it (spec S5).
    if (max < kLowestScore)
      row.lseError += kLowestScore - max;
  }

  /// Error of s - max in f32 and of the exponential.
  static double getExponentError(const Row &scores, int64_t j, double max) {
    return scores.error[j] + kRoundoffF32 * (8 + 2 * std::abs(scores.score[j]) +
                                             2 * std::abs(max));
  }

  void relu(const Row &scores, Row &row) const {
    double sum = 0, errorSquares = 0, numActive = 0;
    for (int64_t j = 0; j < row.nkv; ++j) {
      double score = scores.score[j];
      row.score[j] = !scores.visible[j] || score < 0 ? 0.0 : score;
      sum += row.score[j];
      // A score just below 0 may come out just above it.
      if (!row.wantErrors || !scores.visible[j] || score < -8 * scores.error[j])
        continue;
      row.error[j] = std::hypot(scores.error[j], underflow);
      errorSquares += std::pow(scores.error[j], 2);
      numActive += 1;
    }
    double divisor = kind == Normalizer::ReluSum      ? sum
                     : kind == Normalizer::ReluLength ? double(row.nkv)
                                                      : 1.0;
    if (kind == Normalizer::ReluSum && numActive > 0) {
      row.divisorError = std::sqrt(errorSquares) / sum +
                         kRoundoffF32 * (2 + 2 * std::sqrt(numActive));
      // Where roundings decide what the row is divided by, or whether it has
      // a weight at all, there is nothing to compare.
      if (!(row.divisorError < 0.1))
        row.divisorError = INFINITY;
    }
    if (divisor == 0)
      return;
    for (int64_t j = 0; j < row.nkv; ++j) {
      row.score[j] /= divisor;
      if (row.wantErrors)
        row.error[j] /= divisor;
    }
  }

  ScoreNodePtr input;
  Normalizer kind;
  double underflow;
};
} // namespace

ScoreNodePtr reference::makeNormalizer(ScoreNodePtr input, Normalizer kind,
                                       Type weightType) {
  return std::make_shared<NormalizerNode>(std::move(input), kind, weightType);
}
