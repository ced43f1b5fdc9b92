//===- RotationCalculusTest.cpp - What rotating k costs -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/RotationCalculus.h"
#include "../TestModule.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
TEST(SizeExpressionTest, WhatIsKnownIsComputed) {
  SizeExpression a = 7, b = 3;
  EXPECT_EQ((a + b).getInteger(), 10);
  EXPECT_EQ((a - b).getInteger(), 4);
  EXPECT_EQ((a * b).getInteger(), 21);
  EXPECT_EQ(ceilDiv(a, b).getInteger(), 3);
  EXPECT_EQ(min(a, b).getInteger(), 3);
  EXPECT_EQ(max(a, b).getInteger(), 7);
  EXPECT_EQ(isAtMost(a, b).getInteger(), 0);
  EXPECT_EQ(isAtMost(b, a).getInteger(), 1);
  EXPECT_EQ(isEqual(a, b).getInteger(), 0);
  EXPECT_EQ(isEqual(a, 7).getInteger(), 1);
  // As the runtime has it (Runtime/Expression.cpp).
  EXPECT_EQ(mod(-7, b).getInteger(), 2);
  EXPECT_EQ(ceilDiv(-7, b).getInteger(), -2);
}

TEST(SizeExpressionTest, WhatIsNotIsWritten) {
  SizeExpression n = llvm::json::Value("N");
  EXPECT_FALSE(n.getInteger());
  EXPECT_EQ(ceilDiv(n * (SizeExpression(2) + 3), 4).getJson(),
            llvm::json::Value(llvm::json::Array{
                "ceildiv", llvm::json::Array{"mul", "N", 5}, 4}));
}

/// Lists in lists; readers of manifests take up to 100.
int64_t getDepth(const llvm::json::Value &expression) {
  int64_t depth = 0;
  if (const llvm::json::Array *list = expression.getAsArray())
    for (const llvm::json::Value &part : *list)
      depth = std::max(depth, 1 + getDepth(part));
  return depth;
}

TEST(SizeExpressionTest, LimitsDoNotNest) {
  SizeExpression least = llvm::json::Value("N"), m = llvm::json::Value("M");
  for (int64_t i = 0; i < 1000; ++i)
    least = min(std::move(least), max(max(m, i), llvm::json::Value("L")));
  EXPECT_EQ(least.getJson().getAsArray()->size(), 1002u);
  EXPECT_EQ(getDepth(least.getJson()), 2);
  // Where the order matters, they do.
  SizeExpression n = llvm::json::Value("N");
  EXPECT_EQ(getDepth((n - n - n).getJson()), 2);
}

TEST(SizeExpressionTest, WhatDoesNotFitIsLeftToTheLaunch) {
  SizeExpression large = int64_t(1) << 62;
  EXPECT_FALSE((large * 2).getInteger());
  EXPECT_FALSE((large + large).getInteger());
  EXPECT_FALSE(ceilDiv(large, 0).getInteger());
  EXPECT_FALSE(mod(large, 0).getInteger());
}

/// A kind of attention, by its masks in the assembly.
struct Variant {
  std::string masks = "";
  int64_t dim = 64;
  /// Types of the lists of blocks <64x64>, if there are any.
  std::string rows = "", columns = "";
};

class RotationCalculusTest : public ::testing::Test {
protected:
  /// The op, which lives as long as the test.
  AttentionOp parse(const Variant &variant) {
    std::string dim = std::to_string(variant.dim);
    std::string x = "tensor<?x?x?x" + dim + "xf16>";
    std::string table = "tensor<?x" + std::to_string(variant.dim / 2) + "xf32>";
    bool hasBlocks = !variant.rows.empty();
    std::string text =
        "func.func @f(%q: " + x + ", %c: " + table +
        (hasBlocks ? ", %r: " + variant.rows + ", %l: " + variant.columns
                   : "") +
        ") -> " + x +
        " {\n%o = attnfuse.attention q(%q) k(%q) v(%q) "
        "rotate_k <half, offset = 0>(%c, %c) " +
        (hasBlocks ? "blocks <64x64>(%r, %l) " : "") + variant.masks +
        " softmax {scale = 1.0 : f64} : (" + x + ", " + x + ", " + x + ", " +
        table + ", " + table +
        (hasBlocks ? ", " + variant.rows + ", " + variant.columns : "") +
        ") -> " + x + "\nreturn %o : " + x + "\n}";
    parsed.push_back(std::make_unique<TestModule>(text));
    func::FuncOp function = parsed.back()->getFunction();
    EXPECT_TRUE(bool(function)) << text;
    return *function.getOps<AttentionOp>().begin();
  }

