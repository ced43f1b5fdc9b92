//===- ScheduleChoiceTest.cpp - Choosing and checking tiles ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ScheduleChoice.h"
#include <gtest/gtest.h>

using namespace mlir::attnfuse;

namespace {
std::string getMessage(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "";
}

TargetInfo getTarget(llvm::StringRef name) {
  return llvm::cantFail(lookupTarget(name));
}
} // namespace

TEST(ScheduleChoice, EveryHeadSizeFitsOnEveryMachine) {
  for (const TargetInfo &target : getKnownTargets())
    for (int64_t headDim = 8; headDim <= 256; headDim += 8)
      for (int64_t valueDim : {int64_t(8), headDim, int64_t(256)}) {
        SCOPED_TRACE(target.name + " " + std::to_string(headDim) + " " +
                     std::to_string(valueDim));
        ScheduleProblem problem(headDim, valueDim);
        llvm::Expected<KernelTile> tile = chooseTile(problem, target);
        ASSERT_TRUE(bool(tile)) << llvm::toString(tile.takeError());
        EXPECT_EQ(getMessage(checkTile(problem, *tile, target)), "");
        EXPECT_GE(tile->tileM, 64);
        EXPECT_GT(estimateTileCost(problem, *tile, target), 0);
      }
}

TEST(ScheduleChoice, EveryBlockSizeIsServed) {
  TargetInfo target = getTarget("sm_80");
  for (int64_t queryBlock = 16; queryBlock <= 256; queryBlock += 16)
    for (int64_t keyBlock = 16; keyBlock <= 256; keyBlock += 16) {
      ScheduleProblem problem(64, 64);
      problem.queryBlock = queryBlock;
      problem.keyBlock = keyBlock;
      llvm::Expected<KernelTile> tile = chooseTile(problem, target);
      ASSERT_TRUE(bool(tile)) << llvm::toString(tile.takeError());
      EXPECT_EQ(queryBlock % tile->tileM, 0);
      EXPECT_EQ(keyBlock % tile->tileN, 0);
    }
}

TEST(ScheduleChoice, BlocksOf48KeysGetTilesOf48) {
  ScheduleProblem problem(64, 64);
  problem.queryBlock = 128;
  problem.keyBlock = 48;
  KernelTile tile = llvm::cantFail(chooseTile(problem, getTarget("sm_80")));
  EXPECT_EQ(tile.tileN, 48);
  problem.keyBlock = 192;
  tile = llvm::cantFail(chooseTile(problem, getTarget("sm_80")));
  EXPECT_NE(tile.tileN, 48);
}

TEST(ScheduleChoice, PartsOfKeysLeaveRoomInRegisters) {
  ScheduleProblem problem(128, 128);
  TargetInfo target = getTarget("sm_80");
  KernelTile tile = llvm::cantFail(chooseUnpipelinedTile(problem, target));
  EXPECT_EQ(tile.tileN, 48);
  EXPECT_EQ(leaveRoomForParts(problem, tile, target).tileN, 32);
  problem.keyBlock = 48;
  EXPECT_EQ(leaveRoomForParts(problem, tile, target).tileN, 48);
}

TEST(ScheduleChoice, FewQueriesGetFewRows) {
  TargetInfo target = getTarget("sm_80");
  ScheduleProblem problem(128, 128);
  for (auto [queries, rows] : {std::pair<int64_t, int64_t>(0, 16),
                               {1, 16},
                               {16, 16},
                               {17, 32},
                               {33, 64}}) {
    problem.numQueries = queries;
    llvm::Expected<KernelTile> tile = chooseTile(problem, target);
    ASSERT_TRUE(bool(tile)) << llvm::toString(tile.takeError());
    EXPECT_EQ(tile->tileM, rows) << queries;
  }
}

TEST(ScheduleChoice, DecodingGetsFewKeys) {
  TargetInfo target = getTarget("h200");
  ScheduleProblem problem(128, 128);
  problem.numQueries = 1;
  problem.packableHeads = 16;
  EXPECT_EQ(llvm::cantFail(chooseTile(problem, target)).tileN, 32);
  problem.packableHeads = 17;
  EXPECT_EQ(llvm::cantFail(chooseTile(problem, target)).tileN, 64);
  problem.packableHeads = 16;
  problem.rotatesKeys = true;
  EXPECT_EQ(llvm::cantFail(chooseTile(problem, target)).tileN, 64);
  ScheduleProblem small(64, 64);
  small.numQueries = 1;
  EXPECT_EQ(llvm::cantFail(chooseTile(small, target)).tileN, 64);
}

TEST(ScheduleChoice, SeveralBiasesOfSmallHeadsGetOneWarpgroup) {
  TargetInfo target = getTarget("h200");
  for (int64_t headDim : {64, 128}) {
    ScheduleProblem problem(headDim, headDim);
    problem.staging = {/*perKey=*/1, /*perQueryAndKey=*/0};
    EXPECT_EQ(llvm::cantFail(chooseTile(problem, target)).warps, 8);
    problem.staging.perQueryAndKey = 1;
    EXPECT_EQ(llvm::cantFail(chooseTile(problem, target)).warps,
              headDim == 64 ? 4 : 8);
  }
}

