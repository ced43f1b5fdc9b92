//===- BlockContext.h - What the roles of a block share ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_KERNELGEN_SM90_BLOCKCONTEXT_H
#define ATTNFUSE_LIB_KERNELGEN_SM90_BLOCKCONTEXT_H

#include "attnfuse/Analysis/ScoreLoads.h"
#include "attnfuse/KernelGen/AttentionProblem.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Rotation.h"
#include "attnfuse/KernelGen/SharedLayout.h"
#include "attnfuse/KernelGen/Sm90/TileHandoff.h"
#include "attnfuse/KernelGen/Sm90/TileOrder.h"
#include "attnfuse/Target/TargetInfo.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// The kernel's shape, and the values that all threads have before the roles
/// part. K is `full` when it has landed and `ready` when it is also rotated.
struct BlockContext {
  BlockContext(KernelBuilder &b, AttentionOp op, const KernelTile &tile,
               LLVM::GlobalOp sharedMemory, KernelAbi &abi,
               const TargetInfo &target);
  BlockContext(const BlockContext &) = delete; // `order` refers to `problem`.

  void initBarriers(KernelBuilder &b) const;

  /// Panels of 64 keys in a key tile.
  int64_t getKeyPanels() const {
    return llvm::divideCeil(tile.tileN, kPanelColumns);
  }
  int64_t getComputingWarpgroups() const {
    return tile.warps / kWarpgroupWarps;
  }
  /// Whether the output goes through shared memory and the accelerator.
  bool stagesOutput() const { return !problem.getOutputType().isF32(); }
  /// Whether Q is released by the stores of the output that lies in its place,
  /// and not by the warps that have read it.
  bool outputReplacesQuery() const {
    return stagesOutput() && plan.outputReplacesQuery;
  }
  /// Whether Q is in registers before its tile begins: where nothing is left to
  /// be done in shared memory, and its place is free for the tile after it.
  bool fetchesQuery() const {
    return tile.qInRegisters && !outputReplacesQuery() &&
           (!queryRotation || stagesTables());
  }
  /// Whether the first product of a tile is begun before the tile before has
  /// been stored. Not with lists of blocks, which are read from memory.
  bool startsTiles() const {
    return fetchesQuery() && !problem.getOp().getBlocksAttr();
  }
  /// Whether Q is rotated in registers, and not in shared memory: by tables
  /// that spare warps of the loading warpgroup bring there.
  bool stagesTables() const { return plan.tableBytes != 0; }
  /// Those tables, and what stages and applies them; only if there are some.
  StagedTables getStagedTables(KernelBuilder &b) const;
  FragmentRotation getFragmentRotation() const;
  Value getSharedPtr(KernelBuilder &b, int64_t byteOffset) const;

  KernelTile tile;
  KernelPipeline pipeline;
  KernelTraits traits;
  PaddedHeadDims dims;
  PipelinedMemoryPlan plan;
  RoleRegisters registers;
  RotationOperands queryRotation, keyRotation;
  SharedLayout queryLayout, keyLayout;

  AttentionProblem problem;
  TileOrder order;
  LLVM::GlobalOp sharedMemory;
  Value shared; ///< i32 address of the block's memory
  Value thread, warpgroup;
  TileHandoff handoff;
  StageRing tables, queries, keys, values;
  /// Like `keys`, with the barriers of rotated tiles; the same without a
  /// rotation.
  StageRing readyKeys;
  /// A score operand that comes with the keys, in panels of 64: the bytes of
  /// one, and where the first lies in a stage.
  struct StagedPanels {
    StagedOperand operand;
    int64_t panelBytes, offset;
  };
  SmallVector<StagedPanels> stagedPanels;
  /// All of them; only if there are some.
  std::optional<StageRing> stagedTiles;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_LIB_KERNELGEN_SM90_BLOCKCONTEXT_H
