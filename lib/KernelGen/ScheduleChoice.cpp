//===- ScheduleChoice.cpp - Which tile a kernel gets ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ScheduleChoice.h"
#include "attnfuse/Support/MakeError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
// The tiles that are tried. Everything not listed here can still be asked for
// by a schedule attribute.
constexpr int64_t kWarpChoices[] = {8, 4, 2, 1};
constexpr int64_t kRowTileChoices[] = {2, 1};
constexpr int64_t kTileNChoices[] = {128, 64, 48, 32, 16};
/// Divides few other sizes: only for wide heads, and where kCommonTileN keys
/// take too many registers.
constexpr int64_t kStopgapTileN = 48, kCommonTileN = 64;
/// More rows gain little reuse of keys and waste more at ragged ends.
constexpr int64_t kMaxChosenTileM = 128;
/// Fewer rows than this leave schedulers of the SM without a warp, so smaller
/// tiles are taken only where the queries or blocks are no larger.
constexpr int64_t kMinChosenTileM = 64;
/// Registers that preferred tiles leave free, for what the estimate does not
/// see, and for each tensor that the score chain reads (its addresses).
constexpr int64_t kRegisterHeadroom = 24;
constexpr int64_t kRegistersPerScoreOperand = 16;
/// The same for a second limit of each row.
constexpr int64_t kWindowRegisters = 4;
/// MMAs and 16-byte copies of a warp in one step, all of which are unrolled.
/// More of them take long to compile and gain nothing.
constexpr int64_t kMaxStepInstructions = 160;
/// Of a larger head, what bounds kernels is that each warp reads all of K and V
/// from shared memory, which half as many warps with two row tiles each do half
/// as often. So of these more is allowed:
constexpr int64_t kWideHeadDim = 64;
constexpr int64_t kWideRegisterHeadroom = 16;
constexpr int64_t kWideMaxStepInstructions = 224;

// Constants of the cost model, in clocks, for machines of any kind.
/// Barriers and the copies' latency in each step of the key loop; the former
/// alone, where copies are under way for a step or more.
constexpr double kStepLatency = 1000;
constexpr double kStagedStepLatency = 300;
/// Prologue and epilogue of a block.
constexpr double kBlockOverhead = 4000;
/// Keys that a row is taken to see where the number is not known.
constexpr double kAssumedKeys = 1024;
/// Instructions of the softmax per score, and per row and step.
constexpr double kScoreInstructions = 6;
constexpr double kRowInstructions = 64;
/// Lane instructions that an SM issues in a clock: four schedulers, a warp
/// each, on all chips of the table.
constexpr double kLanes = 128;
/// Warps that the schedulers of an SM need to be all busy.
constexpr double kSchedulers = 4;

/// Blocks per SM where one block covers all queries of a head, as in decoding:
/// the grid is seldom larger.
constexpr double kShortQueryBlocks = 2;

/// Tiles beyond this are no kernel of any machine; it bounds the arithmetic.
constexpr int64_t kMaxTile = 1024;

/// Keys a step below which a pipelined block does not pay.
constexpr int64_t kLeastPipelinedTileN = 64;
/// Rows of the queries of all heads that share K, up to which reading K and V
/// takes longest; then elements of K in a step, and the least keys: more on
/// their way at once come no faster.
constexpr int64_t kDecodingRows = 16;
constexpr int64_t kDecodingTileElements = 4096, kLeastDecodingTileN = 32;
/// Keys that a query sees, up to which a band is narrow.
constexpr int64_t kNarrowWindow = 768;
} // namespace

llvm::Error mlir::attnfuse::checkBlocks(const ScheduleProblem &problem,
                                        const KernelTile &tile) {
  if (problem.queryBlock && *problem.queryBlock % tile.getRowsPerHead() != 0)
    return makeError(
        "expected " +
        Twine(tile.packedHeads == 1 ? "tile_m" : "tile_m / packed_heads") +
        " to divide the query block of " + Twine(*problem.queryBlock) +
        ", got " + Twine(tile.getRowsPerHead()));
  if (problem.keyBlock && *problem.keyBlock % tile.tileN != 0)
    return makeError("expected tile_n to divide the key block of " +
                     Twine(*problem.keyBlock) + ", got " + Twine(tile.tileN));
  return llvm::Error::success();
}

