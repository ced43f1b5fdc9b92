//===- ResultCheckerTest.cpp - Are the results of a call right? -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runner/ResultChecker.h"
#include "../../lib/Runner/Watchdog.h"
#include "../TestModule.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

namespace {
constexpr double kTolerance = 1.0 / 32;
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

/// Rows of 64 normal elements, row i 2^-i long.
HostTensor makeOutput() {
  HostTensor tensor(ElementType::BF16, {1, 2, 5, 64});
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (int64_t index = 0; index < tensor.getNumElements(); ++index)
    tensor.setFloat(index, std::ldexp(normal(random), -(index / 64)));
  return tensor;
}

std::string getOutputDifference(const HostTensor &a, const HostTensor &b) {
  return describeDifference(a, b, RoleKind::Output, kTolerance);
}
} // namespace

TEST(ResultChecker, RowsOfOutputsAloneShareErrors) {
  EXPECT_TRUE(getResultTraits(RoleKind::Output).rowsShareErrors);
  EXPECT_FALSE(getResultTraits(RoleKind::LogSumExp).rowsShareErrors);
  EXPECT_FALSE(getResultTraits(RoleKind::Other).rowsShareErrors);
}

TEST(ResultChecker, RoundingsAreNoDifference) {
  HostTensor a = makeOutput(), b = a;
  EXPECT_EQ(getOutputDifference(a, b), "");
  for (int64_t index = 0; index < b.getNumElements(); ++index)
    b.setFloat(index, a.getFloat(index) * (index % 2 ? 1.008 : 0.992));
  EXPECT_EQ(getOutputDifference(a, b), "");
}

TEST(ResultChecker, AWrongShortRowIsFound) {
  // Though it is a thousandth of the longest.
  HostTensor a = makeOutput(), b = a;
  for (int64_t index = 9 * 64; index < 10 * 64; ++index)
    b.setFloat(index, a.getFloat(index) * 1.05);
  std::string difference = getOutputDifference(a, b);
  EXPECT_NE(difference.find("row at element 576"), std::string::npos)
      << difference;
}

TEST(ResultChecker, SmallDifferencesEverywhereAreFound) {
  HostTensor a = makeOutput(), b = a;
  for (int64_t index = 0; index < b.getNumElements(); ++index)
    b.setFloat(index, a.getFloat(index) * 1.025);
  std::string difference = getOutputDifference(a, b);
  EXPECT_NE(difference.find("all, of length"), std::string::npos) << difference;
}

TEST(ResultChecker, NaNAndInfinitiesStandInTheSamePlaces) {
  HostTensor a = makeOutput(), b = a;
  a.setFloat(70, kNaN);
  EXPECT_NE(getOutputDifference(a, b), "");
  EXPECT_NE(getOutputDifference(b, a), "");
  // Infinity times a weight of 0 is NaN as well.
  b.setFloat(70, kInfinity);
  EXPECT_EQ(getOutputDifference(a, b), "");
}

TEST(ResultChecker, EmptyRowsAndEmptyTensors) {
  HostTensor zero(ElementType::F16, {2, 8}), other = zero;
  EXPECT_EQ(getOutputDifference(zero, other), "");
  other.setFloat(3, 0.01);
  EXPECT_NE(getOutputDifference(zero, other), "");
  EXPECT_NE(getOutputDifference(other, zero), "");
  HostTensor empty(ElementType::F16, {0, 8});
  EXPECT_EQ(getOutputDifference(empty, empty), "");
}

TEST(ResultChecker, LogSumExpsDifferByElements) {
  HostTensor a = makeTensor(ElementType::F32, {1, 1, 3},
                            {8.0, 0.01, -kInfinity}),
             b = a;
  auto getDifference = [&] {
    return describeDifference(a, b, RoleKind::LogSumExp, kTolerance);
  };
  b.setFloat(0, 8.005);
  b.setFloat(1, 0.0105);
  EXPECT_EQ(getDifference(), "");
  b.setFloat(1, 0.02);
  EXPECT_NE(getDifference(), "");
}

TEST(ResultChecker, TheFirstResultsOrTheReferenceJudge) {
  TestModule module(R"(
    func.func @f(%q: tensor<1x1x3x16xf16>, %k: tensor<1x1x9x16xf16>,
                 %v: tensor<1x1x9x16xf16>) -> tensor<1x1x3x16xf16> {
      %s = attnfuse.scaled_dot_product %q, %k : tensor<1x1x3x16xf16>,
          tensor<1x1x9x16xf16> -> tensor<1x1x3x9xf32>
      %p = attnfuse.softmax %s : tensor<1x1x3x9xf32>
      %o = attnfuse.weighted_sum %p, %v : tensor<1x1x3x9xf32>,
          tensor<1x1x9x16xf16> -> tensor<1x1x3x16xf16>
      return %o : tensor<1x1x3x16xf16>
    })");
  ASSERT_TRUE(module.getFunction());
  auto classes =
      llvm::cantFail(DimensionClasses::analyze(module.getFunction()));
  InputSpec spec;
  spec.seed = 1;
  Call call = llvm::cantFail(prepareCall(classes, spec));
  Interpretation right =
      llvm::cantFail(interpretWithErrors(module.getFunction(), call.arguments));
  std::vector<HostTensor> results = call.results, wrong = call.results;
  for (int64_t index = 0; index < results[0].getNumElements(); ++index) {
    results[0].setFloat(index, right.results[0].getFloat(index));
    wrong[0].setFloat(index, right.results[0].getFloat(index) + 0.1);
  }

  auto byReference = llvm::cantFail(ResultChecker::create(classes, call, true));
  std::string problem = byReference.check(wrong);
  EXPECT_EQ(problem.rfind("wrong result 'output': ", 0), 0u) << problem;
  EXPECT_EQ(byReference.check(results), "");

  auto byFirst = llvm::cantFail(ResultChecker::create(classes, call, false));
  EXPECT_EQ(byFirst.check(wrong), "");
  EXPECT_EQ(byFirst.check(wrong), "");
  problem = byFirst.check(results);
  EXPECT_EQ(problem.rfind("wrong result 'output': ", 0), 0u) << problem;
}

TEST(Watchdog, EndsWhatHangs) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Watchdog watchdog(0.05, "it hangs\n");
        std::this_thread::sleep_for(std::chrono::seconds(60));
      },
      ::testing::ExitedWithCode(1), "it hangs");
}

TEST(Watchdog, LeavesAloneWhatEnds) {
  for (int i = 0; i < 100; ++i)
    Watchdog watchdog(60, "it hangs\n");
}
