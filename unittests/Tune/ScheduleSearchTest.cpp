//===- ScheduleSearchTest.cpp - The quickest schedule, measured -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Tune/ScheduleSearch.h"
#include "attnfuse/Support/MakeError.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace mlir::attnfuse;

namespace {
using State = PreparedSchedule::State;

/// Times by a formula, on a clock that only it moves.
class FakeTimer : public ScheduleTimer {
public:
  size_t getNumCalls() const override { return numCalls; }
  llvm::Expected<std::vector<PreparedSchedule>>
  prepare(llvm::ArrayRef<KernelTile> schedules,
          llvm::function_ref<bool()> mayBegin) override {
    std::vector<PreparedSchedule> prepared;
    for (const KernelTile &tile : schedules) {
      tiles.push_back(tile);
      prepared.emplace_back();
      if (!mayBegin())
        continue;
      clock += secondsToCompile;
      std::string reason = fail(tile);
      prepared.back() = {reason.empty() ? State::Ready : State::Failed, reason};
      lastBegin = clock;
    }
    return std::move(prepared);
  }
  llvm::Expected<double> sample(size_t schedule, size_t call) override {
    EXPECT_EQ(fail(tiles[schedule]), "");
    if (numSamples++ == failingSample)
      return makeError("the device is gone");
    double seconds = time(tiles[schedule], call) * drift;
    // A clock that throttles: every sample takes longer.
    drift *= 1.0001;
    clock += seconds;
    return seconds;
  }
  double getTime() override { return clock; }

  std::function<double(const KernelTile &, size_t)> time;
  std::function<std::string(const KernelTile &)> fail = [](const KernelTile &) {
    return "";
  };
  size_t numCalls = 1;
  double secondsToCompile = 1;
  double clock = 1000, lastBegin = 0, drift = 1;
  size_t numSamples = 0, failingSample = -1;
  std::vector<KernelTile> tiles;
};

class ScheduleSearchTest : public ::testing::Test {
protected:
  ScheduleSearchTest()
      : space(llvm::cantFail(ScheduleSpace::create(
            ScheduleProblem(64, 64), llvm::cantFail(lookupTarget("sm_90a")),
            true))) {
    options.budget = 1e6;
  }
  SearchResult search() {
    return llvm::cantFail(searchSchedules(space, timer, options));
  }
  ScheduleKey getBest(const SearchResult &result) {
    return space.getKey(result.schedules[result.best].tile);
  }
  /// A millisecond for `goal`, more for what differs from it in more knobs.
  void setGoal(const KernelTile &goal) {
    timer.time = [this, goal](const KernelTile &tile, size_t) {
      ScheduleKey a = space.getKey(goal), b = space.getKey(tile);
      double seconds = 1e-3;
      for (size_t knob = 0; knob < std::max(a.size(), b.size()); ++knob)
        if (knob >= a.size() || knob >= b.size() || a[knob] != b[knob])
          seconds *= 1.05;
      return seconds;
    };
  }

  ScheduleSpace space;
  FakeTimer timer;
  SearchOptions options;
};
} // namespace

TEST_F(ScheduleSearchTest, FindsTheBestManyKnobsAway) {
  KernelTile goal{128, 96, 8, true,
                  KernelPipeline{4, true, RowOrder::Rows, 4, 2, false,
                                 ProductWait::WithNextKey}};
  ASSERT_TRUE(space.isLegal(goal));
  setGoal(goal);
  SearchResult result = search();
  EXPECT_EQ(getBest(result), space.getKey(goal));
  EXPECT_LE(result.schedules.size(), options.maxSchedules);
  const TriedSchedule &best = result.schedules[result.best];
  ASSERT_TRUE(best.finalRatio.has_value());
  EXPECT_NEAR(*best.finalRatio, best.ratio, 0.02 * best.ratio);
  EXPECT_LT(*best.finalRatio, 0.8);
  ASSERT_EQ(best.seconds.size(), 1u);
  EXPECT_GT(best.seconds[0], 1e-3);
  // No schedule is tried twice.
  std::set<ScheduleKey> keys;
  for (const TriedSchedule &tried : result.schedules)
    EXPECT_TRUE(keys.insert(space.getKey(tried.tile)).second);
}

TEST_F(ScheduleSearchTest, FindsTheOtherKindOfKernel) {
  KernelTile goal{64, 64, 4, true, std::nullopt};
  ASSERT_TRUE(space.isLegal(goal));
  setGoal(goal);
  EXPECT_EQ(getBest(search()), space.getKey(goal));
}

TEST_F(ScheduleSearchTest, TheModelsChoiceStaysWithinTheNoise) {
  auto isChoice = [&](const KernelTile &tile) {
    return space.getKey(tile) == space.getKey(space.getChoice());
  };
  for (auto [ratio, wins] : {std::pair(0.995, false), {0.98, true}}) {
    timer.time = [&, ratio = ratio](const KernelTile &tile, size_t) {
      return isChoice(tile) ? 1e-3 : ratio * 1e-3;
    };
    SearchResult result = search();
    EXPECT_EQ(result.best != 0, wins) << ratio;
    EXPECT_EQ(result.schedules[0].ratio, 1);
    EXPECT_EQ(result.schedules[0].finalRatio.value_or(0), 1);
  }
  // Where all are slower nothing is compared anew.
  timer.time = [&](const KernelTile &tile, size_t) {
    return isChoice(tile) ? 1e-3 : 1.1e-3;
  };
  SearchResult result = search();
  EXPECT_EQ(result.best, 0u);
  EXPECT_FALSE(result.schedules[0].finalRatio.has_value());
}

