//===- SelectSchedule.cpp - Choose the schedule of each attention ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads ops into a ScheduleProblem and writes the choice back as an attribute.
// The rules of the choice are in KernelGen/ScheduleChoice.cpp.
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/ScoreLoads.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSESELECTSCHEDULEPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
constexpr int64_t kMaxHeadDim = 256;
/// Wide loads move 8 elements.
constexpr int64_t kHeadDimStep = 8;

LogicalResult checkHeadDim(AttentionOp op, StringRef what, int64_t size) {
  if (size >= kHeadDimStep && size <= kMaxHeadDim && size % kHeadDimStep == 0)
    return success();
  return op.emitOpError("expected the head size of ")
         << what << " to be a multiple of " << kHeadDimStep << " from "
         << kHeadDimStep << " to " << kMaxHeadDim << " for the GPU, got "
         << size << "; pad it, or execute on the CPU";
}

std::optional<int64_t> getStaticSize(RankedTensorType type, unsigned dim) {
  if (type.isDynamicDim(dim))
    return std::nullopt;
  return type.getDimSize(dim);
}
} // namespace

/// Query heads for each key head, if they differ in nothing but q that a
/// pipelined kernel reads by tiles; else 1.
static int64_t getPackableHeads(AttentionOp op) {
  std::optional<int64_t> heads = getStaticSize(op.getQuery().getType(), 1),
                         keyHeads = getStaticSize(op.getKey().getType(), 1);
  if (!heads || !keyHeads || *heads < 1 || *keyHeads < 1 ||
      *heads % *keyHeads != 0)
    return 1;
  for (const StagedOperand &staged : getStagedOperands(op))
    if (staged.perHead || staged.perQuery)
      return 1;
  if (op.getBlocksAttr()) {
    auto type = cast<RankedTensorType>(op.getRowOffsets().getType());
    if (type.getRank() == 3 && type.getDimSize(1) != 1)
      return 1;
  }
  return *heads / *keyHeads;
}

FailureOr<ScheduleProblem> mlir::attnfuse::getScheduleProblem(AttentionOp op) {
  for (auto [name, value] :
       {std::pair("query", op.getQuery()), std::pair("key", op.getKey()),
        std::pair("value", op.getValue())}) {
    Type type = value.getType().getElementType();
    if (!type.isF16() && !type.isBF16())
      return op.emitOpError("expected ")
             << name << " of f16 or bf16 for the GPU, got " << type
             << "; convert it, or execute on the CPU";
  }
  if (failed(checkHeadDim(op, "q and k", op.getHeadDim())) ||
      failed(checkHeadDim(op, "v", op.getValueHeadDim())))
    return failure();

  ScheduleProblem problem(op.getHeadDim(), op.getValueHeadDim());
  problem.numQueries = getStaticSize(op.getQuery().getType(), 2);
  problem.numKeys = getStaticSize(op.getKey().getType(), 2);
  problem.numScoreOperands = op.getScoreOperands().size();
  KernelTraits traits = getKernelTraits(op);
  problem.staging = traits.staging;
  problem.readsElements =
      problem.staging.isNone() && !getElementLoads(op).empty();
  problem.hasBand = !op.getBands().empty();
  problem.rotatesKeys = traits.rotatesKeys;
  problem.packableHeads = getPackableHeads(op);
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()})
    problem.allowsTensorMaps &=
        isa<BlockArgument>(tensor) || tensor.getDefiningOp<RopeOp>();
  for (BandAttr band : op.getBands().getAsRange<BandAttr>())
    if (band.getLeft() && band.getRight()) {
      int64_t width = *band.getLeft() + *band.getRight() + 1;
      problem.windowWidth =
          std::min(width, problem.windowWidth.value_or(width));
    }

  BlocksAttr blocks = op.getBlocksAttr();
  if (!blocks)
    return problem;
  for (auto [name, size] : {std::pair("query", blocks.getQueryBlock()),
                            std::pair("key", blocks.getKeyBlock())})
    if (size % 16 != 0)
      return op.emitOpError("expected a ")
             << name << " block that is a multiple of 16 for the GPU, got "
             << size << "; round the block size to one, or execute on the CPU";
  problem.queryBlock = blocks.getQueryBlock();
  problem.keyBlock = blocks.getKeyBlock();
  return problem;
}

BlockTile mlir::attnfuse::getBlockTile(const KernelTraits &traits,
                                       const KernelTile &tile,
                                       const TargetInfo &target) {
  int64_t blocksPerSm =
      getBlocksPerSm(getKernelResources(traits, tile, target), target);
  return {getTileShape(tile), std::max<int64_t>(blocksPerSm, 1)};
}

RotationTile mlir::attnfuse::getRotationTile(const ScheduleProblem &problem,
                                             const KernelTile &tile,
                                             const TargetInfo &target,
                                             bool splitsKeys) {
  return {getBlockTile(problem.getTraits(), tile, target), bool(tile.pipeline),
          splitsKeys};
}

