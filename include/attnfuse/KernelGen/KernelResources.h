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

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseEnums.h"
#include <cstdint>
#include <optional>

namespace mlir::attnfuse {

struct TargetInfo;

constexpr int64_t kWarpSize = 32;
/// The multiple that head sizes are padded to in tiles: the depth of one MMA.
constexpr int64_t kHeadDimMultiple = 16;
/// Warps and rows of a warpgroup-wide MMA.
constexpr int64_t kWarpgroupWarps = 4;
constexpr int64_t kWarpgroupRows = 64;
constexpr int64_t kWarpgroupThreads = kWarpgroupWarps * kWarpSize;
/// Warps of the loading warpgroup that load nothing, all but the first.
constexpr int64_t kSpareLoaderWarps = kWarpgroupWarps - 1;
/// Bytes of the record of a query tile that the loading thread hands to the
/// computing warps (Sm90/TileHandoff.h), and how many records there is room
/// for.
constexpr int64_t kTileRecordBytes = 16, kTileRecordStages = 2;
/// 16-bit columns of a panel, 128 bytes, and the bytes after which the pattern
/// of its swizzle repeats.
constexpr int64_t kPanelColumns = 64, kSwizzleBytes = 1024;

/// Head sizes of q and k, and of v and the output, padded for the MMA.
struct PaddedHeadDims {
  PaddedHeadDims(int64_t headDim, int64_t valueHeadDim);
  int64_t qk;
  int64_t v;
};

/// Score operands that a pipelined kernel brings to shared memory with each key
/// tile: how many with one row for all queries, and with a row for each.
struct Staging {
  int64_t perKey = 0, perQueryAndKey = 0;
  bool isNone() const { return perKey + perQueryAndKey == 0; }
};

/// What of the work, besides the tile, decides what a kernel takes.
struct KernelTraits {
  PaddedHeadDims dims;
  /// Whether K is rotated in the kernel.
  bool rotatesKeys = false;
  Staging staging = {};
  /// Bytes of one row of a table of Q's rotation, where it can be done in
  /// registers; else 0.
  int64_t queryTableRowBytes = 0;
};

/// Whether both features of every pair are in one lane, where a warp has rows
/// as the A operand of a product: a lane has 2 columns of every 8.
bool arePairsInLanes(Pairing pairing, int64_t width);

/// `#attnfuse.pipeline` without MLIR.
struct KernelPipeline {
  int64_t stages = 2;
  bool pingPong = true;
  RowOrder rowOrder = RowOrder::Rows;
  int64_t partialSums = 1;
  int64_t partialMaxima = 1;
  bool skipRescale = false;
  ProductWait productWait = ProductWait::End;
};

/// Whether `heads` heads share the rows of a tile such that a warp has rows of
/// one head, and those of a warpgroup are a box of rows and heads.
bool isPackedEvenly(int64_t tileM, int64_t heads);

/// The tile of one thread block: `#attnfuse.schedule` without MLIR.
struct KernelTile {
  int64_t tileM;
  int64_t tileN;
  int64_t warps; ///< that compute
  bool qInRegisters;
  std::optional<KernelPipeline> pipeline = std::nullopt;
  /// Blocks that share the keys of a query tile at every launch, or 0 where the
  /// sizes of a launch decide.
  int64_t keySplits = 0;
  /// Query heads of one key head of which the tile has rows: `tileM /
  /// packedHeads` of each, one head's after the other's.
  int64_t packedHeads = 1;
  /// Slots for K and V tiles where there is no pipeline.
  int64_t stages = 1;

