//===- Compare.cpp - Is a result right? -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Compare.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace attnfuse;

// docs/numerics.md says where these come from.
/// An element's bound in units of its expected error.
static constexpr double kElementFactor = 4;
/// The bound of the root mean square, in the same units, for n elements.
static double getRmsFactor(double n) { return 1 + 3 / std::sqrt(n); }

static double getLargest(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return 65504;
  case ElementType::BF16:
    return 0x1.fep127;
  case ElementType::F32:
    return 0x1.fffffep127;
  default:
    return INFINITY;
  }
}

namespace {
/// The two kinds of element that are equal or not, without a distance.
bool matchesNonFinite(double value, double reference, double error,
                      double largest) {
  if (std::isnan(reference))
    return std::isnan(value);
  // A reference near the end of the type's range may overflow or not.
  if (std::isinf(value))
    return value > 0 ? reference + error >= largest
                     : reference - error <= -largest;
  return !std::isnan(value) && std::abs(reference) - error <= largest;
}
} // namespace

Comparison attnfuse::compare(const HostTensor &result,
                             const HostTensor &reference,
                             const HostTensor &expectedError) {
  Comparison comparison;
  double largest = getLargest(result.getType());
  double errorSquares = 0, referenceSquares = 0, expectedSquares = 0, count = 0;
  for (int64_t i = 0, end = result.getNumElements(); i < end; ++i) {
    double value = result.getFloat(i), expected = reference.getFloat(i);
    double unit = expectedError.getFloat(i);
    if (std::isnan(unit))
      unit = INFINITY;
    auto remember = [&] {
      comparison.worstIndex = i;
      comparison.worstValue = value;
      comparison.worstReference = expected;
    };
    if (!std::isfinite(value) || std::abs(expected) > largest ||
        std::isnan(expected)) {
      if (!matchesNonFinite(value, expected, kElementFactor * unit, largest) &&
          comparison.numMismatched++ == 0)
        remember();
      continue;
    }
    double error = std::abs(value - expected);
    comparison.maxAbsError = std::max(comparison.maxAbsError, error);
    double bound = kElementFactor * unit;
    double ratio = error == 0 || std::isinf(bound) ? 0 : error / bound;
    if (ratio > comparison.worstRatio) {
      comparison.worstRatio = ratio;
      if (comparison.numMismatched == 0)
        remember();
    }
    if (std::isinf(bound))
      continue;
    errorSquares += error * error;
    referenceSquares += expected * expected;
    expectedSquares += unit * unit;
    count += 1;
  }
  if (referenceSquares > 0) {
    comparison.relativeL2Error = std::sqrt(errorSquares / referenceSquares);
    comparison.relativeL2Bound =
        getRmsFactor(count) * std::sqrt(expectedSquares / referenceSquares);
  }
  comparison.passed = comparison.numMismatched == 0 &&
                      comparison.worstRatio <= 1 &&
                      comparison.relativeL2Error <= comparison.relativeL2Bound;
  return comparison;
}

std::string attnfuse::describe(const Comparison &comparison,
                               const std::vector<int64_t> &shape) {
  char text[200];
  std::snprintf(text, sizeof(text),
                "max abs error %.3g, %.3g of its bound; relative L2 error "
                "%.3g, bound %.3g: %s",
                comparison.maxAbsError, comparison.worstRatio,
                comparison.relativeL2Error, comparison.relativeL2Bound,
                comparison.passed ? "PASS" : "FAIL");
  std::string line = text;
  if (comparison.passed || comparison.worstIndex < 0)
    return line;
  std::string position;
  int64_t rest = comparison.worstIndex;
  for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
    position = std::to_string(rest % shape[dim]) +
               (position.empty() ? "" : ", ") + position;
  std::snprintf(text, sizeof(text), " at [%s]: got %.9g, expected %.9g",
                position.c_str(), comparison.worstValue,
                comparison.worstReference);
  line += text;
  if (comparison.numMismatched) {
    std::snprintf(text, sizeof(text), " (%lld of NaN or infinity differ)",
                  static_cast<long long>(comparison.numMismatched));
    line += text;
  }
  return line;
}