/// Success if the tile's heads are of one group, in rows that a kernel can
/// have.
static llvm::Error checkPackedHeads(const ScheduleProblem &problem,
                                    const KernelTile &tile) {
  if (!isPackedEvenly(tile.tileM, tile.packedHeads))
    return makeError("expected packed_heads to divide tile_m into 16, 32 or "
                     "multiples of 64 rows, got " +
                     Twine(tile.packedHeads));
  if (problem.packableHeads % tile.packedHeads != 0)
    return makeError("expected packed_heads to divide " +
                     Twine(problem.packableHeads) +
                     ", the query heads that may share a tile, got " +
                     Twine(tile.packedHeads));
  return llvm::Error::success();
}

llvm::Error mlir::attnfuse::checkTile(const ScheduleProblem &problem,
                                      const KernelTile &tile,
                                      const TargetInfo &target) {
  if (tile.tileM > kMaxTile || tile.tileN > kMaxTile)
    return makeError("expected tile_m and tile_n of at most " +
                     Twine(kMaxTile) + ", got " + Twine(tile.tileM) + " and " +
                     Twine(tile.tileN));
  if (llvm::Error error = checkPackedHeads(problem, tile))
    return error;
  if (llvm::Error error = checkBlocks(problem, tile))
    return error;

  KernelResources need = getKernelResources(problem.getTraits(), tile, target);
  if (tile.pipeline) {
    if (!target.hasWarpgroupMma())
      return makeError("expected a schedule without a pipeline for " +
                       target.chip + ", which has no warpgroup-wide MMA");
    if (!problem.allowsTensorMaps)
      return makeError("expected a schedule without a pipeline where q, k or v "
                       "is a constant");
    if (need.registersPerThread > *need.registerLimit)
      return makeError(
          "the schedule needs about " + Twine(need.registersPerThread) +
          " registers per computing thread, " + Twine(tile.warps) +
          " warps and a pipeline leave " + Twine(*need.registerLimit) +
          "; use a smaller tile_n or fewer warps");
    if (need.productRegisters > need.launchRegisters)
      return makeError(
          "the products need about " + Twine(need.productRegisters) +
          " registers per thread at the launch, " + Twine(need.threads) +
          " threads leave " + Twine(need.launchRegisters) +
          "; use a smaller tile_n or fewer warps");
  }
  if (need.threads > target.maxThreadsPerBlock)
    return makeError("the schedule needs " + Twine(need.threads) +
                     " threads per block, " + target.name + " has " +
                     Twine(target.maxThreadsPerBlock) + "; use fewer warps");
  if (need.sharedMemory > target.maxSharedPerBlock)
    return makeError("the schedule needs " + Twine(need.sharedMemory) +
                     " bytes of shared memory per block, " + target.name +
                     " has " + Twine(target.maxSharedPerBlock) +
                     "; use a smaller tile_m or tile_n");
  if (need.registersPerThread > target.maxRegistersPerThread)
    return makeError("the schedule needs about " +
                     Twine(need.registersPerThread) +
                     " registers per thread, " + target.name + " has " +
                     Twine(target.maxRegistersPerThread) +
                     "; use a smaller tile_n or more warps for tile_m");
  if (getBlocksPerSm(need, target) < 1)
    return makeError("the schedule needs about " +
                     Twine(need.registersPerThread * need.threads) +
                     " registers per block, " + target.name + " has " +
                     Twine(target.registersPerSm) +
                     "; use fewer warps or a smaller tile");
  return llvm::Error::success();
}

/// Whether one block covers all queries of a head.
static bool hasFewQueries(const ScheduleProblem &problem) {
  return problem.numQueries && *problem.numQueries <= kMinChosenTileM;
}

bool mlir::attnfuse::fitsOn(const ScheduleProblem &problem,
                            const KernelTile &tile, const TargetInfo &target) {
  llvm::Error error = checkTile(problem, tile, target);
  bool fits = !error;
  llvm::consumeError(std::move(error));
  return fits;
}

/// Part of the keys' or queries' tiles that is padding, as a factor.
static double getPaddingFactor(std::optional<int64_t> size, int64_t tile) {
  if (!size)
    return 1;
  double real = std::max<int64_t>(1, *size);
  return std::ceil(real / tile) * tile / real;
}

int64_t mlir::attnfuse::choosePackedHeads(const ScheduleProblem &problem,
                                          int64_t tileM) {
  int64_t heads = std::min(problem.packableHeads, tileM);
  while (problem.packableHeads % heads != 0 || !isPackedEvenly(tileM, heads))
    --heads;
  return heads;
}