TEST(ScheduleChoice, WarpgroupsTakeTurnsWhereQIsInSharedMemory) {
  TargetInfo target = getTarget("h200");
  ScheduleProblem problem(128, 128);
  EXPECT_FALSE(llvm::cantFail(chooseTile(problem, target)).pipeline->pingPong);
  problem.staging = {/*perKey=*/1, /*perQueryAndKey=*/0};
  EXPECT_TRUE(llvm::cantFail(chooseTile(problem, target)).pipeline->pingPong);
}

TEST(ScheduleChoice, NarrowWindowsGetSmallerTiles) {
  TargetInfo target = getTarget("sm_80");
  ScheduleProblem problem(64, 64);
  KernelTile dense = llvm::cantFail(chooseTile(problem, target));
  problem.windowWidth = 16;
  KernelTile narrow = llvm::cantFail(chooseTile(problem, target));
  EXPECT_LT(narrow.tileM * narrow.tileN, dense.tileM * dense.tileN);
}

TEST(ScheduleChoice, StagesHideCopiesWhileTheyCostNoBlock) {
  ScheduleProblem problem(128, 128);
  KernelTile one{128, 64, 4, false}, two = one;
  two.stages = 2;
  // 64 KiB with one stage, 96 with two.
  TargetInfo roomy = getTarget("sm_90"), tight = getTarget("sm_80");
  EXPECT_LT(estimateTileCost(problem, two, roomy),
            estimateTileCost(problem, one, roomy));
  EXPECT_GT(estimateTileCost(problem, two, tight),
            estimateTileCost(problem, one, tight));
}

TEST(ScheduleChoice, WideHeadsGetTwoRowTilesPerWarp) {
  for (int64_t headDim : {80, 96, 128}) {
    SCOPED_TRACE(headDim);
    KernelTile tile = llvm::cantFail(
        chooseTile(ScheduleProblem(headDim, headDim), getTarget("sm_90")));
    EXPECT_EQ(tile.getRowTilesPerWarp(), 2);
    EXPECT_EQ(tile.warps, 4);
    EXPECT_EQ(tile.stages, 2);
    EXPECT_EQ(tile.tileN, headDim == 128 ? 48 : 64);
  }
}

TEST(ScheduleChoice, FewQueriesGetOneStage) {
  ScheduleProblem problem(128, 128);
  for (auto [queries, stages] :
       {std::pair<int64_t, int64_t>(1, 1), {64, 1}, {65, 2}}) {
    problem.numQueries = queries;
    KernelTile tile = llvm::cantFail(chooseTile(problem, getTarget("sm_80")));
    EXPECT_EQ(tile.stages, stages) << queries;
  }
}

TEST(ScheduleChoice, LessSharedMemoryGivesSmallerTiles) {
  ScheduleProblem problem(256, 256);
  TargetInfo target = getTarget("sm_90");
  KernelTile roomy = llvm::cantFail(chooseTile(problem, target));
  target.maxSharedPerBlock = 48 * 1024;
  KernelTile tight = llvm::cantFail(chooseTile(problem, target));
  EXPECT_LE(getUnpipelinedResources({problem.dims}, tight).sharedMemory,
            48 * 1024);
  EXPECT_LT(tight.tileM * tight.tileN, roomy.tileM * roomy.tileN);

  target.maxSharedPerBlock = 4 * 1024;
  EXPECT_EQ(getMessage(chooseTile(problem, target).takeError()),
            "no tile fits on sm_90: the schedule needs 24576 bytes of shared "
            "memory per block, sm_90 has 4096; use a smaller tile_m or tile_n");
}

TEST(ScheduleChoice, EachLimitIsNamed) {
  TargetInfo target = getTarget("sm_86");
  auto check = [&](const ScheduleProblem &problem, const KernelTile &tile) {
    return getMessage(checkTile(problem, tile, target));
  };
  ScheduleProblem problem(256, 256);
  EXPECT_EQ(check(problem, {64, 64, 4, false}), "");
  EXPECT_EQ(check(problem, {128, 64, 8, false}),
            "the schedule needs 131072 bytes of shared memory per block, sm_86 "
            "has 101376; use a smaller tile_m or tile_n");
  EXPECT_EQ(check(problem, {64, 64, 2, false}),
            "the schedule needs about 383 registers per thread, sm_86 has 255; "
            "use a smaller tile_n or more warps for tile_m");
  EXPECT_EQ(check(ScheduleProblem(16, 16), {1024, 16, 64, false}),
            "the schedule needs 2048 threads per block, sm_86 has 1024; use "
            "fewer warps");
  EXPECT_EQ(check(ScheduleProblem(16, 16), {512, 64, 32, false}),
            "the schedule needs about 122880 registers per block, sm_86 has "
            "65536; use fewer warps or a smaller tile");
  EXPECT_EQ(check(problem, {2048, 64, 4, false}),
            "expected tile_m and tile_n of at most 1024, got 2048 and 64");
  EXPECT_EQ(check(problem, {64, int64_t(1) << 60, 4, false}),
            "expected tile_m and tile_n of at most 1024, got 64 and "
            "1152921504606846976");
  problem.queryBlock = 96;
  EXPECT_EQ(check(problem, {64, 64, 4, false}),
            "expected tile_m to divide the query block of 96, got 64");
  problem.queryBlock = 64;
  problem.keyBlock = 32;
  EXPECT_EQ(check(problem, {64, 64, 4, false}),
            "expected tile_n to divide the key block of 32, got 64");
}
