//===- KernelResourcesTest.cpp - Shared memory, registers, occupancy ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/Target/TargetInfo.h"
#include <gtest/gtest.h>

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

TEST(KernelResources, OutputStagingCanBeTheLarger) {
  SharedMemoryPlan layout(PaddedHeadDims(16, 256), {128, 16, 8, false});
  EXPECT_EQ(layout.size, 128 * 256 * 2);
}

TEST(KernelResources, RegistersOfTwoRowTiles) {
  KernelTile tile{128, 64, 4, false};
  PaddedHeadDims dims(64, 64);
  // Output 64, scores 64, probabilities 32, and 64.
  EXPECT_EQ(getKernelResources(dims, tile).registersPerThread, 224);
  tile.qInRegisters = true;
  EXPECT_EQ(getKernelResources(dims, tile).registersPerThread, 256);
  EXPECT_EQ(getKernelResources(dims, tile).threads, 128);
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