  int64_t getVisits(const Variant &variant, AttentionSizes sizes,
                    int64_t tileM = 128, int64_t tileN = 64) {
    return *TileVisits(parse(variant), sizes, {tileM, tileN})
                .inAll.getInteger();
  }

  std::vector<std::unique_ptr<TestModule>> parsed;
};

/// Tiles with a visible score, counted one by one.
int64_t countTiles(int64_t nq, int64_t nkv, int64_t tileM, int64_t tileN,
                   llvm::function_ref<bool(int64_t, int64_t)> isVisible) {
  int64_t count = 0;
  for (int64_t i = 0; i < nq; i += tileM)
    for (int64_t j = 0; j < nkv; j += tileN) {
      bool any = false;
      for (int64_t row = i; row < std::min(nq, i + tileM); ++row)
        for (int64_t key = j; key < std::min(nkv, j + tileN) && !any; ++key)
          any = isVisible(row, key);
      count += any;
    }
  return count;
}

TEST_F(RotationCalculusTest, DenseVisitsAreExact) {
  EXPECT_EQ(getVisits({}, {2, 6, 3, 300, 1000}), 2 * 6 * 3 * 16);
  EXPECT_EQ(getVisits({}, {2, 6, 3, 1, 1000}), 2 * 6 * 16);
  EXPECT_EQ(getVisits({}, {2, 6, 3, 0, 1000}), 0);
}

TEST_F(RotationCalculusTest, AnyNumberOfBandsMakesAShallowCondition) {
  Variant variant;
  for (int64_t i = 0; i < 1000; ++i)
    variant.masks += (i ? ", " : "bands [") +
                     ("#attnfuse.band<top_left, left = " + std::to_string(i)) +
                     ">";
  variant.masks += "]";
  AttentionOp op = parse(variant);
  RotationCosts costs(op, AttentionSizes::get(op), {{{128, 64}}, true},
                      llvm::cantFail(lookupTarget("h200")));
  EXPECT_LT(getDepth(costs.isFusedQuicker().getJson()), 30);
}

TEST_F(RotationCalculusTest, VisitsOfBandsAreCloseToWhatIsCounted) {
  struct {
    const char *masks;
    int64_t left, right; ///< Reach to both sides; large where there is no end.
    bool isBottom;
  } bands[] = {
      {"bands [#attnfuse.band<bottom_right, right = 0>]", 1 << 20, 0, true},
      {"bands [#attnfuse.band<top_left, right = 0>]", 1 << 20, 0, false},
      {"bands [#attnfuse.band<top_left, left = 100>]", 100, 1 << 20, false},
      {"bands [#attnfuse.band<bottom_right, left = 255, right = 0>]", 255, 0,
       true},
      {"bands [#attnfuse.band<top_left, left = 500, right = 300>]", 500, 300,
       false},
      {"bands [#attnfuse.band<bottom_right, left = 4095, right = 0>]", 4095, 0,
       true},
      {"bands [#attnfuse.band<top_left, left = 10, right = 3000>]", 10, 3000,
       false},
  };
  for (auto [nq, nkv] :
       {std::pair(2048, 2048), std::pair(1024, 4096), std::pair(4096, 2048)})
    for (const auto &band : bands) {
      int64_t shift = band.isBottom ? nkv - nq : 0;
      int64_t counted = countTiles(nq, nkv, 128, 64, [&](int64_t i, int64_t j) {
        int64_t diagonal = i + shift;
        return j >= diagonal - band.left && j <= diagonal + band.right;
      });
      Variant variant;
      variant.masks = band.masks;
      int64_t visits = getVisits(variant, {1, 1, 1, nq, nkv});
      // The edges of the matrix cut windows, which the formula does not see.
      EXPECT_NEAR(double(visits), double(counted), 0.2 * counted + 8)
          << band.masks << " " << nq << " x " << nkv;
    }
}

