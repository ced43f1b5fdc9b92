//===- CompareTest.cpp - Is a result right? -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Compare.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace attnfuse;

namespace {
HostTensor make(ElementType type, const std::vector<double> &values) {
  HostTensor tensor(type, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.setFloat(i, values[i]);
  return tensor;
}

/// Each expected error is `unit`.
Comparison compareF32(const std::vector<double> &result,
                      const std::vector<double> &reference, double unit,
                      ElementType type = ElementType::F32) {
  return compare(
      make(type, result), make(ElementType::F64, reference),
      make(ElementType::F64, std::vector<double>(reference.size(), unit)));
}

TEST(CompareTest, ErrorsInsideTheBoundPass) {
  Comparison comparison = compareF32({1.25, 2, -3}, {1, 2, -3}, 0.125);
  EXPECT_TRUE(comparison.passed);
  EXPECT_EQ(comparison.maxAbsError, 0.25);
  EXPECT_EQ(comparison.worstRatio, 0.5);
  EXPECT_EQ(comparison.worstIndex, 0);
  EXPECT_NEAR(comparison.relativeL2Error, 0.25 / std::sqrt(14), 1e-15);
}

TEST(CompareTest, OneWrongElementFails) {
  Comparison comparison = compareF32({1, 2, -3}, {1, 2.6, -3}, 0.125);
  EXPECT_FALSE(comparison.passed);
  EXPECT_EQ(comparison.worstIndex, 1);
  EXPECT_EQ(
      describe(comparison, {3}).find("FAIL at [1]: got 2, expected 2.6") !=
          std::string::npos,
      true)
      << describe(comparison, {3});
}

TEST(CompareTest, ManySmallErrorsFailByTheirMeanSquare) {
  // Every element is 2 units off: inside the bound of each, not of all.
  std::vector<double> reference(10000), result(10000);
  for (size_t i = 0; i < reference.size(); ++i) {
    reference[i] = std::sin(double(i));
    result[i] = reference[i] + (i % 2 ? 0.25 : -0.25);
  }
  Comparison comparison = compareF32(result, reference, 0.125);
  EXPECT_LT(comparison.worstRatio, 1);
  EXPECT_FALSE(comparison.passed);
  EXPECT_TRUE(compareF32(result, reference, 0.25).passed);
}

TEST(CompareTest, RowsThatShareAnErrorCountAsOne) {
  // Two rows of 64 are 1.5 units off as a whole, and the others are zeros.
  constexpr int64_t kRows = 100, kSize = 64;
  HostTensor result(ElementType::F32, {kRows, kSize});
  HostTensor reference(ElementType::F64, {kRows, kSize});
  HostTensor expected(ElementType::F64, {kRows, kSize});
  auto fill = [&](int64_t numRows, double error) {
    for (int64_t i = 0; i < numRows * kSize; ++i) {
      double value = std::sin(double(i));
      reference.setFloat(i, value);
      result.setFloat(i, value + error);
      expected.setFloat(i, 0.01);
    }
  };
  ResultTraits rows;
  rows.rowsShareErrors = true;
  fill(2, 0.015);
  EXPECT_FALSE(compare(result, reference, expected).passed);
  EXPECT_TRUE(compare(result, reference, expected, rows).passed);
  // A hundred rows that are all off by that much are no accident.
  fill(kRows, 0.015);
  EXPECT_FALSE(compare(result, reference, expected, rows).passed);
  fill(kRows, 0.0125);
  EXPECT_TRUE(compare(result, reference, expected, rows).passed);
}

TEST(CompareTest, InfinitiesAndNaNsMustMatch) {
  EXPECT_TRUE(compareF32({-INFINITY, NAN, 1}, {-INFINITY, NAN, 1}, 0).passed);
  for (auto [result, reference] :
       std::vector<std::pair<double, double>>{{NAN, 1},
                                              {1, NAN},
                                              {INFINITY, -INFINITY},
                                              {-INFINITY, 3},
                                              {3, -INFINITY},
                                              {NAN, INFINITY},
                                              {INFINITY, NAN}}) {
    Comparison comparison = compareF32({0.5, result}, {0.5, reference}, 0.125);
    EXPECT_FALSE(comparison.passed) << result << " for " << reference;
    EXPECT_EQ(comparison.numMismatched, 1);
    EXPECT_EQ(comparison.worstIndex, 1);
  }
}

TEST(CompareTest, OverflowOfTheResultTypeMayHappenNearItsEnd) {
  ElementType f16 = ElementType::F16;
  EXPECT_TRUE(compareF32({INFINITY}, {70000}, 32, f16).passed);
  EXPECT_TRUE(compareF32({INFINITY}, {65500}, 32, f16).passed);
  EXPECT_TRUE(compareF32({65504}, {65510}, 32, f16).passed);
  EXPECT_FALSE(compareF32({INFINITY}, {60000}, 32, f16).passed);
  EXPECT_FALSE(compareF32({-INFINITY}, {70000}, 32, f16).passed);
  EXPECT_FALSE(compareF32({65504}, {70000}, 32, f16).passed);
}

TEST(CompareTest, AnInfiniteReferenceMayBeNaNWhereTheSpecSaysSo) {
  ResultTraits output;
  output.infinityMayBeNaN = true;
  auto passes = [&](double result, double reference) {
    return compare(make(ElementType::F16, {0.5, result}),
                   make(ElementType::F64, {0.5, reference}),
                   make(ElementType::F64, {0.125, 0.125}), output)
        .passed;
  };
  EXPECT_TRUE(passes(NAN, INFINITY));
  EXPECT_TRUE(passes(NAN, -INFINITY));
  EXPECT_TRUE(passes(INFINITY, INFINITY));
  EXPECT_FALSE(passes(-INFINITY, INFINITY));
  EXPECT_FALSE(passes(3, INFINITY));
  EXPECT_FALSE(passes(INFINITY, NAN));
  // What is finite but too large for the type is not infinite.
  EXPECT_FALSE(passes(NAN, 70000));
}

/// Rows of 4; the first `numLoose` of `numRows` have no useful bound and are
/// off by `error`, the others by a part of their tight bound.
Comparison compareLoose(int numLoose, double error, int64_t numRows = 40) {
  int size = int(4 * numRows);
  std::vector<double> reference(size), result(size), expected(size);
  for (int i = 0; i < size; ++i) {
    bool isLoose = i / 4 < numLoose;
    reference[i] = i % 2 ? 1 : -1;
    expected[i] = isLoose ? (i % 3 ? 0.5 : INFINITY) : 0.01;
    result[i] = reference[i] + (isLoose ? error : 0.005);
  }
  HostTensor shaped[] = {{ElementType::F32, {numRows, 4}},
                         {ElementType::F64, {numRows, 4}},
                         {ElementType::F64, {numRows, 4}}};
  for (int i = 0; i < size; ++i) {
    shaped[0].setFloat(i, result[i]);
    shaped[1].setFloat(i, reference[i]);
    shaped[2].setFloat(i, expected[i]);
  }
  return compare(shaped[0], shaped[1], shaped[2]);
}

TEST(CompareTest, ABoundBeyondTheScaleDoesNotMakeAPass) {
  Comparison comparison = compareLoose(5, 0.55);
  EXPECT_FALSE(comparison.passed);
  EXPECT_TRUE(comparison.isVacuous);
  EXPECT_LE(comparison.worstRatio, 1);
  EXPECT_NE(describe(comparison, {40, 4})
                .find("FAIL, bound is vacuous: 20 of 160 elements differ by "
                      "more than half of their scale"),
            std::string::npos)
      << describe(comparison, {40, 4});
}

TEST(CompareTest, FewUndecidedElementsAreCounted) {
  Comparison comparison = compareLoose(4, 0.55);
  EXPECT_TRUE(comparison.passed);
  EXPECT_EQ(comparison.numLoose, 16);
  EXPECT_EQ(comparison.numUndecided, 16);
  EXPECT_NE(describe(comparison, {40, 4})
                .find("PASS; 16 of 160 elements have a bound beyond half of "
                      "their scale"),
            std::string::npos)
      << describe(comparison, {40, 4});
}

TEST(CompareTest, ASmallResultMayHaveOneUndecidedRow) {
  EXPECT_TRUE(compareLoose(1, 0.55, 4).passed);
  EXPECT_TRUE(compareLoose(2, 0.55, 4).isVacuous);
  EXPECT_TRUE(compareLoose(1, 0.55, 3).isVacuous);
  EXPECT_TRUE(compareLoose(1, 0.55, 1).isVacuous);
}

TEST(CompareTest, AgreementNeedsNoUsefulBound) {
  Comparison comparison = compareLoose(40, 0.1);
  EXPECT_TRUE(comparison.passed);
  EXPECT_EQ(comparison.numLoose, 160);
  EXPECT_EQ(comparison.numUndecided, 0);
}

TEST(CompareTest, LooseElementsDoNotHideOthersInTheMeanSquare) {
  // Every element of the second half is 2 units off, inside of 4.
  std::vector<double> reference(2000), result(2000);
  HostTensor expected(ElementType::F64, {2000});
  for (int i = 0; i < 2000; ++i) {
    reference[i] = std::sin(double(i));
    result[i] = reference[i] + (i < 1000 ? 0.1 : 0.02);
    expected.setFloat(i, i < 1000 ? 3 : 0.01);
  }
  EXPECT_FALSE(compare(make(ElementType::F32, result),
                       make(ElementType::F64, reference), expected)
                   .passed);
}

TEST(CompareTest, ALogarithmHasAScaleOfOne) {
  ResultTraits logarithm;
  logarithm.minScale = 1;
  HostTensor result = make(ElementType::F32, {0.01});
  HostTensor reference = make(ElementType::F64, {0});
  HostTensor expected = make(ElementType::F64, {0.01});
  EXPECT_TRUE(compare(result, reference, expected).isVacuous);
  EXPECT_TRUE(compare(result, reference, expected, logarithm).passed);
}

TEST(CompareTest, WhatCannotBeComparedMustBeFinite) {
  std::vector<double> reference(20, 1.0), result(20, 1.0);
  HostTensor expected(ElementType::F64, {20});
  expected.setFloat(3, INFINITY);
  result[3] = 5;
  auto passes = [&] {
    return compare(make(ElementType::F32, result),
                   make(ElementType::F64, reference), expected)
        .passed;
  };
  EXPECT_TRUE(passes());
  result[3] = NAN;
  EXPECT_FALSE(passes());
}

TEST(CompareTest, EmptyResultsPass) {
  EXPECT_TRUE(compareF32({}, {}, 0).passed);
}
} // namespace
