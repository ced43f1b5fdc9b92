//===- KeySplitsTest.cpp - When blocks share the keys of a tile -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/KeySplits.h"
#include "../TestModule.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
class KeySplitsTest : public ::testing::Test {
protected:
  /// Of 64 rows and 64 keys, two of which fit on one of 100 SMs.
  BlockTile tile{{64, 64}, 2};
  static constexpr int64_t kSms = 100;
  /// A key tile, in 1000 clocks at 2 GHz; a row of 64 + 2 f32, written and read
  /// at 2000 bytes a nanosecond.
  static constexpr int64_t kStep = 500000, kRow = 264, kLaunch = 2000000;

  static TargetInfo machine() {
    TargetInfo target;
    target.clockGhz = 2;
    target.l2BytesPerClock = 32;
    target.dramGbPerSecond = 2000;
    target.combineLaunchNs = 2000;
    return target;
  }
  KeySplits get(AttentionSizes sizes, const std::string &masks = "",
                const SizeExpression &smCount = kSms,
                const TargetInfo &target = machine()) {
    std::string x = "tensor<?x?x?x64xf16>";
    TestModule module("func.func @f(%q: " + x + ") -> " + x +
                      " {\n%o = attnfuse.attention q(%q) k(%q) v(%q) " + masks +
                      " softmax {scale = 1.0 : f64} : (" + x + ", " + x + ", " +
                      x + ") -> " + x + "\nreturn %o : " + x + "\n}");
    func::FuncOp function = module.getFunction();
    EXPECT_TRUE(bool(function)) << masks;
    return KeySplits(*function.getOps<AttentionOp>().begin(), sizes, tile,
                     target, smCount);
  }
  int64_t getCount(AttentionSizes sizes, const std::string &masks = "") {
    return *get(sizes, masks).count.getInteger();
  }
  bool pays(AttentionSizes sizes, const std::string &masks = "") {
    KeySplits splits = get(sizes, masks);
    bool does = *splits.pays().getInteger();
    EXPECT_TRUE(splits.mayPay || !does);
    return does;
  }
};

TEST_F(KeySplitsTest, DecodingFillsTheMachine) {
  KeySplits splits = get({1, 8, 8, 1, 65536});
  // 8 tiles in 200 places.
  EXPECT_EQ(splits.count.getInteger(), 25);
  // Of 1024 key tiles the longest part has 41.
  EXPECT_EQ(splits.gain.getInteger(), (1024 - 41) * kStep);
  EXPECT_EQ(splits.cost.getInteger(), 25 * 8 * kRow + kLaunch);
  EXPECT_EQ(splits.pays().getInteger(), 1);
}

TEST_F(KeySplitsTest, WideTilesTakeAsLongAsTheirBytes) {
  // 64 x (64 + 64) elements at 4 bytes a clock.
  TargetInfo target = machine();
  target.l2BytesPerClock = 4;
  EXPECT_EQ(get({1, 8, 8, 1, 65536}, "", kSms, target).gain.getInteger(),
            (1024 - 41) * 2048000);
}

TEST_F(KeySplitsTest, FewTilesOfKeysLimitTheParts) {
  EXPECT_EQ(getCount({1, 1, 1, 1, 64 * 20}), 10);
  EXPECT_EQ(getCount({1, 1, 1, 1, 64 * 20 + 1}), 11);
  EXPECT_EQ(getCount({1, 1, 1, 1, 1}), 1);
  EXPECT_EQ(getCount({1, 1, 1, 1, 1 << 24}), 200);
  EXPECT_FALSE(pays({1, 1, 1, 1, 64 * 4}));
  EXPECT_TRUE(pays({1, 1, 1, 1, 64 * 20}));
}

TEST_F(KeySplitsTest, NothingIsSplitWithoutKeys) {
  EXPECT_EQ(getCount({1, 8, 8, 1, 0}), 1);
  EXPECT_FALSE(pays({1, 8, 8, 1, 0}));
}

TEST_F(KeySplitsTest, LaunchesWithoutQueriesDivideByNothing) {
  for (AttentionSizes sizes :
       {AttentionSizes{1, 8, 8, 0, 5}, AttentionSizes{0, 8, 8, 1, 65536}}) {
    EXPECT_GE(getCount(sizes), 1);
    EXPECT_TRUE(get(sizes).pays().getInteger().has_value());
  }
}

TEST_F(KeySplitsTest, HeadsThatShareATileCountAsOne) {
  AttentionSizes sizes{1, 32, 8, 1, 65536};
  // 32 tiles in 200 places.
  EXPECT_EQ(getCount(sizes), 6);
  tile.shape.heads = 4;
  EXPECT_EQ(getCount(sizes), 25);
}

