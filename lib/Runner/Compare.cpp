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
/// The bound of the root mean square, in the same units, for n independent
/// errors.
static double getRmsFactor(double n) { return 1 + 3 / std::sqrt(n); }

/// A bound beyond this share of an element's scale says little: with it, zeros
/// would pass.
static constexpr double kUsefulShare = 0.5;
/// The share of undecided elements that a result may have. In a small result it
/// may be one row, which a sum near 0 makes undecided as a whole.
static constexpr double kUndecidedShare = 0.1;
static constexpr double kUndecidedRowShare = 0.25;

static double getAllowedUndecided(const Comparison &comparison,
                                  const HostTensor &result) {
  const std::vector<int64_t> &shape = result.getShape();
  double row = shape.size() < 2 ? 0 : double(shape.back());
  double finite = double(comparison.numFinite);
  return std::max(kUndecidedShare * finite,
                  row <= kUndecidedRowShare * finite ? row : 0);
}

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

/// Below it a result has absolute precision only.
static double getSmallestNormal(ElementType type) {
  return type == ElementType::F16 ? 0x1p-14 : 0x1p-126;
}

namespace {
/// The two kinds of element that are equal or not, without a distance.
bool matchesNonFinite(double value, double reference, double error,
                      double largest, const ResultTraits &traits) {
  if (std::isnan(reference))
    return std::isnan(value);
  if (std::isnan(value))
    return traits.infinityMayBeNaN && std::isinf(reference);
  // A reference near the end of the type's range may overflow or not.
  if (std::isinf(value))
    return value > 0 ? reference + error >= largest
                     : reference - error <= -largest;
  return std::abs(reference) - error <= largest;
}

/// Root mean squares, relative to that of the reference. Errors come in groups:
/// those of one group may be one and the same.
class RelativeL2 {
public:
  void add(double error, double reference, double unit) {
    errorSquares += error * error;
    referenceSquares += reference * reference;
    groupSquares += unit * unit;
  }
  void endGroup() {
    expectedSquares += groupSquares;
    expectedFourths += groupSquares * groupSquares;
    groupSquares = 0;
  }
  double getError() const { return relate(errorSquares); }
  double getBound() const {
    return expectedFourths > 0
               ? relate(expectedSquares) * getRmsFactor(countIndependent())
               : 0;
  }
  bool passes() const { return getError() <= getBound(); }

private:
  double relate(double squares) const {
    return referenceSquares > 0 ? std::sqrt(squares / referenceSquares) : 0;
  }
  /// The number of groups, had all of them the same weight.
  double countIndependent() const {
    return expectedSquares / expectedFourths * expectedSquares;
  }
  double errorSquares = 0, referenceSquares = 0, groupSquares = 0;
  /// Over the groups that have ended.
  double expectedSquares = 0, expectedFourths = 0;
};

/// What errors are large or small beside: the root mean square of an element's
/// row or of the whole reference, whichever is larger. A row may cancel to
/// almost nothing, and the first rows of a causal mask are far above the mean.
class Scales {
public:
  Scales(const HostTensor &reference, double largest, double least)
      : rowSize(reference.getRank() ? reference.getShape().back() : 1) {
    double total = 0, totalCount = 0, row = 0, rowCount = 0;
    for (int64_t i = 0, end = reference.getNumElements(); i < end; ++i) {
      double element = reference.getFloat(i);
      if (std::abs(element) <= largest) {
        row += element * element;
        rowCount += 1;
      }
      if ((i + 1) % rowSize != 0)
        continue;
      rows.push_back(rowCount ? std::sqrt(row / rowCount) : 0);
      total += row;
      totalCount += rowCount;
      row = rowCount = 0;
    }
    if (totalCount)
      least = std::max(least, std::sqrt(total / totalCount));
    for (double &scale : rows)
      scale = std::max(scale, least);
  }

  double operator[](int64_t element) const { return rows[element / rowSize]; }

private:
  int64_t rowSize;
  std::vector<double> rows;
};
} // namespace

Comparison attnfuse::compare(const HostTensor &result,
                             const HostTensor &reference,
                             const HostTensor &expectedError,
                             const ResultTraits &traits) {
  Comparison comparison;
  double largest = getLargest(result.getType());
  Scales scales(reference, std::min(largest, 0x1.fffffffffffffp1023),
                std::max(traits.minScale, getSmallestNormal(result.getType())));
  RelativeL2 all, useful;
  int64_t groupSize = traits.rowsShareErrors ? result.getShape().back() : 1;
  for (int64_t i = 0, end = result.getNumElements(); i < end; ++i) {
    if (i % groupSize == 0) {
      all.endGroup();
      useful.endGroup();
    }
    double value = result.getFloat(i), expected = reference.getFloat(i);
    double unit = expectedError.getFloat(i);
    if (std::isnan(unit))
      unit = INFINITY;
    auto remember = [&] {
      comparison.worstIndex = i;
      comparison.worstValue = value;
      comparison.worstReference = expected;
    };
    double bound = kElementFactor * unit;
    if (!std::isfinite(value) || std::abs(expected) > largest ||
        std::isnan(expected)) {
      if (!matchesNonFinite(value, expected, bound, largest, traits) &&
          comparison.numMismatched++ == 0)
        remember();
      continue;
    }
    double error = std::abs(value - expected);
    double limit = kUsefulShare * scales[i];
    comparison.numFinite += 1;
    comparison.maxAbsError = std::max(comparison.maxAbsError, error);
    double ratio = error == 0 || std::isinf(bound) ? 0 : error / bound;
    if (ratio > comparison.worstRatio) {
      comparison.worstRatio = ratio;
      if (comparison.numMismatched == 0)
        remember();
    }
    if (std::isfinite(bound))
      all.add(error, expected, unit);
    if (bound <= limit) {
      useful.add(error, expected, unit);
      continue;
    }
    comparison.numLoose += 1;
    comparison.numUndecided += error > limit;
  }
  all.endGroup();
  useful.endGroup();
  // Elements of loose bounds shall not hide the others.
  const RelativeL2 &deciding = useful.passes() ? all : useful;
  comparison.relativeL2Error = deciding.getError();
  comparison.relativeL2Bound = deciding.getBound();
  comparison.isVacuous =
      double(comparison.numUndecided) > getAllowedUndecided(comparison, result);
  comparison.passed = comparison.numMismatched == 0 &&
                      comparison.worstRatio <= 1 && all.passes() &&
                      useful.passes() && !comparison.isVacuous;
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
  if (comparison.isVacuous)
    std::snprintf(text, sizeof(text),
                  ", bound is vacuous: %lld of %lld elements differ by more "
                  "than half of their scale, which their bound allows",
                  static_cast<long long>(comparison.numUndecided),
                  static_cast<long long>(comparison.numFinite));
  else if (comparison.numLoose)
    std::snprintf(text, sizeof(text),
                  "; %lld of %lld elements have a bound beyond half of their "
                  "scale",
                  static_cast<long long>(comparison.numLoose),
                  static_cast<long long>(comparison.numFinite));
  if (comparison.isVacuous || comparison.numLoose)
    line += text;
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
