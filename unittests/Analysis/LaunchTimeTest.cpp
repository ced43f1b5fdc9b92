//===- LaunchTimeTest.cpp - Large blocks against small ones ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/LaunchTime.h"
#include "../TestModule.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
constexpr int64_t kSms = 100;
const BlockTile kLarge{{128, 128}, 1}, kSmall{{64, 64}, 2};

class LaunchTimeTest : public ::testing::Test {
protected:
  static SizeExpression get(const AttentionSizes &sizes, const BlockTile &tile,
                            const std::string &masks = "",
                            int64_t smCount = kSms) {
    std::string x = "tensor<?x?x?x64xf16>", lists = "tensor<?xi32>";
    std::string blocks = masks.find("blocks") == std::string::npos
                             ? ""
                             : ", " + lists + ", " + lists;
    TestModule module("func.func @f(%q: " + x + ", %r: " + lists +
                      ", %l: " + lists + ") -> " + x +
                      " {\n%o = attnfuse.attention q(%q) k(%q) v(%q) " + masks +
                      " softmax {scale = 1.0 : f64} : (" + x + ", " + x + ", " +
                      x + blocks + ") -> " + x + "\nreturn %o : " + x + "\n}");
    func::FuncOp function = module.getFunction();
    EXPECT_TRUE(bool(function)) << masks;
    return estimateLaunchTime(*function.getOps<AttentionOp>().begin(), sizes,
                              tile, smCount);
  }
  /// Of `heads` heads, with as many keys as queries.
  static int64_t time(int64_t heads, int64_t n, const BlockTile &tile,
                      const std::string &masks = "") {
    return *get({1, heads, heads, n, n}, tile, masks).getInteger();
  }
  static double ratio(int64_t heads, int64_t n, const std::string &masks = "") {
    return double(time(heads, n, kSmall, masks)) /
           double(time(heads, n, kLarge, masks));
  }
  static std::string window(int64_t keys) {
    return "bands [#attnfuse.band<top_left, left = " +
           std::to_string(keys - 1) + ", right = 0>]";
  }
  const std::string causal = "bands [#attnfuse.band<top_left, right = 0>]";
};

TEST_F(LaunchTimeTest, WalksOfEqualLengthComeInRounds) {
  // 8 large tiles a head: 96 are one round, 104 are two, as 200 are.
  int64_t round = time(12, 1024, kLarge);
  EXPECT_EQ(time(13, 1024, kLarge), 2 * round);
  EXPECT_EQ(time(25, 1024, kLarge), 2 * round);
  EXPECT_EQ(time(26, 1024, kLarge), 3 * round);
}

TEST_F(LaunchTimeTest, ABlockAloneTakesTwoThirdsOfTwo) {
  // 16 small tiles a head, one or two of which are on an SM.
  EXPECT_EQ(3 * time(6, 1024, kSmall), 2 * time(12, 1024, kSmall));
  EXPECT_EQ(3 * time(18, 1024, kSmall), 5 * time(12, 1024, kSmall));
}

TEST_F(LaunchTimeTest, SmallTilesFillAMachineThatLargeOnesDoNot) {
  EXPECT_LT(ratio(6, 1024), 1);
  EXPECT_LT(ratio(6, 1024, causal), 1);
  // Large tiles fill it, but small ones share their last round.
  EXPECT_GT(ratio(12, 1024), 1);
  // The long walk of a large tile takes all of the time.
  EXPECT_LT(ratio(12, 1024, causal), 1);
  for (const std::string &masks : {std::string(), causal}) {
    EXPECT_GT(ratio(25, 1024, masks), 1) << masks;
    EXPECT_GT(ratio(1000, 1024, masks), 1) << masks;
  }
}

TEST_F(LaunchTimeTest, ShortRowsLeaveLargeTilesEmpty) {
  EXPECT_LT(ratio(1000, 64), 1);
  EXPECT_LT(ratio(1000, 8), 1);
}

TEST_F(LaunchTimeTest, NarrowBandsAreLessKeysOfSmallTiles) {
  EXPECT_LE(ratio(64, 16384, window(256)), 1);
  EXPECT_GT(ratio(64, 16384, window(512)), 1);
  EXPECT_LT(ratio(64, 16384, window(512)), ratio(64, 16384, window(1024)));
  // A window as long as the rows is the causal mask.
  for (const BlockTile &tile : {kLarge, kSmall})
    EXPECT_EQ(time(8, 512, tile, window(512)), time(8, 512, tile, causal));
}

