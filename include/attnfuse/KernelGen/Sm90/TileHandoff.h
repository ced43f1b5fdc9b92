//===- TileHandoff.h - From who deals tiles to who computes ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which query tile a block computes next is some divisions away (TileDeal.h),
// hundreds of clocks during which no product would run. The loading thread,
// which is ahead, works it out, and hands it to the computing warps through
// shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_TILEHANDOFF_H
#define ATTNFUSE_KERNELGEN_SM90_TILEHANDOFF_H

#include "attnfuse/KernelGen/AttentionProblem.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Sm90/StageRing.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// A query tile, or that there is none, as i32 that loops carry and shared
/// memory holds.
struct TileRecord {
  static constexpr int64_t kWords = kTileRecordBytes / 4;
  Values words;

  static TileRecord get(KernelBuilder &b, const QueryTile &tile);
  static TileRecord getNone(KernelBuilder &b);
  Value isTile(KernelBuilder &b) const;
  /// The tile; of no use if there is none.
  QueryTile getTile(KernelBuilder &b, const AttentionProblem &problem) const;
};

class TileHandoff {
public:
  /// `ring` has kTileRecordBytes a stage. One thread puts; whoever takes
  /// releases once a warp.
  explicit TileHandoff(const StageRing &ring) : ring(ring) {}
  const StageRing &getRing() const { return ring; }

  /// By one thread: the tile of a round, or that the round before was the last.
  void put(KernelBuilder &b, Value round, const TileRecord &record) const;
  /// By all warps that take, of which `isWarpLeader`, an i32, marks a thread
  /// each: waits for what is put for the round.
  TileRecord take(KernelBuilder &b, Value round, Value isWarpLeader) const;

private:
  Value getSlot(KernelBuilder &b, Value round) const;

  StageRing ring;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_TILEHANDOFF_H