double mlir::attnfuse::estimateTileCost(const ScheduleProblem &problem,
                                        const KernelTile &tile,
                                        const TargetInfo &target) {
  double rows = tile.tileM, keys = tile.tileN;
  double headDims = problem.dims.qk + problem.dims.v;
  double keyBytes = keys * headDims * 2;

  // Clocks of one step of one block on each unit of the SM, had it the unit
  // for itself. Every warp reads all of K and V from shared memory.
  double tensor = 2 * rows * keys * headDims / target.tensorFlopsPerClock;
  double softmax =
      rows * keys * (1.0 / target.mufuPerClock + kScoreInstructions / kLanes) +
      rows * (problem.dims.v + kRowInstructions) / kLanes;
  double queryBytes = tile.qInRegisters ? 0 : rows * problem.dims.qk * 2;
  double shared =
      (keyBytes * (1 + tile.warps) + queryBytes) / target.sharedBytesPerClock;
  double l2 = keyBytes / target.l2BytesPerClock;

  // Blocks on an SM overlap until a unit is saturated, never perfectly; the
  // warps of one block run a step in phase, one unit after the other.
  double blocks = getBlocksPerSm(
      getKernelResources(problem.getTraits(), tile, target), target);
  if (hasFewQueries(problem))
    blocks = std::min(blocks, kShortQueryBlocks);
  double saturated = std::max({tensor, softmax, shared, l2});
  double alone = (tensor + softmax + shared + l2) * kSchedulers / tile.warps +
                 (tile.stages > 1 ? kStagedStepLatency : kStepLatency);
  double step = std::hypot(saturated, alone / blocks);

  double seenKeys = kAssumedKeys;
  double waste = getPaddingFactor(problem.numQueries, tile.tileM);
  if (problem.windowWidth) {
    // The tiles cover the union of the rows' windows, ragged at both ends.
    seenKeys = *problem.windowWidth;
    waste *= (seenKeys + rows + keys) / seenKeys;
  } else if (problem.numKeys) {
    seenKeys = std::max<double>(1, *problem.numKeys);
    waste *= getPaddingFactor(problem.numKeys, tile.tileN);
  }
  return waste * step / (rows * keys) +
         kBlockOverhead / (blocks * rows * seenKeys);
}

namespace {
bool isWideTile(const ScheduleProblem &problem, const KernelTile &tile) {
  return tile.getRowTilesPerWarp() > 1 &&
         std::min(problem.dims.qk, problem.dims.v) > kWideHeadDim;
}

/// Whether the kernel will neither spill nor be slow to compile.
bool isPreferred(const ScheduleProblem &problem, const KernelTile &tile,
                 const TargetInfo &target) {
  KernelResources resources =
      getKernelResources(problem.getTraits(), tile, target);
  int64_t headDims = problem.dims.qk + problem.dims.v;
  int64_t rowTiles = tile.getRowTilesPerWarp();
  int64_t products = rowTiles * (tile.tileN / 8) * (headDims / 16);
  int64_t copies = tile.tileN * headDims / 8 / tile.getThreads();
  bool isWide = isWideTile(problem, tile);
  int64_t registers = isWide ? resources.leastRegisters + kWideRegisterHeadroom
                             : resources.registersPerThread + kRegisterHeadroom;
  registers += problem.numScoreOperands * kRegistersPerScoreOperand;
  if (problem.windowWidth)
    registers += kWindowRegisters;
  return registers <= target.maxRegistersPerThread &&
         products + copies <=
             (isWide ? kWideMaxStepInstructions : kMaxStepInstructions);
}

/// Whether the tile has kStopgapTileN keys without need.
bool isNeedlessStopgap(const ScheduleProblem &problem, KernelTile tile,
                       const TargetInfo &target) {
  if (tile.tileN != kStopgapTileN)
    return false;
  tile.tileN = kCommonTileN;
  if (!fitsOn(problem, tile, target))
    return false;
  return !isWideTile(problem, tile) || isPreferred(problem, tile, target);
}

/// The tiles that fit, or why the last one tried, the smallest, does not.
llvm::Expected<SmallVector<KernelTile>>
getFittingTiles(const ScheduleProblem &problem, const TargetInfo &target) {
  SmallVector<KernelTile> fitting;
  std::string reason;
  for (int64_t warps : kWarpChoices)
    for (int64_t rowTiles : kRowTileChoices)
      for (int64_t tileN : kTileNChoices)
        for (bool qInRegisters : {false, true}) {
          KernelTile tile{16 * warps * rowTiles, tileN, warps, qInRegisters};
          if (tile.tileM > kMaxChosenTileM)
            continue;
          if (llvm::Error error = checkTile(problem, tile, target))
            reason = llvm::toString(std::move(error));
          else
            fitting.push_back(tile);
        }
  if (fitting.empty())
    return llvm::createStringError("no tile fits on " + target.name + ": " +
                                   reason);
  return fitting;
}
} // namespace

