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

/// How a result differs from the reference, and whether it may (the two
/// criteria of docs/numerics.md).
struct Comparison {
  bool passed = false;
  /// Over the elements that are finite in both.
  double maxAbsError = 0, relativeL2Error = 0;
  /// What the relative L2 error may be.
  double relativeL2Bound = 0;
  /// The largest error of an element in units of its bound.
  double worstRatio = 0;
  /// Where a NaN or an infinity stands on one side only, or of the other sign.
  int64_t numMismatched = 0;
  /// The element that decides: of the worst ratio, or the first mismatch.
  int64_t worstIndex = -1;
  double worstValue = 0, worstReference = 0;
};

/// Compares `result` with `reference` (F64), given the expected error of each
/// element (F64). All have one shape.
Comparison compare(const HostTensor &result, const HostTensor &reference,
                   const HostTensor &expectedError);

/// One line: the errors, the bounds, PASS or FAIL, and where it failed.
std::string describe(const Comparison &comparison,
                     const std::vector<int64_t> &shape);

} // namespace attnfuse

#endif // ATTNFUSE_RUNNER_COMPARE_H
