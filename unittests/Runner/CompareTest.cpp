//===- CompareTest.cpp ----------------------------------------------------===//
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

TEST(CompareTest, WhatCannotBeComparedMustBeFinite) {
  EXPECT_TRUE(compareF32({5}, {0}, INFINITY).passed);
  EXPECT_FALSE(compareF32({NAN}, {0}, INFINITY).passed);
}

TEST(CompareTest, EmptyResultsPass) {
  EXPECT_TRUE(compareF32({}, {}, 0).passed);
}
} // namespace
