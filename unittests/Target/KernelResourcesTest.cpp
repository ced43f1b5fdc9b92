//===- KernelResourcesTest.cpp - Shared memory, registers, occupancy ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/Target/TargetInfo.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir::attnfuse;

TEST(KernelResources, HeadDimsArePaddedTo16) {
  PaddedHeadDims dims(8, 72);
  EXPECT_EQ(dims.qk, 16);
  EXPECT_EQ(dims.v, 80);
}

TEST(KernelResources, LoopBuffersLieBehindEachOther) {
  SharedMemoryPlan layout(PaddedHeadDims(128, 64), {128, 32, 4, false});
  EXPECT_EQ(layout.q, 0);
  EXPECT_EQ(layout.k, 128 * 128 * 2);
  EXPECT_EQ(layout.v, layout.k + 32 * 128 * 2);
  EXPECT_EQ(layout.size, layout.v + 32 * 64 * 2);
}

TEST(KernelResources, SlotsLieBehindEachOther) {
  KernelTile tile{128, 32, 4, false};
  PaddedHeadDims dims(128, 64);
  SharedMemoryPlan one(dims, tile);
  EXPECT_EQ(one.slotBytes, 32 * (128 + 64) * 2);
  for (int64_t stages : {2, 3, 4}) {
    tile.stages = stages;
    SharedMemoryPlan several(dims, tile);
    EXPECT_EQ(several.k, one.k);
    EXPECT_EQ(several.v, one.v);
    EXPECT_EQ(several.size, one.size + (stages - 1) * one.slotBytes);
    EXPECT_EQ(getUnpipelinedResources({dims}, tile).sharedMemory, several.size);
  }
}

TEST(KernelResources, OutputStagingCanBeTheLarger) {
  SharedMemoryPlan layout(PaddedHeadDims(16, 256), {128, 16, 8, false});
  EXPECT_EQ(layout.size, 128 * 256 * 2);
}

TEST(KernelResources, RegistersOfTwoRowTiles) {
  KernelTile tile{128, 64, 4, false};
  PaddedHeadDims dims(64, 64);
  // Output 64, scores 64, probabilities 32, and 64.
  EXPECT_EQ(getUnpipelinedResources({dims}, tile).registersPerThread, 224);
  EXPECT_EQ(getUnpipelinedResources({dims}, tile).threads, 128);
  // 16 keys' probabilities in place of their scores, and 55.
  EXPECT_EQ(getUnpipelinedResources({dims}, tile).leastRegisters, 191);
}

TEST(KernelResources, FewerRegistersDoWhereThereAreNoMore) {
  KernelTile tile{128, 48, 4, false};
  PaddedHeadDims dims(128, 128);
  // 264 would be better.
  KernelResources resources = getUnpipelinedResources({dims}, tile);
  EXPECT_EQ(resources.registersPerThread, 255);
  EXPECT_EQ(resources.leastRegisters, 239);
  tile.tileN = 80;
  resources = getUnpipelinedResources({dims}, tile);
  EXPECT_EQ(resources.registersPerThread, 271);
  EXPECT_EQ(resources.leastRegisters, 271);
}

TEST(KernelResources, EachLimitBoundsTheBlocksPerSm) {
  llvm::Expected<TargetInfo> target = lookupTarget("sm_86");
  ASSERT_TRUE(bool(target));
  EXPECT_EQ(getBlocksPerSm({31 * 1024, 32, 128}, *target), 3); // shared memory
  EXPECT_EQ(getBlocksPerSm({1024, 200, 128}, *target), 2);     // registers
  EXPECT_EQ(getBlocksPerSm({1024, 32, 1024}, *target), 1);     // threads
  EXPECT_EQ(getBlocksPerSm({1024, 32, 32}, *target), 16);      // blocks
}

TEST(KernelResources, ABlockThatIsTooLargeDoesNotRun) {
  llvm::Expected<TargetInfo> target = lookupTarget("sm_86");
  ASSERT_TRUE(bool(target));
  EXPECT_EQ(getBlocksPerSm({99 * 1024, 255, 128}, *target), 1);
  EXPECT_EQ(getBlocksPerSm({99 * 1024 + 1, 255, 128}, *target), 0);
  EXPECT_EQ(getBlocksPerSm({1024, 256, 128}, *target), 0);
  EXPECT_EQ(getBlocksPerSm({1024, 32, 1056}, *target), 0);
  EXPECT_EQ(getBlocksPerSm({1024, 255, 1024}, *target), 0);
}

TEST(KernelResources, PipelinedPlanHasAlignedTilesThatDoNotOverlap) {
  TargetInfo target = llvm::cantFail(lookupTarget("h200"));
  for (int64_t headDim = 8; headDim <= 256; headDim += 8)
    for (int64_t groups : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(headDim) + " " + std::to_string(groups));
      PaddedHeadDims dims(headDim, headDim);
      KernelTile tile{64 * groups, 64, 4 * groups, false, KernelPipeline()};
      PipelinedMemoryPlan plan({dims}, tile, target);
      for (int64_t bytes : {plan.queryBytes, plan.keyBytes, plan.valueBytes,
                            plan.k, plan.v, plan.output})
        EXPECT_EQ(bytes % 1024, 0);
      EXPECT_EQ(plan.k, plan.queryBytes);
      EXPECT_EQ(plan.v, plan.k + 2 * plan.keyBytes);
      EXPECT_EQ(plan.outputReplacesQuery, plan.output == plan.q);
      EXPECT_EQ(plan.tileRecords % kTileRecordBytes, 0);
      EXPECT_GE(plan.tileRecords, plan.v + 2 * plan.valueBytes);
      EXPECT_EQ(plan.barriers,
                plan.tileRecords + kTileRecordStages * kTileRecordBytes);
      EXPECT_EQ(plan.size, plan.barriers + 8 * plan.getNumBarriers());
    }
}

