//===- ScheduleSpace.cpp - The schedules that a kernel may have -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ScheduleSpace.h"
#include <set>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
// What is tried of each knob. #attnfuse.schedule allows some more.
constexpr int64_t kWarpgroupChoices[] = {1, 2, 3};
constexpr int64_t kTileNSteps[] = {-64, -32, -16, 16, 32, 64};
constexpr int64_t kChainChoices[] = {1, 2, 4};
/// Keys a step of a pipelined block. Fewer leave nothing to overlap, more are
/// no product of the machine.
constexpr int64_t kLeastTileN = 32, kMostTileN = 256;
constexpr int64_t kLeastStages = 2, kMostStages = 8;
constexpr int64_t kMostWarps = 8, kMostRowTiles = 2;
/// Keys a step, without a pipeline.
constexpr int64_t kLeastPlainTileN = 16, kMostPlainTileN = 128;
constexpr int64_t kMostPlainStages = 3;

/// Row order and wait, which depend on each other.
struct StepOrder {
  RowOrder rows;
  ProductWait wait;
};
constexpr StepOrder kStepOrders[] = {
    {RowOrder::Joint, ProductWait::End},
    {RowOrder::Rows, ProductWait::End},
    {RowOrder::Rows, ProductWait::BetweenRows},
    {RowOrder::Rows, ProductWait::WithNextKey}};

bool isWithin(int64_t value, int64_t least, int64_t most) {
  return least <= value && value <= most;
}
} // namespace

llvm::Expected<ScheduleSpace>
ScheduleSpace::create(const ScheduleProblem &problem, const TargetInfo &target,
                      bool isSoftmax, int64_t keySplits) {
  ScheduleSpace space(problem, target, isSoftmax);
  llvm::Expected<KernelTile> choice = chooseTile(problem, target);
  if (!choice)
    return choice.takeError();
  std::vector<KernelTile> choices{*choice};
  for (int64_t groups : kWarpgroupChoices)
    if (std::optional<KernelTile> tile =
            chooseTileOfWarpgroups(problem, target, groups))
      choices.push_back(*tile);
  llvm::Expected<KernelTile> plain = chooseUnpipelinedTile(problem, target);
  if (plain) {
    space.allowsUnpreferred = !isPreferredTile(problem, *plain, target);
    choices.push_back(*plain);
  } else {
    llvm::consumeError(plain.takeError());
  }

  std::set<ScheduleKey> seen;
  for (KernelTile &tile : choices) {
    tile.keySplits = keySplits;
    if (seen.insert(space.getKey(tile)).second)
      space.starts.push_back(tile);
  }
  return space;
}

ScheduleKey ScheduleSpace::getKey(const KernelTile &tile) const {
  // Bindings, so that a new knob does not compile until it is here.
  const auto &[tileM, tileN, warps, qInRegisters, optional, keySplits,
               packedHeads, plainStages] = tile;
  ScheduleKey key{tileM, tileN, warps, qInRegisters, keySplits, packedHeads};
  if (!optional) {
    key.push_back(plainStages);
    return key;
  }
  const auto &[stages, pingPong, rowOrder, partialSums, partialMaxima,
               skipRescale, productWait] = *optional;
  // A warpgroup by itself takes no turns.
  bool takesTurns = pingPong && warps > kWarpgroupWarps;
  key.insert(key.end(),
             {stages, takesTurns, int64_t(rowOrder), partialSums, partialMaxima,
              skipRescale && isSoftmax, int64_t(productWait)});
  return key;
}

bool ScheduleSpace::isLegal(const KernelTile &tile) const {
  if (const std::optional<KernelPipeline> &pipeline = tile.pipeline) {
    if (!isWithin(tile.tileN, kLeastTileN, kMostTileN) ||
        !isWithin(pipeline->stages, kLeastStages, kMostStages))
      return false;
  } else if (!isWithin(tile.warps, 1, kMostWarps) ||
             !isWithin(tile.getRowTilesPerWarp(), 1, kMostRowTiles) ||
             !isWithin(tile.tileN, kLeastPlainTileN, kMostPlainTileN) ||
             !isWithin(tile.stages, 1, kMostPlainStages)) {
    return false;
  }
  if (!fitsOn(problem, tile, target))
    return false;
  return tile.pipeline || allowsUnpreferred ||
         isPreferredTile(problem, tile, target);
}

void ScheduleSpace::visitPipelined(const KernelTile &tile,
                                   Visitor visit) const {
  for (int64_t groups : kWarpgroupChoices) {
    KernelTile other = tile;
    other.warps = groups * kWarpgroupWarps;
    other.tileM = groups * kWarpgroupRows;
    other.packedHeads = choosePackedHeads(problem, other.tileM);
    visit(other);
  }
  // All that can be packed, the loop above has visited.
  KernelTile unpacked = tile;
  unpacked.packedHeads = 1;
  visit(unpacked);
  for (int64_t step : kTileNSteps) {
    KernelTile other = tile;
    other.tileN += step;
    visit(other);
  }
  KernelTile other = tile;
  other.qInRegisters = !tile.qInRegisters;
  visit(other);

  auto visitWith = [&](auto change) {
    KernelTile other = tile;
    change(*other.pipeline);
    visit(other);
  };
  visitWith([](KernelPipeline &pipeline) { pipeline.stages *= 2; });
  visitWith([](KernelPipeline &pipeline) { pipeline.stages /= 2; });
  visitWith(
      [](KernelPipeline &pipeline) { pipeline.pingPong = !pipeline.pingPong; });
  for (const StepOrder &order : kStepOrders)
    visitWith([&](KernelPipeline &pipeline) {
      pipeline.rowOrder = order.rows;
      pipeline.productWait = order.wait;
    });
  for (int64_t chains : kChainChoices)
    visitWith([&](KernelPipeline &pipeline) { pipeline.partialSums = chains; });
  for (int64_t chains : kChainChoices)
    visitWith(
        [&](KernelPipeline &pipeline) { pipeline.partialMaxima = chains; });
  visitWith([](KernelPipeline &pipeline) {
    pipeline.skipRescale = !pipeline.skipRescale;
  });
}

