//===- Scores.h - Rows of the score matrix ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores are never held for all queries at once: each op on scores is a node
// that evaluates one row, the scores of one query, from its operand's row.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_SCORES_H
#define ATTNFUSE_LIB_REFERENCE_SCORES_H

#include "Array.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include <memory>

namespace mlir::attnfuse::reference {

/// The scores of query i of head h of batch entry b. After a normaliser, its
/// weights.
struct Row {
  int64_t b, h, i;
  /// Lengths and head count of the whole matrix.
  int64_t nq, nkv, hq;
  /// One entry per key. Masking is sticky (a key once masked stays so), and a
  /// masked key's score is not looked at.
  std::vector<char> visible;
  std::vector<double> score;
  /// Expected absolute error of each score, filled if `wantErrors`.
  std::vector<double> error;
  bool wantErrors = false;

  /// Set by a normaliser: the natural log of the sum of exponentials, and
  /// expected errors of it and (relative) of what the weights were divided by.
  double lse = 0, lseError = 0, divisorError = 0;

  Row(int64_t b, int64_t h, int64_t i, ArrayRef<int64_t> shape, bool wantErrors)
      : b(b), h(h), i(i), nq(shape[2]), nkv(shape[3]), hq(shape[1]),
        visible(nkv, 1), score(nkv), error(wantErrors ? nkv : 0),
        wantErrors(wantErrors) {}
};

class ScoreNode {
public:
  virtual ~ScoreNode() = default;
  /// Clears `visible` where this node or one before it masks a key whatever
  /// the score is.
  virtual void mask(Row &row) const = 0;
  /// Fills in the scores of the visible keys; may mask further keys.
  virtual void score(Row &row) const = 0;

  void evaluate(Row &row) const {
    mask(row);
    score(row);
  }
};
using ScoreNodePtr = std::shared_ptr<const ScoreNode>;
using ArrayPtr = std::shared_ptr<const Array>;

/// scale * q k^T.
ScoreNodePtr makeProduct(ArrayPtr q, ArrayPtr k, double scale);
/// Scores that the function is given; -inf is masked.
ScoreNodePtr makeGivenScores(ArrayPtr scores);
/// Keeps j - (i + off) in [-left, right]; an absent bound is unbounded.
ScoreNodePtr makeBand(ScoreNodePtr input, Alignment align,
                      std::optional<int64_t> left,
                      std::optional<int64_t> right);
ScoreNodePtr makeBlocks(ScoreNodePtr input, ArrayPtr rowOffsets,
                        ArrayPtr colIndices, int64_t queryBlock,
                        int64_t keyBlock);
/// Without `slopes`, the standard ones.
ScoreNodePtr makeAlibi(ScoreNodePtr input, Alignment align, ArrayPtr slopes);
ScoreNodePtr makeBias(ScoreNodePtr input, ArrayPtr bias);

/// What the weights are rounded to before they meet v, for expected errors.
ScoreNodePtr makeNormalizer(ScoreNodePtr input, Normalizer kind,
                            Type weightType);

/// Geometric slopes of Press et al. (arXiv 2108.12409) for any head count.
double getStandardSlope(int64_t head, int64_t numHeads);

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCORES_H