TEST_F(KeySplitsTest, HalfTheMachineIsTheLimit) {
  EXPECT_EQ(getCount({1, 100, 100, 64, 1 << 16}), 2);
  EXPECT_TRUE(pays({1, 100, 100, 64, 1 << 16}));
  EXPECT_EQ(getCount({1, 101, 101, 64, 1 << 16}), 1);
  EXPECT_FALSE(pays({1, 101, 101, 64, 1 << 16}));
  EXPECT_EQ(getCount({1, 50, 50, 65, 1 << 16}), 2);
  EXPECT_EQ(getCount({1, 50, 50, 129, 1 << 16}), 1);
}

TEST_F(KeySplitsTest, AnEqualCostPays) {
  AttentionSizes sizes{1, 1, 1, 1, 64 * 4};
  TargetInfo target = machine();
  // Two parts: two key tiles less, and two rows more.
  target.combineLaunchNs = double(2 * kStep - 2 * kRow) / 1000;
  EXPECT_EQ(get(sizes, "", kSms, target).pays().getInteger(), 1);
  target.combineLaunchNs += 0.001;
  EXPECT_EQ(get(sizes, "", kSms, target).pays().getInteger(), 0);
}

TEST_F(KeySplitsTest, LargeSizesDoNotOverflow) {
  constexpr int64_t kLongest = (int64_t(1) << 30) - 1;
  for (AttentionSizes sizes :
       {AttentionSizes{1, 1, 1, 1, kLongest},
        AttentionSizes{int64_t(1) << 20, 1 << 10, 1, 1, kLongest},
        AttentionSizes{2, 1, 1, kLongest, kLongest},
        AttentionSizes{1, 2, 1, kLongest, 0}}) {
    TargetInfo slow = machine();
    slow.dramGbPerSecond = slow.clockGhz = 1e-9;
    slow.combineLaunchNs = 1e18;
    for (const TargetInfo &target : {machine(), slow}) {
      KeySplits splits = get(sizes, "", kSms, target);
      EXPECT_TRUE(splits.count.getInteger());
      EXPECT_TRUE(splits.pays().getInteger());
    }
  }
  EXPECT_EQ(getCount({1, 1, 1, 1, kLongest}), 200);
  EXPECT_EQ(*get({1, 1, 1, 1, kLongest}, "", 1 << 20).count.getInteger(),
            KeySplits::kMostParts);
}

TEST_F(KeySplitsTest, TheVisibleKeysCount) {
  const char *causal = "bands [#attnfuse.band<bottom_right, right = 0>]",
             *topLeft = "bands [#attnfuse.band<top_left, right = 0>]",
             *window =
                 "bands [#attnfuse.band<bottom_right, left = 255, right = 0>]",
             *left = "bands [#attnfuse.band<bottom_right, left = 100>]";
  AttentionSizes decode{1, 1, 1, 1, 1 << 20};
  EXPECT_EQ(getCount(decode, causal), 200);
  EXPECT_EQ(getCount(decode, topLeft), 1);
  // 255 + 64 keys are 5 tiles.
  EXPECT_EQ(getCount(decode, window), 3);
  EXPECT_EQ(getCount(decode, left), 1);
  EXPECT_FALSE(pays(decode, window));
  // The longest tile counts, not the average: 16 tiles of keys.
  EXPECT_EQ(getCount({1, 1, 1, 1024, 1024}, causal), 8);
  EXPECT_EQ(getCount({1, 1, 1, 1024, 1 << 20}, topLeft), 8);
}

TEST_F(KeySplitsTest, WhatTheTypesDecideNeedsNoVersion) {
  auto mayPay = [&](AttentionSizes sizes, const std::string &masks = "") {
    return get(sizes, masks, llvm::json::Value("$sm_count")).mayPay;
  };
  llvm::json::Value n = "N", b = "B";
  EXPECT_TRUE(mayPay({b, 8, 8, n, n}));
  EXPECT_TRUE(mayPay({1, 8, 8, 1, 65536}));
  EXPECT_FALSE(mayPay({b, 8, 8, n, 128}));
  EXPECT_FALSE(
      mayPay({b, 8, 8, n, n},
             "bands [#attnfuse.band<bottom_right, left = 255, right = 0>]"));
  EXPECT_TRUE(
      mayPay({b, 8, 8, n, n},
             "bands [#attnfuse.band<bottom_right, left = 4095, right = 0>]"));
  // More tiles than any machine has places for.
  EXPECT_FALSE(mayPay({64, 64, 8, 4096, n}));
}

TEST_F(KeySplitsTest, DynamicSizesGiveExpressions) {
  KeySplits splits = get({1, 8, 8, 1, llvm::json::Value("N")}, "",
                         llvm::json::Value("$sm_count"));
  ASSERT_TRUE(splits.pays().getJson().getAsArray());
  using llvm::json::Array;
  EXPECT_EQ(
      splits.count.getJson(),
      llvm::json::Value(Array{
          "max",
          Array{"min",
                Array{"ceildiv",
                      Array{"add",
                            Array{"sub", Array{"mul", "$sm_count", 2}, 8}, 1},
                      8},
                Array{"ceildiv", Array{"ceildiv", "N", 64}, 2},
                KeySplits::kMostParts},
          1}));
}
} // namespace