void ScheduleSpace::visitUnpipelined(const KernelTile &tile,
                                     Visitor visit) const {
  int64_t rowTiles = tile.getRowTilesPerWarp();
  auto visitShape = [&](int64_t warps, int64_t rowTiles, int64_t tileN) {
    if (warps < 1 || rowTiles < 1)
      return;
    KernelTile other = tile;
    other.tileM = 16 * warps * rowTiles;
    other.tileN = tileN;
    other.warps = warps;
    visit(other);
  };
  visitShape(tile.warps * 2, rowTiles, tile.tileN);
  visitShape(tile.warps / 2, rowTiles, tile.tileN);
  visitShape(tile.warps, 3 - rowTiles, tile.tileN);
  // The same rows by more or fewer warps.
  if (rowTiles == 1)
    visitShape(tile.warps / 2, 2, tile.tileN);
  else
    visitShape(tile.warps * 2, 1, tile.tileN);
  visitShape(tile.warps, rowTiles, tile.tileN * 2);
  // Half of a multiple of 16 need not be one.
  visitShape(tile.warps, rowTiles, tile.tileN / 32 * 16);
  KernelTile other = tile;
  other.qInRegisters = !tile.qInRegisters;
  visit(other);
  for (int64_t step : {1, -1}) {
    other = tile;
    other.stages += step;
    visit(other);
  }
}

void ScheduleSpace::shrinkToFit(KernelTile &tile) const {
  KernelTile smaller = tile;
  while (smaller.tileN > 0 && !isLegal(smaller))
    smaller.tileN -= 16;
  if (smaller.tileN > 0)
    tile = smaller;
}

std::vector<KernelTile>
ScheduleSpace::getNeighbors(const KernelTile &tile) const {
  std::vector<KernelTile> neighbors;
  std::set<ScheduleKey> seen{getKey(tile)};
  auto visit = [&](KernelTile other) {
    if (other.tileN == tile.tileN)
      shrinkToFit(other);
    if (isLegal(other) && seen.insert(getKey(other)).second)
      neighbors.push_back(other);
  };
  if (tile.pipeline)
    visitPipelined(tile, visit);
  else
    visitUnpipelined(tile, visit);
  return neighbors;
}

std::optional<KernelTile> ScheduleSpace::combine(const KernelTile &base,
                                                 const KernelTile &a,
                                                 const KernelTile &b) const {
  if (bool(a.pipeline) != bool(b.pipeline) ||
      bool(a.pipeline) != bool(base.pipeline))
    return std::nullopt;
  auto pick = [](auto base, auto a, auto b) { return a != base ? a : b; };
  KernelTile tile = a;
  // These go together.
  if (a.tileM == base.tileM && a.warps == base.warps) {
    tile.tileM = b.tileM;
    tile.warps = b.warps;
    if (a.packedHeads == base.packedHeads)
      tile.packedHeads = b.packedHeads;
  }
  tile.tileN = pick(base.tileN, a.tileN, b.tileN);
  tile.qInRegisters = pick(base.qInRegisters, a.qInRegisters, b.qInRegisters);
  tile.stages = pick(base.stages, a.stages, b.stages);
  if (tile.pipeline) {
    const KernelPipeline &of = *base.pipeline, &left = *a.pipeline,
                         &right = *b.pipeline;
    const auto &[stages, pingPong, rowOrder, partialSums, partialMaxima,
                 skipRescale, productWait] = left;
    bool keepsOrder = rowOrder != of.rowOrder || productWait != of.productWait;
    tile.pipeline = {pick(of.stages, stages, right.stages),
                     pick(of.pingPong, pingPong, right.pingPong),
                     keepsOrder ? rowOrder : right.rowOrder,
                     pick(of.partialSums, partialSums, right.partialSums),
                     pick(of.partialMaxima, partialMaxima, right.partialMaxima),
                     pick(of.skipRescale, skipRescale, right.skipRescale),
                     keepsOrder ? productWait : right.productWait};
  }
  shrinkToFit(tile);
  if (!isLegal(tile))
    return std::nullopt;
  return tile;
}

std::vector<KernelTile> ScheduleSpace::enumerate(size_t limit) const {
  std::vector<KernelTile> found;
  std::set<ScheduleKey> seen;
  auto add = [&](const KernelTile &tile) {
    if (found.size() < limit && seen.insert(getKey(tile)).second)
      found.push_back(tile);
  };
  for (const KernelTile &tile : starts)
    add(tile);
  for (size_t next = 0; next < found.size() && found.size() < limit; ++next)
    for (const KernelTile &tile : getNeighbors(found[next]))
      add(tile);
  return found;
}