namespace {
/// The order of a step of a pipelined kernel. What is quickest is found by
/// measurement alone; see docs/performance.md.
KernelPipeline choosePipeline(const ScheduleProblem &problem, int64_t headDim,
                              int64_t groups, bool qInRegisters) {
  KernelPipeline pipeline;
  bool isDense = !problem.hasBand && !problem.keyBlock;
  pipeline.skipRescale = true;
  if (headDim <= 64) {
    pipeline.partialSums = 2;
    pipeline.productWait =
        groups == 2 ? ProductWait::BetweenRows : ProductWait::End;
    return pipeline;
  }
  // Measured for D = 128 and two warpgroups: with Q in registers they are
  // quicker without turns (docs/performance.md). Lists of blocks are not
  // measured.
  pipeline.pingPong = !(qInRegisters && headDim > 96 && !problem.keyBlock);
  pipeline.productWait = isDense || headDim <= 128 ? ProductWait::WithNextKey
                                                   : ProductWait::BetweenRows;
  return pipeline;
}

/// Widest step of `groups` computing warpgroups that registers and shared
/// memory hold.
int64_t getWidestTileN(const ScheduleProblem &problem, int64_t groups) {
  int64_t headDim = std::max(problem.dims.qk, problem.dims.v);
  // As in decoding, memory is what bounds few rows; not a loader that rotates
  // K, which takes some time for each tile whatever its size.
  if (problem.numQueries && !problem.keyBlock && !problem.rotatesKeys &&
      *problem.numQueries * problem.packableHeads <= kDecodingRows)
    return std::clamp(kDecodingTileElements / headDim / 16 * 16,
                      kLeastDecodingTileN, kLeastPipelinedTileN);
  // Blocks of few rows share an SM; their tiles leave each other room.
  if (groups == 1 || headDim > 192)
    return 64;
  return headDim <= 128 ? 128 : 96;
}

/// The tile of `groups` or fewer computing warpgroups; none where it does not
/// fit or another kind of block serves better.
std::optional<KernelTile> getPipelinedTile(const ScheduleProblem &problem,
                                           const TargetInfo &target,
                                           int64_t groups) {
  // Loads that go with every score leave the products waiting, and too few
  // registers.
  if (!target.hasWarpgroupMma() || !problem.allowsTensorMaps ||
      problem.readsElements)
    return std::nullopt;
  int64_t headDim = std::max(problem.dims.qk, problem.dims.v);
  if (problem.queryBlock)
    while (groups > 0 && *problem.queryBlock % (groups * kWarpgroupRows) != 0)
      --groups;
  int64_t tileN = getWidestTileN(problem, groups);
  if (problem.keyBlock) {
    while (tileN > 0 && *problem.keyBlock % tileN != 0)
      tileN -= 16;
    if (tileN < kLeastPipelinedTileN)
      return std::nullopt;
  }
  if (groups == 0)
    return std::nullopt;
  bool qInRegisters = headDim > 64 && headDim <= 128 && !problem.rotatesKeys &&
                      problem.staging.isNone();
  KernelTile tile{groups * kWarpgroupRows, tileN, groups * kWarpgroupWarps,
                  qInRegisters,
                  choosePipeline(problem, headDim, groups, qInRegisters)};
  tile.packedHeads = choosePackedHeads(problem, tile.tileM);
  if (!fitsOn(problem, tile, target))
    return std::nullopt;
  return tile;
}

/// The tile for many queries.
std::optional<KernelTile> choosePipelinedTile(const ScheduleProblem &problem,
                                              const TargetInfo &target) {
  int64_t headDim = std::max(problem.dims.qk, problem.dims.v);
  // Three warpgroups leave 160 registers each.
  bool hasSpareRegisters = !problem.rotatesKeys && problem.staging.isNone();
  int64_t groups = headDim <= 64 && hasSpareRegisters ? 3 : 2;
  // A band not much wider than a tile is mostly boundary.
  if (problem.windowWidth && headDim <= 64 &&
      *problem.windowWidth <= kNarrowWindow)
    groups = 1;
  // Measured for one bias by key and one by query and key, D = 32: blocks of
  // one warpgroup, which share an SM, are quicker at all lengths.
  if (problem.staging.perKey + problem.staging.perQueryAndKey > 1 &&
      headDim <= 64)
    groups = 1;
  if (problem.numQueries)
    groups = std::min(groups,
                      std::max<int64_t>(1, llvm::divideCeil(*problem.numQueries,
                                                            kWarpgroupRows)));
  return getPipelinedTile(problem, target, groups);
}
} // namespace

