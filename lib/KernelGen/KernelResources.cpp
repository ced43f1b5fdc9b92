//===- KernelResources.cpp - What a kernel takes from the SM --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/Target/TargetInfo.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir::attnfuse;

namespace {
constexpr int64_t kElementBytes = 2;
/// Addresses, loop counters, row statistics and masks. Allowed 255 registers,
/// the assembler takes up to 90 more than the estimate, to schedule better; it
/// spilled in no kernel whose estimate left kRegisterHeadroom of
/// ScheduleChoice.cpp free.
constexpr int64_t kOtherRegisters = 64;
/// The same where registers are short.
constexpr int64_t kLeastOtherRegisters = 55;
/// Other registers where roles are apart: no copies, fewer addresses.
constexpr int64_t kPipelinedRegisters = 32;
/// What a warpgroup-wide product needs besides its accumulators.
constexpr int64_t kProductRegisters = 30;
/// Registers are handed out per warp in units of this.
constexpr int64_t kRegisterUnit = 256;
/// What lanes read at once of one row of staged tables, at most.
constexpr int64_t kTableReadBytes = 32;
} // namespace

PaddedHeadDims::PaddedHeadDims(int64_t headDim, int64_t valueHeadDim)
    : qk(llvm::alignTo(headDim, kHeadDimMultiple)),
      v(llvm::alignTo(valueHeadDim, kHeadDimMultiple)) {}

bool mlir::attnfuse::arePairsInLanes(Pairing pairing, int64_t width) {
  constexpr int64_t kGroupColumns = 8;
  int64_t together = pairing == Pairing::Half ? width / 2 : width;
  return together % kGroupColumns == 0;
}

bool mlir::attnfuse::isPackedEvenly(int64_t tileM, int64_t heads) {
  if (heads == 1)
    return true;
  if (heads < 1 || tileM % heads != 0)
    return false;
  int64_t rows = tileM / heads, warpRows = kWarpgroupRows / kWarpgroupWarps;
  return rows % kWarpgroupRows == 0 ||
         (rows % warpRows == 0 && kWarpgroupRows % rows == 0);
}

SharedMemoryPlan::SharedMemoryPlan(const PaddedHeadDims &dims,
                                   const KernelTile &tile) {
  k = q + tile.tileM * dims.qk * kElementBytes;
  v = k + tile.tileN * dims.qk * kElementBytes;
  slotBytes = tile.tileN * (dims.qk + dims.v) * kElementBytes;
  int64_t loopEnd = k + tile.stages * slotBytes;
  int64_t outputEnd = output + tile.tileM * dims.v * kElementBytes;
  size = std::max(loopEnd, outputEnd);
}

int64_t mlir::attnfuse::getStagedPanelBytes(bool perQuery, int64_t tileM) {
  // Of one row, the distance that the swizzle repeats by.
  return perQuery ? tileM * kPanelColumns * kElementBytes : kSwizzleBytes;
}

PipelinedMemoryPlan::PipelinedMemoryPlan(const KernelTraits &traits,
                                         const KernelTile &tile,
                                         const TargetInfo &target)
    : stages(tile.pipeline->stages) {
  int64_t qkColumns = llvm::alignTo(traits.dims.qk, kPanelColumns);
  int64_t vColumns = llvm::alignTo(traits.dims.v, kPanelColumns);
  int64_t keyPanels = llvm::divideCeil(tile.tileN, kPanelColumns);
  queryBytes = tile.tileM * qkColumns * kElementBytes;
  keyBytes = tile.tileN * qkColumns * kElementBytes;
  valueBytes = tile.tileN * vColumns * kElementBytes;
  stagedBytes =
      keyPanels *
      (traits.staging.perKey * getStagedPanelBytes(false, tile.tileM) +
       traits.staging.perQueryAndKey * getStagedPanelBytes(true, tile.tileM));
  int64_t outputBytes = tile.tileM * vColumns * kElementBytes;
  int64_t recordBytes = kTileRecordStages * kTileRecordBytes;
  int64_t controlBytes = recordBytes + 8 * getNumBarriers();

  k = q + queryBytes;
  v = k + stages * keyBytes;
  staged = v + stages * valueBytes;
  // In this order: a buffer of its own for the output, a second stage, and
  // tables of the rotation.
  auto fits = [&](int64_t stagedTiles, int64_t ownOutput) {
    return staged + stagedTiles * stagedBytes + ownOutput + controlBytes <=
           target.maxSharedPerBlock;
  };
  outputReplacesQuery = !fits(1, outputBytes) && outputBytes <= queryBytes;
  int64_t ownOutput = outputReplacesQuery ? 0 : outputBytes;
  stagedStages = fits(stages, ownOutput) ? stages : 1;
  int64_t end = staged + stagedStages * stagedBytes;
  output = outputReplacesQuery ? q : end;
  // An odd multiple of what is read at once of an f32 table of `half`, so that
  // the 8 rows that a warp reads from lie in different banks; of other tables
  // two rows may share some.
  tablePitch = llvm::alignTo(traits.queryTableRowBytes + kTableReadBytes,
                             2 * kTableReadBytes) -
               kTableReadBytes;
  tables = end + ownOutput;
  // With one computing warpgroup a block has few tiles, and rotates at once.
  bool mayHaveTables = traits.queryTableRowBytes && !traits.rotatesKeys &&
                       tile.qInRegisters && !outputReplacesQuery &&
                       tile.warps > kWarpgroupWarps;
  tableBytes = mayHaveTables ? 2 * tile.getRowsPerHead() * tablePitch : 0;
  if (tables + tableBytes + controlBytes > target.maxSharedPerBlock)
    tableBytes = 0;
  tileRecords = tables + tableBytes;
  barriers = tileRecords + recordBytes;
  size = tileRecords + controlBytes;
}