TEST(KernelResources, RolesShareTheRegistersOfAnSm) {
  for (int64_t groups : {1, 2, 3})
    for (int64_t blocks : {1, 2, 3})
      for (bool rotates : {false, true}) {
        if (groups > 1 && blocks > 1)
          continue;
        RoleRegisters registers = RoleRegisters::get(groups, blocks, rotates);
        EXPECT_EQ(registers.load % 8, 0);
        EXPECT_EQ(registers.compute % 8, 0);
        EXPECT_LE(registers.compute, 256);
        EXPECT_LE(128 * blocks * (registers.load + groups * registers.compute),
                  65536);
      }
}

TEST(KernelResources, PairsInLanes) {
  for (int64_t width : {16, 32, 48, 128})
    EXPECT_TRUE(arePairsInLanes(Pairing::Half, width)) << width;
  for (int64_t width : {2, 8, 24, 40})
    EXPECT_FALSE(arePairsInLanes(Pairing::Half, width)) << width;
  for (int64_t width : {8, 24, 128})
    EXPECT_TRUE(arePairsInLanes(Pairing::Interleaved, width)) << width;
  for (int64_t width : {2, 12})
    EXPECT_FALSE(arePairsInLanes(Pairing::Interleaved, width)) << width;
}

TEST(KernelResources, TablesAreStagedWhereTheyFitAndHelp) {
  TargetInfo target = llvm::cantFail(lookupTarget("h200"));
  KernelTraits traits{PaddedHeadDims(128, 128)};
  traits.queryTableRowBytes = 256;
  KernelTile tile{128, 128, 8, true, KernelPipeline()};
  tile.packedHeads = 4;
  auto getBytes = [&] {
    PipelinedMemoryPlan plan(traits, tile, target);
    EXPECT_LE(plan.size, target.maxSharedPerBlock);
    EXPECT_EQ(plan.tileRecords, plan.tables + plan.tableBytes);
    return plan.tableBytes;
  };
  EXPECT_EQ(getBytes(), 2 * 32 * (256 + 32));
  traits.rotatesKeys = true; // by the warps that would bring them
  EXPECT_EQ(getBytes(), 0);
  traits.rotatesKeys = false;
  tile.qInRegisters = false;
  EXPECT_EQ(getBytes(), 0);
  tile.qInRegisters = true;
  tile.packedHeads = 1; // 128 positions
  EXPECT_EQ(getBytes(), 0);
  tile.packedHeads = 4;
  traits.queryTableRowBytes = 0;
  EXPECT_EQ(getBytes(), 0);
}

TEST(KernelResources, StagedTableRowsLieInDifferentBanks) {
  TargetInfo target = llvm::cantFail(lookupTarget("h200"));
  KernelTraits traits{PaddedHeadDims(128, 128)};
  KernelTile tile{128, 128, 8, true, KernelPipeline()};
  tile.packedHeads = 8;
  for (int64_t rowBytes = 8; rowBytes <= 256; rowBytes += 8) {
    traits.queryTableRowBytes = rowBytes;
    PipelinedMemoryPlan plan(traits, tile, target);
    EXPECT_EQ(plan.tableBytes, 2 * 16 * plan.tablePitch);
    EXPECT_GE(plan.tablePitch, rowBytes);
    EXPECT_LT(plan.tablePitch, rowBytes + 64);
    // 8 rows, 32 bytes of each, in two accesses of 128 bytes.
    std::set<int64_t> places;
    for (int64_t row = 0; row < 8; ++row)
      places.insert(row * plan.tablePitch % 256 / 32);
    EXPECT_EQ(places.size(), 8u) << rowBytes;
  }
}

TEST(KernelResources, StagedOperandsLieSideBySide) {
  TargetInfo target = llvm::cantFail(lookupTarget("h200"));
  KernelTile tile{128, 96, 8, false, KernelPipeline()};
  auto getStagedBytes = [&](Staging staging) {
    KernelTraits traits{PaddedHeadDims(64, 64), false, staging};
    return PipelinedMemoryPlan(traits, tile, target).stagedBytes;
  };
  // Two panels of 64 keys: 128 rows of 128 bytes, or one row and what the
  // swizzle repeats by.
  EXPECT_EQ(getStagedBytes({}), 0);
  EXPECT_EQ(getStagedBytes({1, 0}), 2 * 1024);
  EXPECT_EQ(getStagedBytes({0, 1}), 2 * 128 * 128);
  EXPECT_EQ(getStagedBytes({2, 1}), 2 * (2 * 1024 + 128 * 128));
}

TEST(KernelResources, PipelinedPlanFollowsTheMachine) {
  TargetInfo target = llvm::cantFail(lookupTarget("h200"));
  KernelTraits traits{PaddedHeadDims(64, 64), false, Staging{0, 1}};
  KernelTile tile{128, 128, 8, false, KernelPipeline()};
  PipelinedMemoryPlan roomy(traits, tile, target);
  EXPECT_EQ(roomy.stagedStages, 2);
  EXPECT_FALSE(roomy.outputReplacesQuery);
  // One byte less than that: the second stage goes first, then the output's
  // own memory.
  target.maxSharedPerBlock = roomy.size - 1;
  PipelinedMemoryPlan tight(traits, tile, target);
  EXPECT_EQ(tight.stagedStages, 1);
  EXPECT_FALSE(tight.outputReplacesQuery);
  target.maxSharedPerBlock = tight.size - 1;
  PipelinedMemoryPlan tighter(traits, tile, target);
  EXPECT_TRUE(tighter.outputReplacesQuery);
  EXPECT_LE(tighter.size, target.maxSharedPerBlock);
}
