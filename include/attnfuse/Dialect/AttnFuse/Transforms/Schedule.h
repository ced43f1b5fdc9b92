//===- Schedule.h - Schedules of attention ops ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SCHEDULE_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SCHEDULE_H

#include "attnfuse/Analysis/RotationCalculus.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/ScheduleChoice.h"

namespace mlir::attnfuse {

/// What the choice of a tile for `op` depends on. Emits an error if the GPU
/// kernels do not serve the op's types or sizes.
FailureOr<ScheduleProblem> getScheduleProblem(AttentionOp op);

KernelTile getKernelTile(ScheduleAttr schedule);
inline TileShape getTileShape(const KernelTile &tile) {
  return {tile.tileM, tile.tileN, tile.packedHeads};
}
/// The tile, and how many of its blocks an SM holds: one at least, for what
/// does not fit is diagnosed elsewhere.
BlockTile getBlockTile(const KernelTraits &traits, const KernelTile &tile,
                       const TargetInfo &target);
/// The tile of a kernel that rotates k, for the calculus.
RotationTile getRotationTile(const ScheduleProblem &problem,
                             const KernelTile &tile, const TargetInfo &target,
                             bool splitsKeys);
/// What decides the resources of the op's kernels.
KernelTraits getKernelTraits(AttentionOp op);
/// The smaller tile that the op's kernels also come in, if the op has the tile
/// that would be chosen, and not one that was asked for.
std::optional<KernelTile> getTileForFewRows(AttentionOp op,
                                            const ScheduleProblem &problem,
                                            const TargetInfo &target);
/// The tile of the version that splits keys, where the sizes of a launch may
/// have it.
KernelTile getTileForSplitKeys(AttentionOp op, const ScheduleProblem &problem,
                               const TargetInfo &target);
ScheduleAttr getScheduleAttr(MLIRContext *context, const KernelTile &tile);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SCHEDULE_H