KernelTraits mlir::attnfuse::getKernelTraits(AttentionOp op) {
  // Where the sizes decide, the op's schedule is that of the split way.
  KernelTraits traits{PaddedHeadDims(op.getHeadDim(), op.getValueHeadDim()),
                      op.getKeyRotationWay() == RotationWay::Fused};
  for (const StagedOperand &staged : getStagedOperands(op))
    ++(staged.perQuery ? traits.staging.perQueryAndKey : traits.staging.perKey);
  if (op.getQueryRotationWay() == RotationWay::Fused) {
    auto table = cast<RankedTensorType>(op.getQCos().getType());
    int64_t pairs = table.getShape()[1];
    if (arePairsInLanes(op.getQRotationAttr().getPairing(), 2 * pairs))
      traits.queryTableRowBytes = pairs * table.getElementTypeBitWidth() / 8;
  }
  return traits;
}

KernelTile mlir::attnfuse::getKernelTile(ScheduleAttr schedule) {
  KernelTile tile{
      schedule.getTileM(),        schedule.getTileN(), schedule.getWarps(),
      schedule.getQInRegisters(), std::nullopt,        schedule.getKeySplits(),
      schedule.getPackedHeads(),  schedule.getStages()};
  if (PipelineAttr pipeline = schedule.getPipeline())
    tile.pipeline = {pipeline.getStages(),        pipeline.getPingPong(),
                     pipeline.getRowOrder(),      pipeline.getPartialSums(),
                     pipeline.getPartialMaxima(), pipeline.getSkipRescale(),
                     pipeline.getProductWait()};
  return tile;
}

ScheduleAttr mlir::attnfuse::getScheduleAttr(MLIRContext *context,
                                             const KernelTile &tile) {
  PipelineAttr pipeline;
  if (const std::optional<KernelPipeline> &from = tile.pipeline)
    pipeline =
        PipelineAttr::get(context, from->stages, from->pingPong, from->rowOrder,
                          from->partialSums, from->partialMaxima,
                          from->skipRescale, from->productWait);
  return ScheduleAttr::get(context, tile.tileM, tile.tileN, tile.warps,
                           tile.qInRegisters, tile.keySplits, tile.packedHeads,
                           tile.stages, pipeline);
}

std::optional<KernelTile> mlir::attnfuse::getTileForFewRows(
    AttentionOp op, const ScheduleProblem &problem, const TargetInfo &target) {
  llvm::Expected<KernelTile> tile = chooseTile(problem, target);
  if (!tile) {
    llvm::consumeError(tile.takeError());
    return std::nullopt;
  }
  tile->keySplits = op.getScheduleAttr().getKeySplits();
  if (attnfuse::getScheduleAttr(op.getContext(), *tile) != op.getScheduleAttr())
    return std::nullopt;
  return chooseTileForFewRows(problem, *tile, target);
}

KernelTile mlir::attnfuse::getTileForSplitKeys(AttentionOp op,
                                               const ScheduleProblem &problem,
                                               const TargetInfo &target) {
  KernelTile tile = getKernelTile(op.getScheduleAttr());
  if (tile.pipeline)
    tile = getTileForFewRows(op, problem, target).value_or(tile);
  return leaveRoomForParts(problem, tile, target);
}

namespace {
struct SelectSchedulePass
    : attnfuse::impl::AttnFuseSelectSchedulePassBase<SelectSchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) { ops.push_back(op); });
    if (ops.empty())
      return;
    if (keySplits < 0 || keySplits > kMaxKeySplits) {
      emitError(ops.front().getLoc())
          << "expected 'key-splits' from 0 to " << kMaxKeySplits << ", got "
          << int64_t(keySplits);
      return signalPassFailure();
    }
    llvm::Expected<TargetInfo> target = getTargetOf(getOperation());
    if (!target) {
      emitError(ops.front().getLoc(), llvm::toString(target.takeError()));
      return signalPassFailure();
    }
    // Every op gets its diagnosis, not only the first.
    bool anyFailed = false;
    for (AttentionOp op : ops)
      anyFailed |= failed(schedule(op, *target));
    if (anyFailed)
      signalPassFailure();
  }

  LogicalResult schedule(AttentionOp op, const TargetInfo &target) {
    FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
    if (failed(problem))
      return failure();
    ScheduleAttr given = op.getScheduleAttr();
    llvm::Expected<KernelTile> tile =
        given ? getKernelTile(given) : chooseTile(*problem, target);
    if (!tile)
      return op.emitOpError() << llvm::toString(tile.takeError());
    if (given)
      if (llvm::Error error = checkTile(*problem, *tile, target))
        return op.emitOpError() << llvm::toString(std::move(error));
    if (tile->keySplits == 0)
      tile->keySplits = keySplits;
    op.setScheduleAttr(attnfuse::getScheduleAttr(&getContext(), *tile));
    return success();
  }
};
} // namespace
