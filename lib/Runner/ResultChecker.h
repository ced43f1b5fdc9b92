//===- ResultChecker.h - Are the results of a call right? -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_RESULTCHECKER_H
#define ATTNFUSE_LIB_RUNNER_RESULTCHECKER_H

#include "attnfuse/Reference/Interpreter.h"
#include "attnfuse/Runner/Compare.h"
#include "attnfuse/Runner/Inputs.h"

namespace mlir::attnfuse {

/// What is known of a result by its role.
::attnfuse::ResultTraits getResultTraits(RoleKind kind);

/// Judges the results of many kernels for one call: by the fp64 reference, or,
/// which takes no time, by the first of them.
class ResultChecker {
public:
  /// `classes` and `call` must outlive this.
  static llvm::Expected<ResultChecker>
  create(const DimensionClasses &classes, const Call &call, bool usesReference);

  /// What is wrong; empty if nothing is.
  std::string check(ArrayRef<::attnfuse::HostTensor> results);

private:
  ResultChecker(const DimensionClasses &classes, const Call &call);

  const DimensionClasses &classes;
  std::optional<Interpretation> reference;
  std::vector<::attnfuse::HostTensor> first;
  double tolerance;
};

/// How two kernels' results differ if they differ by more than roundings of
/// both explain; else empty. Each row of an output may be `tolerance` times its
/// length away from the other, the whole output half of that. A log-sum-exp
/// may differ by 2^-10, of its value where that is above 1. NaN and infinities
/// stand in the same places.
std::string describeDifference(const ::attnfuse::HostTensor &result,
                               const ::attnfuse::HostTensor &other,
                               RoleKind kind, double tolerance);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_RESULTCHECKER_H
