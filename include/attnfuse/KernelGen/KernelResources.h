//===- KernelResources.h - What a kernel takes from the SM ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory and registers of an attention kernel as functions of its head
// sizes and its tile. The emitter lays its buffers out by these formulas, and
// the schedule is chosen and checked by them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_KERNELRESOURCES_H
#define ATTNFUSE_KERNELGEN_KERNELRESOURCES_H

#include <cstdint>

namespace mlir::attnfuse {

struct TargetInfo;

constexpr int64_t kWarpSize = 32;
/// The multiple that head sizes are padded to in tiles: the depth of one MMA.
constexpr int64_t kHeadDimMultiple = 16;

/// Head sizes of q and k, and of v and the output, padded for the MMA.
struct PaddedHeadDims {
  PaddedHeadDims(int64_t headDim, int64_t valueHeadDim);
  int64_t qk;
  int64_t v;
};

/// The tile of one thread block: `#attnfuse.schedule` without MLIR.
struct KernelTile {
  int64_t tileM;
  int64_t tileN;
  int64_t warps;
  bool qInRegisters;

  int64_t getThreads() const { return warps * kWarpSize; }
  /// 16-row MMA tiles that each warp owns.
  int64_t getRowTilesPerWarp() const { return tileM / (16 * warps); }
};

/// Byte offsets of the kernel's buffers in dynamic shared memory. The output
/// is staged in the same memory once the key loop has ended.
struct SharedMemoryPlan {
  SharedMemoryPlan(const PaddedHeadDims &dims, const KernelTile &tile);
  int64_t q = 0;      ///< tile_m x qk elements of 2 bytes.
  int64_t k;          ///< tile_n x qk.
  int64_t v;          ///< tile_n x v.
  int64_t output = 0; ///< tile_m x v, over q, k and v.
  int64_t size;       ///< Bytes in all.
};

struct KernelResources {
  int64_t sharedMemory;
  /// An estimate: fragments and accumulators exactly, all else lumped.
  int64_t registersPerThread;
  int64_t threads;
};

KernelResources getKernelResources(const PaddedHeadDims &dims,
                                   const KernelTile &tile);

/// Blocks that one SM holds at a time; 0 if one block is too large for it.
int64_t getBlocksPerSm(const KernelResources &resources,
                       const TargetInfo &target);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_KERNELGEN_KERNELRESOURCES_H