RoleRegisters RoleRegisters::get(int64_t computingWarpgroups,
                                 int64_t blocksPerSm, bool rotatesKeys) {
  // Of the 64 Ki registers that every SM with such products has, 512 for the
  // threads of equal place in its warpgroups, and at most
  // 256 for each.
  switch (computingWarpgroups) {
  case 1: {
    int64_t load = rotatesKeys ? 80 : 32;
    int64_t both = llvm::alignDown(512 / blocksPerSm, 16);
    return {load, std::min<int64_t>(256, both - load)};
  }
  case 2:
    return rotatesKeys ? RoleRegisters{72, 216} : RoleRegisters{24, 240};
  default:
    return rotatesKeys ? RoleRegisters{80, 144} : RoleRegisters{32, 160};
  }
}

/// Per thread, an m16n8 accumulator holds 4 values of f32 and an m16k16 operand
/// 4 registers of packed pairs. Packed probabilities are operands, those of
/// `probabilitySteps` steps of 16 keys.
static int64_t getFragmentRegisters(const PaddedHeadDims &dims,
                                    const KernelTile &tile,
                                    int64_t probabilitySteps) {
  int64_t rowTiles = tile.getRowTilesPerWarp();
  int64_t output = rowTiles * (dims.v / 8) * 4;
  int64_t scores = rowTiles * (tile.tileN / 8) * 4;
  int64_t probabilities = rowTiles * probabilitySteps * 4;
  int64_t query = tile.qInRegisters ? rowTiles * (dims.qk / 16) * 4 : 0;
  return output + scores + probabilities + query;
}
/// Those of all steps of a product beside the scores.
static int64_t getFragmentRegisters(const PaddedHeadDims &dims,
                                    const KernelTile &tile) {
  return getFragmentRegisters(dims, tile, tile.tileN / 16);
}

/// Registers per thread of a block at its launch, if `blocks` share an SM.
static int64_t getLaunchRegisters(const KernelTile &tile, int64_t blocks,
                                  const TargetInfo &target) {
  int64_t registers = target.registersPerSm / (tile.getThreads() * blocks);
  return std::min<int64_t>(target.maxRegistersPerThread,
                           llvm::alignDown(registers, 8));
}
static int64_t getProductRegisters(const KernelTraits &traits,
                                   const KernelTile &tile) {
  return std::max(traits.dims.v, tile.tileN) / 2 + kProductRegisters;
}

int64_t mlir::attnfuse::getPipelinedBlocksPerSm(const KernelTraits &traits,
                                                const KernelTile &tile,
                                                const TargetInfo &target) {
  if (tile.warps != kWarpgroupWarps)
    return 1;
  int64_t registers =
      getFragmentRegisters(traits.dims, tile) + kPipelinedRegisters;
  int64_t shared = PipelinedMemoryPlan(traits, tile, target).size +
                   target.sharedReservedPerBlock;
  for (int64_t blocks : {3, 2})
    if (blocks * shared <= target.maxSharedPerSm &&
        registers <=
            RoleRegisters::get(1, blocks, traits.rotatesKeys).compute &&
        getProductRegisters(traits, tile) <=
            getLaunchRegisters(tile, blocks, target))
      return blocks;
  return 1;
}

KernelResources
mlir::attnfuse::getUnpipelinedResources(const KernelTraits &traits,
                                        const KernelTile &tile) {
  assert(!tile.pipeline && "what a pipeline takes depends on the machine");
  int64_t registers = getFragmentRegisters(traits.dims, tile) + kOtherRegisters;
  int64_t least =
      getFragmentRegisters(traits.dims, tile, 1) + kLeastOtherRegisters;
  KernelResources resources{
      SharedMemoryPlan(traits.dims, tile).size,
      std::max(least, std::min(registers, TargetInfo::kMostRegistersPerThread)),
      tile.getThreads()};
  resources.leastRegisters = least;
  return resources;
}

KernelResources mlir::attnfuse::getKernelResources(const KernelTraits &traits,
                                                   const KernelTile &tile,
                                                   const TargetInfo &target) {
  if (!tile.pipeline)
    return getUnpipelinedResources(traits, tile);
  int64_t blocks = getPipelinedBlocksPerSm(traits, tile, target);
  return {PipelinedMemoryPlan(traits, tile, target).size,
          getFragmentRegisters(traits.dims, tile) + kPipelinedRegisters,
          tile.getThreads(),
          RoleRegisters::get(tile.warps / kWarpgroupWarps, blocks,
                             traits.rotatesKeys)
              .compute,
          blocks,
          getLaunchRegisters(tile, blocks, target),
          getProductRegisters(traits, tile)};
}

int64_t mlir::attnfuse::getBlocksPerSm(const KernelResources &resources,
                                       const TargetInfo &target) {
  if (resources.sharedMemory > target.maxSharedPerBlock ||
      resources.registersPerThread > target.maxRegistersPerThread ||
      resources.threads > target.maxThreadsPerBlock)
    return 0;
  if (resources.registerLimit)
    return resources.registersPerThread <= *resources.registerLimit
               ? resources.pipelinedBlocks
               : 0;
  int64_t shared = resources.sharedMemory + target.sharedReservedPerBlock;
  int64_t registers =
      resources.threads / kWarpSize *
      int64_t(llvm::alignTo(resources.registersPerThread * kWarpSize,
                            kRegisterUnit));
  return std::min(
      {target.maxSharedPerSm / shared, target.registersPerSm / registers,
       target.maxThreadsPerSm / resources.threads, target.maxBlocksPerSm});
}
