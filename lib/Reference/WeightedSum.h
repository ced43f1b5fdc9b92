//===- WeightedSum.h - Weights times v, row by row --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_WEIGHTEDSUM_H
#define ATTNFUSE_LIB_REFERENCE_WEIGHTEDSUM_H

#include "Scores.h"

namespace mlir::attnfuse::reference {

struct SumResults {
  /// [B, Hq, Nq, Dv] and [B, Hq, Nq].
  Array output, lse;
  /// Expected errors (docs/numerics.md), if asked for.
  Array outputError, lseError;
};

/// Element types, for the expected errors.
struct SumTypes {
  /// Of v, which the weights may be rounded to.
  Type value;
  Type output;
};

/// Rows of weights times `value` ([B, Hkv, Nkv, Dv], or null for the
/// log-sum-exp alone). `shape` is that of the weights.
SumResults weightedSum(const ScoreNode &weights, ArrayRef<int64_t> shape,
                       const Array *value, const SumTypes &types,
                       bool wantErrors);

/// All rows of a node, -inf where masked, and their expected errors.
std::pair<Array, Array>
evaluateScores(const ScoreNode &node, ArrayRef<int64_t> shape, bool wantErrors);

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_WEIGHTEDSUM_H