TEST_F(ScheduleSearchTest, NothingIsBegunPastTheBudget) {
  setGoal({64, 32, 4, false,
           KernelPipeline{8, false, RowOrder::Joint, 1, 4, false,
                          ProductWait::End}});
  options.budget = 12.5;
  double start = timer.clock;
  SearchResult result = search();
  EXPECT_LT(timer.lastBegin - start, 14);
  EXPECT_EQ(result.count(State::Ready), 13u);
  EXPECT_GT(result.count(State::LeftOut), 5u);
  EXPECT_LT(result.seconds, 14);
  // What was tried is compared all the same.
  EXPECT_NE(result.best, 0u);

  // The model's choice is timed whatever the budget is.
  options.budget = 0;
  result = search();
  EXPECT_EQ(result.count(State::Ready), 1u);
  EXPECT_EQ(result.best, 0u);
  EXPECT_GT(result.count(State::LeftOut), 5u);
}

TEST_F(ScheduleSearchTest, LongRunsAreTimedLessOften) {
  KernelTile goal = space.getChoice();
  goal.pipeline->partialSums = 4;
  timer.time = [&](const KernelTile &tile, size_t) {
    return space.getKey(tile) == space.getKey(goal) ? 2 : 2.5;
  };
  options.budget = 200;
  SearchResult result = search();
  EXPECT_EQ(getBest(result), space.getKey(goal));
  // A round may end past the budget, and nine follow of five schedules at most.
  EXPECT_LT(result.seconds, options.budget + 25 * 2.5 + 9 * 5 * 2.5);
  EXPECT_LT(result.schedules[result.best].numRounds, 20u);
}

TEST_F(ScheduleSearchTest, NoMoreSchedulesThanAllowed) {
  options.maxSchedules = 10;
  setGoal(space.getChoice());
  EXPECT_EQ(search().schedules.size(), 10u);
}

TEST_F(ScheduleSearchTest, WhatFailsIsSkippedAndReported) {
  timer.fail = [](const KernelTile &tile) {
    return tile.qInRegisters ? "it does not compile" : "";
  };
  KernelTile goal = space.getChoice();
  goal.qInRegisters = true;
  setGoal(goal);
  SearchResult result = search();
  EXPECT_EQ(result.best, 0u);
  EXPECT_GT(result.count(State::Failed), 0u);
  for (const TriedSchedule &tried : result.schedules) {
    EXPECT_EQ(tried.state.reason, timer.fail(tried.tile));
    EXPECT_EQ(tried.seconds.empty(), tried.tile.qInRegisters);
    EXPECT_EQ(tried.numRounds == 0, tried.tile.qInRegisters);
  }
}

TEST_F(ScheduleSearchTest, WithoutTheModelsChoiceThereIsNothingToCompareWith) {
  setGoal(space.getChoice());
  timer.fail = [](const KernelTile &) { return "no kernel"; };
  auto result = searchSchedules(space, timer, options);
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(llvm::toString(result.takeError()),
            "the model's choice cannot be timed: no kernel");
}

TEST_F(ScheduleSearchTest, AFailingDeviceEndsTheSearch) {
  setGoal(space.getChoice());
  timer.failingSample = 30;
  auto result = searchSchedules(space, timer, options);
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(llvm::toString(result.takeError()), "the device is gone");
}

TEST_F(ScheduleSearchTest, OfSeveralCallsTheGeometricMeanCounts) {
  timer.numCalls = 2;
  auto isPlain = [](const KernelTile &tile) { return !tile.pipeline; };
  // 0.5 and 3 times the time: 1.22 in the mean.
  timer.time = [&](const KernelTile &tile, size_t call) {
    return !isPlain(tile) ? 1e-3 : call == 0 ? 0.5e-3 : 3e-3;
  };
  EXPECT_EQ(search().best, 0u);
  // 0.25 and 3 times: 0.87.
  timer.time = [&](const KernelTile &tile, size_t call) {
    return !isPlain(tile) ? 1e-3 : call == 0 ? 0.25e-3 : 3e-3;
  };
  SearchResult result = search();
  const TriedSchedule &best = result.schedules[result.best];
  EXPECT_TRUE(isPlain(best.tile));
  EXPECT_NEAR(best.ratio, std::sqrt(0.75), 1e-3);
  ASSERT_EQ(best.seconds.size(), 2u);
  EXPECT_NEAR(best.seconds[1] / best.seconds[0], 12, 0.1);
}

TEST_F(ScheduleSearchTest, OneFluctuationDecidesNothing) {
  // Of all samples every 20th is far too short, and every 9th far too long.
  timer.time = [&](const KernelTile &, size_t) {
    return timer.numSamples % 20 == 0  ? 0.3e-3
           : timer.numSamples % 9 == 0 ? 2e-3
                                       : 1e-3;
  };
  EXPECT_EQ(search().best, 0u);
}

TEST_F(ScheduleSearchTest, OtherSchedulesAreTriedToo) {
  KernelTile given{48, 48, 3, true, std::nullopt};
  options.others = {given};
  setGoal(given);
  options.maxSchedules = 40;
  EXPECT_EQ(getBest(search()), space.getKey(given));
}

TEST_F(ScheduleSearchTest, EachWaveIsReported) {
  std::vector<std::string> lines;
  options.progress = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  options.budget = 5;
  setGoal(space.getChoice());
  search();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("wave 1: ", 0), 0u) << lines[0];
}
