//===- ResultChecker.cpp - Are the results of a call right? ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResultChecker.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Parallel.h"
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
constexpr int64_t kMostParts = 64;
} // namespace

::attnfuse::ResultTraits mlir::attnfuse::getResultTraits(RoleKind kind) {
  ::attnfuse::ResultTraits traits;
  // An error of a logarithm is relative to what it is the logarithm of.
  traits.minScale = kind == RoleKind::LogSumExp ? 1 : 0;
  traits.infinityMayBeNaN = traits.rowsShareErrors = kind == RoleKind::Output;
  return traits;
}

namespace {
/// How some rows differ.
struct Difference {
  /// Of the first row that differs by too much; else empty.
  std::string problem;
  /// Sums of squares.
  double errors = 0, lengths = 0;
};

class RowComparison {
public:
  RowComparison(const HostTensor &result, const HostTensor &other,
                RoleKind kind, double tolerance)
      : result(result), other(other), isLogSumExp(kind == RoleKind::LogSumExp),
        tolerance(tolerance) {
    if (!isLogSumExp && result.getRank() > 0)
      rowLength = std::max<int64_t>(1, result.getShape().back());
  }

  std::string describe() const;

private:
  Difference compareRows(int64_t begin, int64_t end) const;

  const HostTensor &result, &other;
  bool isLogSumExp;
  double tolerance;
  int64_t rowLength = 1;
};
} // namespace

Difference RowComparison::compareRows(int64_t begin, int64_t end) const {
  Difference all;
  for (int64_t row = begin; row < end; ++row) {
    double errors = 0, squares = 0;
    for (int64_t index = row * rowLength; index < (row + 1) * rowLength;
         ++index) {
      double a = result.getFloat(index), b = other.getFloat(index);
      if (std::isfinite(a) != std::isfinite(b)) {
        all.problem =
            llvm::formatv("element {0} is {1}, expected {2}", index, a, b);
        return all;
      }
      if (!std::isfinite(a))
        continue;
      errors += (a - b) * (a - b);
      squares += b * b;
    }
    double length = std::sqrt(squares);
    double limit = isLogSumExp ? kLogSumExpTolerance * std::max(1.0, length)
                               : tolerance * std::max(kShortest, length);
    if (std::sqrt(errors) > limit) {
      all.problem = llvm::formatv(
          "the row at element {0}, of length {1:e2}, differs by {2:e2}, "
          "expected at most {3:e2}",
          row * rowLength, length, std::sqrt(errors), limit);
      return all;
    }
    all.errors += errors;
    all.lengths += squares;
  }
  return all;
}

std::string RowComparison::describe() const {
  int64_t numRows = result.getNumElements() / rowLength;
  // Outputs are large, and there are many to compare.
  int64_t numParts = std::min(kMostParts, numRows);
  std::vector<Difference> parts(numParts);
  llvm::parallelFor(0, numParts, [&](size_t part) {
    parts[part] =
        compareRows(numRows * part / numParts, numRows * (part + 1) / numParts);
  });
  Difference all;
  for (const Difference &part : parts) {
    if (!part.problem.empty())
      return part.problem;
    all.errors += part.errors;
    all.lengths += part.lengths;
  }
  double length = std::max(kShortest, std::sqrt(all.lengths));
  if (!isLogSumExp && std::sqrt(all.errors) > tolerance / 2 * length)
    return llvm::formatv("all, of length {0:e2}, differs by {1:e2}, expected "
                         "at most {2:e2}",
                         length, std::sqrt(all.errors), tolerance / 2 * length);
  return "";
}

std::string mlir::attnfuse::describeDifference(const HostTensor &result,
                                               const HostTensor &other,
                                               RoleKind kind,
                                               double tolerance) {
  return RowComparison(result, other, kind, tolerance).describe();
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
