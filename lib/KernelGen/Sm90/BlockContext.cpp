//===- BlockContext.cpp - What the roles of a block share -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockContext.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

static Value getSharedBase(KernelBuilder &b, LLVM::GlobalOp sharedMemory) {
  return b.create<LLVM::AddressOfOp>(b.sharedPtrType(),
                                     sharedMemory.getSymName());
}

/// A ring by the plan's offset of its tiles and the index of its barriers.
static StageRing getRing(KernelBuilder &b, Value shared,
                         const PipelinedMemoryPlan &plan, int64_t tiles,
                         int64_t tileBytes, int64_t full, int64_t empty,
                         int64_t stages) {
  auto barrier = [&](int64_t index) {
    return b.add(shared, plan.barriers + 8 * index);
  };
  return StageRing(b.add(shared, tiles), tileBytes, barrier(full),
                   barrier(empty), stages);
}

static SharedLayout getPanels(int64_t rows, int64_t columns) {
  return SharedLayout(rows, llvm::alignTo(columns, kPanelColumns));
}

BlockContext::BlockContext(KernelBuilder &b, AttentionOp op,
                           const KernelTile &tile, LLVM::GlobalOp sharedMemory,
                           KernelAbi &abi, const TargetInfo &target)
    : tile(tile), pipeline(*tile.pipeline), traits(getKernelTraits(op)),
      dims(traits.dims), plan(traits, tile, target),
      registers(RoleRegisters::get(
          getComputingWarpgroups(),
          getPipelinedBlocksPerSm(traits, tile, target), traits.rotatesKeys)),
      queryRotation(RotationOperands::getQuery(op)),
      keyRotation(RotationOperands::getKey(op)),
      queryLayout(getPanels(tile.tileM, dims.qk)),
      keyLayout(getPanels(tile.tileN, dims.qk)), problem(b, op, abi),
      order(b, problem, tile, target.l2Bytes), sharedMemory(sharedMemory),
      shared(b.create<LLVM::PtrToIntOp>(b.getI32Type(),
                                        getSharedBase(b, sharedMemory))),
      thread(b.threadId()), warpgroup(b.divU(thread, kWarpgroupThreads)),
      handoff(getRing(b, shared, plan, plan.tileRecords, kTileRecordBytes,
                      plan.kTileRecordFull, plan.kTileRecordEmpty,
                      kTileRecordStages)),
      tables(getRing(b, shared, plan, plan.tables, plan.tableBytes,
                     plan.kTablesFull, plan.kTablesEmpty, 1)),
      queries(getRing(b, shared, plan, plan.q, plan.queryBytes, plan.kQueryFull,
                      plan.kQueryEmpty, 1)),
      keys(getRing(b, shared, plan, plan.k, plan.keyBytes, plan.getKeyFull(),
                   plan.getKeyEmpty(), plan.stages)),
      values(getRing(b, shared, plan, plan.v, plan.valueBytes,
                     plan.getValueFull(), plan.getValueEmpty(), plan.stages)),
      readyKeys(keyRotation ? getRing(b, shared, plan, plan.k, plan.keyBytes,
                                      plan.getKeyRotated(), plan.getKeyEmpty(),
                                      plan.stages)
                            : keys) {
  int64_t offset = 0;
  for (const StagedOperand &operand : getStagedOperands(op)) {
    int64_t panelBytes = getStagedPanelBytes(operand.perQuery, tile.tileM);
    stagedPanels.push_back({operand, panelBytes, offset});
    offset += panelBytes * getKeyPanels();
  }
  if (!stagedPanels.empty())
    stagedTiles =
        getRing(b, shared, plan, plan.staged, plan.stagedBytes,
                plan.getStagedFull(), plan.getStagedEmpty(), plan.stagedStages);
}

Value BlockContext::getSharedPtr(KernelBuilder &b, int64_t byteOffset) const {
  return b.offsetPtr(getSharedBase(b, sharedMemory), byteOffset);
}

StagedTables BlockContext::getStagedTables(KernelBuilder &b) const {
  return {getSharedPtr(b, plan.tables), plan.tablePitch, tile.getRowsPerHead()};
}
FragmentRotation BlockContext::getFragmentRotation() const {
  return {queryRotation, problem.getElementType(), problem.getAbi()};
}

void BlockContext::initBarriers(KernelBuilder &b) const {
  Part part(b, "barriers");
  b.ifThen(b.eq(thread, 0), [&] {
    // A full tile is announced by its one loader, or by all that copy or rotate
    // it; warps release tiles.
    auto init = [&](const StageRing &ring, int64_t consumers) {
      ring.initFull(b, 1);
      ring.initEmpty(b, consumers);
    };
    init(handoff.getRing(),
         tile.warps + (stagesTables() ? kSpareLoaderWarps : 0));
    if (stagesTables()) {
      tables.initFull(b, kSpareLoaderWarps * kWarpSize);
      tables.initEmpty(b, tile.warps);
    }
    init(queries,
         outputReplacesQuery() ? getComputingWarpgroups() : tile.warps);
    init(keys, tile.warps);
    init(values, tile.warps);
    if (keyRotation)
      readyKeys.initFull(b, kWarpgroupThreads);
    if (stagedTiles)
      init(*stagedTiles, tile.warps);
    fenceBarrierInit(b);
  });
  b.barrier();
}
