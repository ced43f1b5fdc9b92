//===- Compare.h - Is a result right? ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNNER_COMPARE_H
#define ATTNFUSE_RUNNER_COMPARE_H

#include "attnfuse/Support/HostTensor.h"

namespace attnfuse {

/// What is known of a result beyond its numbers.
struct ResultTraits {
  /// Errors are never large beside this, however small the result is.
  double minScale = 0;
  /// An infinite reference may come out as NaN (spec S7).
  bool infinityMayBeNaN = false;
  /// Elements of one row of the last dimension have errors in common, as those
  /// of an output have: the errors of the row's weights.
  bool rowsShareErrors = false;
};

/// How a result differs from the reference, and whether it may (the criteria
/// of docs/numerics.md).
struct Comparison {
  bool passed = false;
  /// Over the elements that are finite in both.
  double maxAbsError = 0;
  int64_t numFinite = 0;
  /// Over those of them that have a bound, or only over those that have a
  /// useful one, and what it may be: the former if it decides.
  double relativeL2Error = 0, relativeL2Bound = 0;
  /// The largest error of an element in units of its bound.
  double worstRatio = 0;
  /// Where a NaN or an infinity stands on one side only, or of the other sign.
  int64_t numMismatched = 0;
  /// Finite elements whose bound exceeds half of their scale, and those of
  /// them whose error does too: they are neither right nor wrong.
  int64_t numLoose = 0, numUndecided = 0;
  /// Too many elements are undecided for the result to pass.
  bool isVacuous = false;
  /// The element that decides: of the worst ratio, or the first mismatch.
  int64_t worstIndex = -1;
  double worstValue = 0, worstReference = 0;
};

/// Compares `result` with `reference` (F64), given the expected error of each
/// element (F64). All have one shape.
Comparison compare(const HostTensor &result, const HostTensor &reference,
                   const HostTensor &expectedError,
                   const ResultTraits &traits = {});

/// One line: the errors, the bounds, PASS or FAIL, and why it failed.
std::string describe(const Comparison &comparison,
                     const std::vector<int64_t> &shape);

} // namespace attnfuse

#endif // ATTNFUSE_RUNNER_COMPARE_H
