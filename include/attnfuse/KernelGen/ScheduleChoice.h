//===- ScheduleChoice.h - Which tile a kernel gets --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules by which tiles are chosen and checked, without MLIR ops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SCHEDULECHOICE_H
#define ATTNFUSE_KERNELGEN_SCHEDULECHOICE_H

#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/Target/TargetInfo.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir::attnfuse {

/// What the choice depends on. Sizes that are known only at run time are
/// absent.
struct ScheduleProblem {
  ScheduleProblem(int64_t headDim, int64_t valueHeadDim)
      : dims(headDim, valueHeadDim) {}

  PaddedHeadDims dims;
  std::optional<int64_t> numQueries;
  std::optional<int64_t> numKeys;
  /// Keys that a query sees of a band that is bounded on both sides.
  std::optional<int64_t> windowWidth;
  /// Block sizes of a block-sparse pattern. A tile lies in one block.
  std::optional<int64_t> queryBlock;
  std::optional<int64_t> keyBlock;
  /// Tensors that the score chain reads.
  int64_t numScoreOperands = 0;
  /// Those that it reads anew for every query or key: in tiles that can be
  /// staged, or else without any such order.
  Staging staging;
  bool readsElements = false;
  /// Whether a band limits the keys.
  bool hasBand = false;
  /// Whether K is rotated in the kernel.
  bool rotatesKeys = false;
  /// Query heads for each key head that may share a tile; 1 where heads differ
  /// in more than q, or their number is not known.
  int64_t packableHeads = 1;
  /// Whether q, k, v and the output are all arguments or results, to which
  /// alone tensor maps can be made.
  bool allowsTensorMaps = true;

  /// Without the tables of Q's rotation, which only take what memory is left.
  KernelTraits getTraits() const { return {dims, rotatesKeys, staging}; }
};

/// Success if each tile lies in one block of a block-sparse pattern.
llvm::Error checkBlocks(const ScheduleProblem &problem, const KernelTile &tile);

/// Success if a kernel with this tile runs on the machine; otherwise an error
/// that names the limit, the value and the remedy.
llvm::Error checkTile(const ScheduleProblem &problem, const KernelTile &tile,
                      const TargetInfo &target);

/// Whether it passes checkTile.
bool fitsOn(const ScheduleProblem &problem, const KernelTile &tile,
            const TargetInfo &target);

/// Estimated clocks of one SM for one query row and one visible key. `tile`
/// passes checkTile.
double estimateTileCost(const ScheduleProblem &problem, const KernelTile &tile,
                        const TargetInfo &target);

/// The cheapest of the tiles that fit, or why none fits.
llvm::Expected<KernelTile> chooseTile(const ScheduleProblem &problem,
                                      const TargetInfo &target);
/// The same without a pipeline: for tensors of any strides.
llvm::Expected<KernelTile> chooseUnpipelinedTile(const ScheduleProblem &problem,
                                                 const TargetInfo &target);

/// Whether a kernel without a pipeline will neither spill nor be slow to
/// compile. `tile` passes checkTile.
bool isPreferredTile(const ScheduleProblem &problem, const KernelTile &tile,
                     const TargetInfo &target);
/// The pipelined tile of up to `groups` computing warpgroups; none where it
/// does not fit, or another kind of block serves better.
std::optional<KernelTile> chooseTileOfWarpgroups(const ScheduleProblem &problem,
                                                 const TargetInfo &target,
                                                 int64_t groups);

/// The most heads whose rows a pipelined tile can have. Each key tile is loaded
/// once for all of them, the tables of rotations are, too, and short queries
/// leave fewer rows empty.
int64_t choosePackedHeads(const ScheduleProblem &problem, int64_t tileM);

/// A smaller tile than `tile`, for launches at which it is expected to be the
/// quicker one (Analysis/LaunchTime.h); none if there is no such tile.
std::optional<KernelTile> chooseTileForFewRows(const ScheduleProblem &problem,
                                               const KernelTile &tile,
                                               const TargetInfo &target);

/// The tile for a version that splits keys: the place of a part takes registers
/// through the loop.
KernelTile leaveRoomForParts(const ScheduleProblem &problem, KernelTile tile,
                             const TargetInfo &target);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_KERNELGEN_SCHEDULECHOICE_H
