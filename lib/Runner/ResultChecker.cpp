//===- ResultChecker.cpp - Are the results of a call right? ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResultChecker.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

namespace {
/// Part of a row's length that roundings of weights and outputs may move it by,
/// where the operands are of f16, and where one is of bf16.
constexpr double kF16Tolerance = 1.0 / 128, kBF16Tolerance = 1.0 / 32;
constexpr double kLogSumExpTolerance = 1.0 / 1024;
/// The smallest normal number of f16: shorter rows are nothing but roundings.
constexpr double kShortest = 6.1e-5;
} // namespace

::attnfuse::ResultTraits mlir::attnfuse::getResultTraits(RoleKind kind) {
  ::attnfuse::ResultTraits traits;
  // An error of a logarithm is relative to what it is the logarithm of.
  traits.minScale = kind == RoleKind::LogSumExp ? 1 : 0;
  traits.infinityMayBeNaN = kind == RoleKind::Output;
  return traits;
}

std::string mlir::attnfuse::describeDifference(const HostTensor &result,
                                               const HostTensor &other,
                                               RoleKind kind,
                                               double tolerance) {
  bool isLogSumExp = kind == RoleKind::LogSumExp;
  int64_t numElements = result.getNumElements();
  int64_t rowLength =
      isLogSumExp || result.getRank() == 0 ? 1 : result.getShape().back();
  double allErrors = 0, allSquares = 0;
  for (int64_t begin = 0; begin < numElements; begin += rowLength) {
    double errors = 0, squares = 0;
    for (int64_t index = begin; index < begin + rowLength; ++index) {
      double a = result.getFloat(index), b = other.getFloat(index);
      if (std::isfinite(a) != std::isfinite(b))
        return llvm::formatv("element {0} is {1}, expected {2}", index, a, b);
      if (!std::isfinite(a))
        continue;
      errors += (a - b) * (a - b);
      squares += b * b;
    }
    double length = std::sqrt(squares);
    double limit = isLogSumExp ? kLogSumExpTolerance * std::max(1.0, length)
                               : tolerance * std::max(kShortest, length);
    if (std::sqrt(errors) > limit)
      return llvm::formatv("the row at element {0} differs by {1:e2} of its "
                           "length {2:e2}, expected at most {3:e2}",
                           begin, std::sqrt(errors), length, limit);
    allErrors += errors;
    allSquares += squares;
  }
  if (!isLogSumExp &&
      allErrors > tolerance * tolerance / 4 *
                      std::max(kShortest * kShortest, allSquares))
    return llvm::formatv(
        "all differs by {0:e2} of its length, expected at most "
        "{1:e2}",
        std::sqrt(allErrors / allSquares), tolerance / 2);
  return "";
}

ResultChecker::ResultChecker(const DimensionClasses &classes, const Call &call)
    : classes(classes) {
  bool hasBF16 = llvm::any_of(call.arguments, [](const HostTensor &tensor) {
    return tensor.getType() == ElementType::BF16;
  });
  tolerance = hasBF16 ? kBF16Tolerance : kF16Tolerance;
}

llvm::Expected<ResultChecker>
ResultChecker::create(const DimensionClasses &classes, const Call &call,
                      bool usesReference) {
  ResultChecker checker(classes, call);
  if (!usesReference)
    return checker;
  llvm::Expected<Interpretation> reference =
      interpretWithErrors(classes.getFunction(), call.arguments);
  if (!reference)
    return reference.takeError();
  checker.reference = std::move(*reference);
  return checker;
}

std::string ResultChecker::check(ArrayRef<HostTensor> results) {
  for (auto [index, role] : llvm::enumerate(classes.getResults())) {
    std::string problem;
    if (reference) {
      ::attnfuse::Comparison comparison =
          compare(results[index], reference->results[index],
                  reference->errors[index], getResultTraits(role.kind));
      if (!comparison.passed)
        problem = describe(comparison, results[index].getShape());
    } else if (!first.empty()) {
      problem = describeDifference(results[index], first[index], role.kind,
                                   tolerance);
    }
    if (!problem.empty())
      return "wrong result '" + role.name + "': " + problem;
  }
  if (first.empty())
    first.assign(results.begin(), results.end());
  return "";
}