TEST_F(RotationCalculusTest, VisitsOfListsFollowTheirLength) {
  Variant shared{"", 64, "tensor<?xi32>", "tensor<?xi32>"};
  AttentionSizes sizes{2, 6, 3, 1024, 1024, SizeExpression(50)};
  EXPECT_EQ(getVisits(shared, sizes, 64, 64), 2 * 6 * 50);
  EXPECT_EQ(getVisits(shared, sizes, 64, 32), 2 * 6 * 100);
  Variant perHead{"", 64, "tensor<1x?x?xi32>", "tensor<?xi32>"};
  EXPECT_EQ(getVisits(perHead, sizes, 64, 64), 2 * 50);
  Variant ofAll{"", 64, "tensor<?x?x?xi32>", "tensor<?xi32>"};
  EXPECT_EQ(getVisits(ofAll, sizes, 64, 64), 50);
  // No more blocks than there are, and no more of one than of the lengths.
  sizes.numBlocks = 1000;
  EXPECT_EQ(getVisits(shared, sizes, 64, 64), 2 * 6 * 16 * 16);
  sizes.queries = sizes.keys = 32;
  EXPECT_EQ(getVisits(shared, sizes, 64, 64), 2 * 6);
}

class RotationCostsTest : public RotationCalculusTest {
protected:
  RotationCosts getCosts(AttentionSizes sizes, const Variant &variant = {}) {
    return RotationCosts(parse(variant), sizes, {{{128, 128}}, false},
                         machine());
  }
  static TargetInfo machine() {
    TargetInfo target;
    target.smCount = 100;
    target.clockGhz = 2;
    target.keyRotationClocks = 200;
    target.rotationLaunchNs = 1000;
    target.rotationGbPerSecond = 2000;
    return target;
  }
  /// Whose loading warpgroups rotate.
  static TargetInfo pipelinedMachine(double clocks) {
    TargetInfo target = machine();
    target.loaderRotationClocks = clocks;
    target.loaderLatencyClocks = 640;
    target.loaderSharing = 0.7;
    target.visitPerProduct = 1.35;
    target.hiddenClocksPerFeature = 9.4;
    target.tensorFlopsPerClock = 4096;
    return target;
  }
};

TEST_F(RotationCostsTest, Units) {
  // 1 x 100 heads x 10 x 10 visits; 8 Ki features of 200 clocks at 2 GHz on 100
  // SMs: 8 ns each.
  RotationCosts costs = getCosts({1, 100, 100, 1280, 1280});
  EXPECT_EQ(costs.fused.getInteger(), 10000 * 8000);
  // 1280 x 100 rows of 64 elements, 2 bytes read and 2 written: 32.8 MB at 2
  // bytes a picosecond, and the launch.
  EXPECT_EQ(costs.split.getInteger(), 1000000 + 1280 * 100 * 128);
}

TEST_F(RotationCostsTest, Limits) {
  // Nothing to rotate costs a launch, or nothing.
  RotationCosts none = getCosts({1, 8, 8, 128, 0});
  EXPECT_EQ(none.fused.getInteger(), 0);
  EXPECT_EQ(none.split.getInteger(), 1000000);
  // One tile is not shared by SMs.
  EXPECT_EQ(getCosts({1, 1, 1, 128, 1280}).fused.getInteger(), 10 * 800000);
}

TEST_F(RotationCostsTest, Monotony) {
  int64_t lastFused = -1, lastSplit = -1;
  for (int64_t n : {1, 100, 128, 1000, 5000, 30000, 1 << 20}) {
    RotationCosts costs = getCosts({2, 8, 4, n, n});
    EXPECT_GE(*costs.fused.getInteger(), lastFused);
    EXPECT_GT(*costs.split.getInteger(), lastSplit);
    lastFused = *costs.fused.getInteger();
    lastSplit = *costs.split.getInteger();
  }
  // More query heads for each key head make the fused way dearer, alone.
  RotationCosts groups = getCosts({2, 8, 8, 4096, 4096}),
                wide = getCosts({2, 32, 8, 4096, 4096});
  EXPECT_EQ(*wide.fused.getInteger(), 4 * *groups.fused.getInteger());
  EXPECT_EQ(wide.split.getInteger(), groups.split.getInteger());
}