TEST_F(LaunchTimeTest, PlacesOfThreeAndRowsOfSeveralHeads) {
  // Of 100 SMs with three places each, 300 small tiles fill all, 200 two.
  const BlockTile three{{64, 64}, 3};
  int64_t full = *get({1, 300, 300, 64, 1024}, three).getInteger();
  EXPECT_EQ(9 * *get({1, 200, 200, 64, 1024}, three).getInteger(), 7 * full);
  EXPECT_EQ(9 * *get({1, 100, 100, 64, 1024}, three).getInteger(), 5 * full);
  EXPECT_EQ(9 * *get({1, 400, 400, 64, 1024}, three).getInteger(), 14 * full);
  // 4 heads of 32 rows are a tile of one head's 128.
  EXPECT_EQ(get({1, 400, 100, 32, 1024}, {{128, 128, 4}, 1}).getInteger(),
            get({1, 100, 100, 128, 1024}, kLarge).getInteger());
  // Rounds of three warpgroups are half as many again as of two.
  EXPECT_EQ(2 * *get({1, 100, 100, 192, 1024}, {{192, 128}, 1}).getInteger(),
            3 * *get({1, 100, 100, 128, 1024}, kLarge).getInteger());
}

TEST_F(LaunchTimeTest, OfListsTheMeanCounts) {
  const std::string blocks = "blocks <128x128>(%r, %l)";
  AttentionSizes sizes{1, 100, 100, 1024, 1024};
  // 3 of 8 blocks in each row.
  sizes.numBlocks = 24;
  EXPECT_EQ(get(sizes, kLarge, blocks).getInteger(),
            3 * 8 * (3 * 128 + 96) * 2 * 50);
  // No row has more than 8.
  sizes.numBlocks = 1000;
  EXPECT_EQ(get(sizes, kLarge, blocks).getInteger(),
            3 * 8 * (8 * 128 + 96) * 2 * 50);
}

TEST_F(LaunchTimeTest, GrowsWithTheWork) {
  for (const std::string &masks : {std::string(), causal})
    for (const BlockTile &tile : {kLarge, kSmall})
      for (int64_t heads = 1; heads < 40; ++heads) {
        EXPECT_LE(time(heads, 512, tile, masks),
                  time(heads + 1, 512, tile, masks))
            << heads << masks;
        EXPECT_LE(time(8, 64 * heads, tile, masks),
                  time(8, 64 * heads + 64, tile, masks))
            << heads << masks;
      }
}

TEST_F(LaunchTimeTest, TheMoreBlocksShareAnSmTheBetterIsItUsed) {
  int64_t before = time(300, 1024, {{64, 64}, 1}, causal);
  for (int64_t places : {2, 3}) {
    int64_t here = time(300, 1024, {{64, 64}, places}, causal);
    EXPECT_LT(here, before) << places;
    before = here;
  }
}

TEST_F(LaunchTimeTest, TheLargestLaunchesHaveATime) {
  constexpr int64_t most = (int64_t(1) << 30) - 1;
  for (const std::string &masks :
       {std::string(), causal, window(most),
        std::string("blocks <1073741824x1073741824>(%r, %l)")})
    for (const BlockTile &tile : {kLarge, kSmall, BlockTile{{192, 128}, 1}})
      // The most tiles that a launch may have, of long rows and of single ones.
      for (AttentionSizes sizes :
           {AttentionSizes{1, 64, 64, most, most}, {most, 1, 1, 1, most}}) {
        sizes.numBlocks = most;
        EXPECT_TRUE(get(sizes, tile, masks, /*smCount=*/1).getInteger())
            << masks;
      }
}

TEST_F(LaunchTimeTest, EmptyLaunchesDivideByNothing) {
  for (const std::string &masks : {std::string(), causal, window(8)})
    for (const BlockTile &tile : {kLarge, kSmall})
      for (AttentionSizes sizes : {AttentionSizes{0, 8, 8, 64, 64},
                                   {1, 0, 0, 64, 64},
                                   {1, 8, 8, 0, 64},
                                   {1, 8, 8, 64, 0},
                                   {0, 0, 0, 0, 0}})
        EXPECT_TRUE(get(sizes, tile, masks).getInteger()) << masks;
  EXPECT_EQ(get({0, 8, 8, 64, 64}, kSmall).getInteger(), 0);
  EXPECT_EQ(get({1, 8, 8, 0, 64}, kLarge).getInteger(), 0);
}
} // namespace
