//===- TileWalkTest.cpp - Parts of a walk over key tiles ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/TileWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

namespace {
/// Walks of constants fold to constants.
class TileWalkTest : public testing::Test {
protected:
  static constexpr int64_t kTileM = 64, kTileN = 32;

  TileWalkTest()
      : module(ModuleOp::create(UnknownLoc::get(&context))),
        b(module->getLoc(), OpBuilder::atBlockEnd(module->getBody())) {
    context.loadDialect<arith::ArithDialect>();
  }

  int64_t get(Value value) {
    APInt constant;
    EXPECT_TRUE(matchPattern(value, m_ConstantInt(&constant)));
    return value.getType().isInteger(1) ? constant.getZExtValue()
                                        : constant.getSExtValue();
  }
  TileWalk getWalk(BandLimits limits, int64_t firstRow, int64_t nq, int64_t nkv,
                   std::optional<WalkPart> part) {
    return TileWalk(b, limits, std::nullopt, b.i32(firstRow), kTileM, kTileN,
                    b.i32(nq), b.i32(nkv), part);
  }
  /// The last tile of the walk and the first; none if it is empty.
  std::optional<std::pair<int64_t, int64_t>> getEnds(TileWalk walk) {
    Values position = walk.begin(b);
    if (!get(walk.isValid(b, position)))
      return std::nullopt;
    int64_t last = get(walk.getFirstKey(b, position)) / kTileN;
    // The first valid tile by bisection; no key is below 0.
    int64_t valid = last, invalid = -1;
    while (valid - invalid > 1) {
      int64_t middle = (valid + invalid) / 2;
      (get(walk.isValid(b, Values{b.i32(middle)})) ? valid : invalid) = middle;
    }
    return std::pair(last, valid);
  }

  /// The parts follow each other from the first key on, and differ by no more
  /// than a tile.
  void checkParts(BandLimits limits, int64_t firstRow, int64_t nq, int64_t nkv,
                  int64_t count) {
    auto whole = getEnds(getWalk(limits, firstRow, nq, nkv, std::nullopt));
    int64_t tiles = whole ? whole->first - whole->second + 1 : 0;
    int64_t next = whole ? whole->second : 0, seen = 0;
    for (int64_t index = 0; index < count; ++index) {
      auto part = getEnds(getWalk(limits, firstRow, nq, nkv,
                                  WalkPart{b.i32(index), b.i32(count)}));
      int64_t size = part ? part->first - part->second + 1 : 0;
      EXPECT_GE(size, tiles / count);
      EXPECT_LE(size, (tiles + count - 1) / count);
      if (!part)
        continue;
      EXPECT_EQ(part->second, next) << index << " of " << count;
      next = part->first + 1;
      seen += size;
    }
    EXPECT_EQ(seen, tiles);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  KernelBuilder b;
};

TEST_F(TileWalkTest, PartsCoverAllKeys) {
  for (int64_t nkv : {0, 1, 31, 32, 33, 700, 1024})
    for (int64_t count : {1, 2, 3, 7, 22, 40})
      checkParts({}, 0, 1, nkv, count);
}

TEST_F(TileWalkTest, PartsCoverTheLongestKeys) {
  for (int64_t count : {1, 3, 1024})
    checkParts({}, 0, 1, kMaxLength, count);
}

TEST_F(TileWalkTest, PartsAreOfWhatTheBandsLeave) {
  for (auto [lower, upper] : {std::pair<int64_t, int64_t>(-100, 0),
                              {-1000, -900},
                              {-40, 70},
                              {500, 2000},
                              {300, 200}})
    for (int64_t firstRow : {0, 64, 448})
      for (int64_t count : {1, 2, 5, 30})
        checkParts({b.i32(lower), b.i32(upper)}, firstRow, 500, 700, count);
}
} // namespace