/// B, H and N drop out of the ratio, but for the number of visits of a key tile
/// and the launch: there is one crossover, where they are rho*.
TEST_F(RotationCostsTest, CrossoverIsWhereTheFormulaHasIt) {
  double visit = 8 * 200 / 2e9 / 100, row = 4.0 * 64 / 2000e9;
  double crossover = 128 * row / visit;
  for (int64_t tiles = 1; tiles < 40; ++tiles) {
    int64_t n = 128 * tiles;
    // Dense: every query tile visits each key tile. A large batch hides the
    // launch.
    AttentionSizes sizes{64, 16, 16, n, n};
    RotationCosts costs = getCosts(sizes);
    bool isFused = *costs.fused.getInteger() <= *costs.split.getInteger();
    if (std::abs(tiles - crossover) > 0.1 * crossover) {
      EXPECT_EQ(isFused, tiles < crossover) << tiles << " of " << crossover;
    }
  }
}

/// Beside the products, only what takes longer than they do is added, less what
/// the ends of a query tile hide.
TEST_F(RotationCostsTest, OverlapTakesOff) {
  TargetInfo target = pipelinedMachine(500);
  AttentionSizes sizes{1, 100, 100, 1280, 1280};
  auto getFused = [&] {
    return RotationCosts(parse({}), sizes, {{{128, 128}}, true}, target)
        .fused.getInteger();
  };
  // 640 + 8 x 500 clocks, less 1.35 x 1024 of products: 3257.6 at 2 GHz on 100
  // SMs, of 10000 visits; 64 x 9.4 of each of 1000 tiles are hidden.
  EXPECT_EQ(getFused(), 10000 * 16288 - 1000 * 3008);
  target.loaderRotationClocks = 50;
  EXPECT_EQ(getFused(), 0);
}

/// Rotations run beside the reading of K and V, too, and beside each other
/// where blocks share an SM.
TEST_F(RotationCostsTest, MemoryTakesOff) {
  TargetInfo target = pipelinedMachine(2000);
  AttentionSizes sizes{4, 100, 100, 1, 1280};
  auto getFused = [&] {
    return RotationCosts(parse({}), sizes, {{{64, 128}, 2}, true}, target)
        .fused.getInteger();
  };
  // 0.7 x (640 + 8 x 2000) clocks at 2 GHz on 100 SMs, of 4000 visits, whose
  // products take 1.35 x 512. 4 x 1280 x 100 rows of 128 elements of K and V
  // come at 2 bytes a picosecond: 65.5 us, which is more than the products.
  EXPECT_EQ(getFused(), 4000 * 58240 - 4 * 16384000 - 400 * 3008);
  target.rotationGbPerSecond = 20000;
  EXPECT_EQ(getFused(), 4000 * (58240 - 3456) - 400 * 3008);
}

/// Parts of the keys of a tile are rotated at once.
TEST_F(RotationCostsTest, SplitKeysShortenTheLastTile) {
  TargetInfo target = machine();
  AttentionSizes sizes{1, 10, 10, 128, 1 << 20};
  auto getFused = [&](bool splitsKeys) {
    return *RotationCosts(parse({}), sizes, {{{128, 128}}, false, splitsKeys},
                          target)
                .fused.getInteger();
  };
  // 8192 visits of each of 10 tiles, on 100 SMs: 10 parts of at most 820.
  EXPECT_EQ(getFused(false), 8192 * 800000LL);
  EXPECT_EQ(getFused(true), 820 * 800000LL);
}

TEST_F(RotationCostsTest, DynamicSizesGiveACondition) {
  llvm::json::Value condition =
      getCosts({llvm::json::Value("B"), 8, 8, llvm::json::Value("N"),
                llvm::json::Value("N")})
          .isFusedQuicker()
          .getJson();
  ASSERT_TRUE(condition.getAsArray());
  EXPECT_EQ((*condition.getAsArray())[0], llvm::json::Value("le"));
  EXPECT_EQ(getCosts({1, 8, 8, 1, 1}).isFusedQuicker().getInteger(), 1);
  EXPECT_EQ(getCosts({1, 8, 8, 1 << 16, 1 << 16}).isFusedQuicker().getInteger(),
            0);
}
} // namespace