std::optional<KernelTile>
mlir::attnfuse::chooseTileForFewRows(const ScheduleProblem &problem,
                                     const KernelTile &tile,
                                     const TargetInfo &target) {
  if (!tile.pipeline || tile.warps == kWarpgroupWarps)
    return std::nullopt;
  return getPipelinedTile(problem, target, 1);
}

llvm::Expected<KernelTile>
mlir::attnfuse::chooseTile(const ScheduleProblem &problem,
                           const TargetInfo &target) {
  if (std::optional<KernelTile> tile = choosePipelinedTile(problem, target))
    return *tile;
  return chooseUnpipelinedTile(problem, target);
}

llvm::Expected<KernelTile>
mlir::attnfuse::chooseUnpipelinedTile(const ScheduleProblem &problem,
                                      const TargetInfo &target) {
  llvm::Expected<SmallVector<KernelTile>> fitting =
      getFittingTiles(problem, target);
  if (!fitting)
    return fitting.takeError();
  SmallVector<KernelTile> tiles =
      llvm::filter_to_vector(*fitting, [&](const KernelTile &tile) {
        return isPreferred(problem, tile, target) &&
               !isNeedlessStopgap(problem, tile, target);
      });
  if (tiles.empty())
    tiles = *fitting;

  // Rows that hold no query are wasted, so few queries get no more rows than
  // they need.
  int64_t leastRows = kMinChosenTileM, mostRows = kMaxChosenTileM;
  if (hasFewQueries(problem))
    leastRows = mostRows =
        std::max<int64_t>(16, llvm::PowerOf2Ceil(*problem.numQueries));
  int64_t largest = 0;
  for (const KernelTile &tile : tiles)
    largest = std::max(largest, tile.tileM);
  leastRows = std::min(leastRows, largest);

  KernelTile best = tiles.back();
  double bestCost = std::numeric_limits<double>::infinity();
  for (const KernelTile &tile : tiles) {
    if (tile.tileM < leastRows || tile.tileM > mostRows)
      continue;
    double cost = estimateTileCost(problem, tile, target);
    if (cost < bestCost) {
      best = tile;
      bestCost = cost;
    }
  }
  // What there is for few queries is too little to be loaded ahead.
  if (hasFewQueries(problem))
    return best;
  KernelTile staged = best;
  staged.stages = 2;
  if (!fitsOn(problem, staged, target))
    return best;
  return estimateTileCost(problem, staged, target) < bestCost ? staged : best;
}

KernelTile mlir::attnfuse::leaveRoomForParts(const ScheduleProblem &problem,
                                             KernelTile tile,
                                             const TargetInfo &target) {
  if (tile.pipeline) {
    // A walk that waits for memory gains nothing by the registers of q.
    tile.qInRegisters = false;
    return tile;
  }
  if (tile.tileN != kStopgapTileN)
    return tile;
  KernelTile smaller = tile;
  smaller.tileN = 32;
  if (!fitsOn(problem, smaller, target))
    return tile;
  return smaller;
}

bool mlir::attnfuse::isPreferredTile(const ScheduleProblem &problem,
                                     const KernelTile &tile,
                                     const TargetInfo &target) {
  return isPreferred(problem, tile, target);
}

std::optional<KernelTile> mlir::attnfuse::chooseTileOfWarpgroups(
    const ScheduleProblem &problem, const TargetInfo &target, int64_t groups) {
  return getPipelinedTile(problem, target, groups);
}
