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
/// Registers are handed out per warp in units of 256.
/// The same where roles are apart: no copies, fewer addresses.
constexpr int64_t kPipelinedRegisters = 32;
constexpr int64_t kRegisterUnit = 256;
} // namespace

PaddedHeadDims::PaddedHeadDims(int64_t headDim, int64_t valueHeadDim)
    : qk(llvm::alignTo(headDim, kHeadDimMultiple)),
      v(llvm::alignTo(valueHeadDim, kHeadDimMultiple)) {}

SharedMemoryPlan::SharedMemoryPlan(const PaddedHeadDims &dims,
                                   const KernelTile &tile) {
  k = q + tile.tileM * dims.qk * kElementBytes;
  v = k + tile.tileN * dims.qk * kElementBytes;
  int64_t loopEnd = v + tile.tileN * dims.v * kElementBytes;
  int64_t outputEnd = output + tile.tileM * dims.v * kElementBytes;
  size = std::max(loopEnd, outputEnd);
}

/// Two kernels' worth of shared memory is never asked for: what one block of
/// the largest supported chip may have.
static constexpr int64_t kPipelinedMemoryLimit = 227 * 1024;
static constexpr int64_t kPanelColumns = 64;

PipelinedMemoryPlan::PipelinedMemoryPlan(const PaddedHeadDims &dims,
                                         const KernelTile &tile)
    : stages(tile.pipeline->stages) {
  int64_t qkColumns = llvm::alignTo(dims.qk, kPanelColumns);
  int64_t vColumns = llvm::alignTo(dims.v, kPanelColumns);
  queryBytes = tile.tileM * qkColumns * kElementBytes;
  keyBytes = tile.tileN * qkColumns * kElementBytes;
  valueBytes = tile.tileN * vColumns * kElementBytes;
  int64_t outputBytes = tile.tileM * vColumns * kElementBytes;
  int64_t barrierBytes = 8 * getNumBarriers();

  k = q + queryBytes;
  v = k + stages * keyBytes;
  int64_t end = v + stages * valueBytes;
  outputReplacesQuery =
      end + outputBytes + barrierBytes > kPipelinedMemoryLimit &&
      outputBytes <= queryBytes;
  output = outputReplacesQuery ? q : end;
  barriers = outputReplacesQuery ? end : end + outputBytes;
  size = barriers + barrierBytes;
}

RoleRegisters RoleRegisters::get(int64_t computingWarpgroups,
                                 bool rotatesKeys) {
  // 64 Ki in all: 512 for the threads of equal place in the warpgroups.
  switch (computingWarpgroups) {
  case 1:
    return rotatesKeys ? RoleRegisters{120, 256} : RoleRegisters{56, 256};
  case 2:
    return rotatesKeys ? RoleRegisters{72, 216} : RoleRegisters{24, 240};
  default:
    return rotatesKeys ? RoleRegisters{80, 144} : RoleRegisters{32, 160};
  }
}

KernelResources mlir::attnfuse::getKernelResources(const PaddedHeadDims &dims,
                                                   const KernelTile &tile,
                                                   bool rotatesKeys) {
  // Per thread, an m16n8 accumulator holds 4 values of f32 and an m16k16
  // operand 4 registers of packed pairs. Packed probabilities are operands.
  int64_t rowTiles = tile.getRowTilesPerWarp();
  int64_t output = rowTiles * (dims.v / 8) * 4;
  int64_t scores = rowTiles * (tile.tileN / 8) * 4;
  int64_t probabilities = rowTiles * (tile.tileN / 16) * 4;
  int64_t query = tile.qInRegisters ? rowTiles * (dims.qk / 16) * 4 : 0;
  if (tile.pipeline)
    return {PipelinedMemoryPlan(dims, tile).size,
            output + scores + probabilities + query + kPipelinedRegisters,
            tile.getThreads(),
            RoleRegisters::get(tile.warps / kWarpgroupWarps, rotatesKeys)
                .compute};
  return {SharedMemoryPlan(dims, tile).size,
          output + scores + probabilities + query + kOtherRegisters,
          tile.getThreads()};
}

int64_t mlir::attnfuse::getBlocksPerSm(const KernelResources &resources,
                                       const TargetInfo &target) {
  if (resources.sharedMemory > target.maxSharedPerBlock ||
      resources.registersPerThread > target.maxRegistersPerThread ||
      resources.threads > target.maxThreadsPerBlock)
    return 0;
  if (resources.registerLimit)
    return resources.registersPerThread <= *resources.registerLimit;
  int64_t shared = resources.sharedMemory + target.sharedReservedPerBlock;
  int64_t registers =
      resources.threads / kWarpSize *
      int64_t(llvm::alignTo(resources.registersPerThread * kWarpSize,
                            kRegisterUnit));
  return std::min(
      {target.maxSharedPerSm / shared, target.registersPerSm / registers,
       target.maxThreadsPerSm / resources.threads, target.maxBlocksPerSm});
}