  int64_t getRowsPerHead() const { return tileM / packedHeads; }
  int64_t getThreads() const {
    return (warps + (pipeline ? kWarpgroupWarps : 0)) * kWarpSize;
  }
  /// 16-row MMA tiles that each warp owns.
  int64_t getRowTilesPerWarp() const { return tileM / (16 * warps); }
};

/// Byte offsets of the kernel's buffers in dynamic shared memory. K and V are
/// those of the first slot; the next follows `slotBytes` behind. The output is
/// staged in the same memory once the key loop has ended.
struct SharedMemoryPlan {
  SharedMemoryPlan(const PaddedHeadDims &dims, const KernelTile &tile);
  int64_t q = 0;      ///< tile_m x qk elements of 2 bytes.
  int64_t k;          ///< tile_n x qk.
  int64_t v;          ///< tile_n x v.
  int64_t slotBytes;  ///< Of a K and a V tile.
  int64_t output = 0; ///< tile_m x v, over q, k and v.
  int64_t size;       ///< Bytes in all.
};

/// The same for a kernel whose warps have roles. Tiles are panels of 64
/// columns, each a multiple of 1024 bytes, as the tensor memory accelerator
/// writes them; V and K rings have `stages` slots.
struct PipelinedMemoryPlan {
  PipelinedMemoryPlan(const KernelTraits &traits, const KernelTile &tile,
                      const TargetInfo &target);
  int64_t queryBytes, keyBytes, valueBytes, stagedBytes; ///< Of one tile.
  int64_t q = 0, k, v;
  /// Tiles of the staged operand, `stagedStages` of them: as many as of K, or
  /// one where they do not fit.
  int64_t staged, stagedStages;
  /// 64 x v elements for each warpgroup; in place of q where both do not fit.
  int64_t output;
  bool outputReplacesQuery;
  /// What both tables of Q's rotation have for the positions of a query tile:
  /// rows of `tablePitch` bytes. 0 bytes where Q is rotated in shared memory,
  /// among others because there is no room for them.
  int64_t tables, tablePitch, tableBytes;
  /// kTileRecordStages records of kTileRecordBytes.
  int64_t tileRecords;
  int64_t barriers; ///< 8 bytes each.
  int64_t size;     ///< Bytes in all.

  // Barriers by index; a ring has one a stage.
  static constexpr int64_t kQueryFull = 0, kQueryEmpty = 1, kTablesFull = 2,
                           kTablesEmpty = 3, kTileRecordFull = 4,
                           kTileRecordEmpty =
                               kTileRecordFull + kTileRecordStages,
                           kFixed = kTileRecordEmpty + kTileRecordStages;
  int64_t getKeyFull() const { return kFixed; }
  int64_t getKeyEmpty() const { return kFixed + stages; }
  int64_t getKeyRotated() const { return kFixed + 2 * stages; }
  int64_t getValueFull() const { return kFixed + 3 * stages; }
  int64_t getValueEmpty() const { return kFixed + 4 * stages; }
  int64_t getStagedFull() const { return kFixed + 5 * stages; }
  int64_t getStagedEmpty() const { return kFixed + 6 * stages; }
  int64_t getNumBarriers() const { return kFixed + 7 * stages; }
  int64_t stages;
};

/// Bytes of a panel of 64 keys of a staged operand.
int64_t getStagedPanelBytes(bool perQuery, int64_t tileM);

/// Registers per thread that the warps of a pipelined block ask for, by the
/// number of its computing warpgroups, the blocks that are to share an SM, and
/// whether the loading warpgroup also rotates K. Multiples of 8.
struct RoleRegisters {
  static RoleRegisters get(int64_t computingWarpgroups, int64_t blocksPerSm,
                           bool rotatesKeys);
  int64_t load, compute;
};

/// Blocks of a pipelined kernel that share an SM: several if a block has but
/// one computing warpgroup, which waits for loads and products in turn.
int64_t getPipelinedBlocksPerSm(const KernelTraits &traits,
                                const KernelTile &tile,
                                const TargetInfo &target);

struct KernelResources {
  int64_t sharedMemory;
  /// Of a computing thread. An estimate: fragments and accumulators exactly,
  /// all else lumped. Without a pipeline at most 255, where `leastRegisters`
  /// allow it.
  int64_t registersPerThread;
  int64_t threads;
  /// What the assembler may give a computing thread where that is fixed: in
  /// pipelined blocks, which take all registers of an SM together.
  std::optional<int64_t> registerLimit = std::nullopt;
  int64_t pipelinedBlocks = 0;
  /// Of every thread before the roles part, and what the widest product needs
  /// of them: more, and the assembler finds no registers for it.
  int64_t launchRegisters = 0, productRegisters = 0;
  /// Without a pipeline, fewer registers than the estimate that do as well:
  /// weights take the place of their scores, and little is loaded ahead of the
  /// products.
  int64_t leastRegisters = 0;
};

/// Of a tile without a pipeline, which does not depend on the machine.
KernelResources getUnpipelinedResources(const KernelTraits &traits,
                                        const KernelTile &tile);
KernelResources getKernelResources(const KernelTraits &traits,
                                   const KernelTile &tile,
                                   const TargetInfo &target);

/// Blocks that one SM holds at a time; 0 if one block is too large for it.
int64_t getBlocksPerSm(const KernelResources &resources,
                       const TargetInfo &target);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_KERNELGEN_KERNELRESOURCES_H
