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

class TileHandoff {
public:
  static constexpr int64_t kWords = kQueryTileBytes / 4;

  /// `slot` is a ring of one stage of kQueryTileBytes.
  explicit TileHandoff(const StageRing &slot) : slot(slot) {}

  /// By one thread: the tile of a round, or that the round before was the last.
  void put(KernelBuilder &b, Value round, const QueryTile &tile) const;
  void putEnd(KernelBuilder &b, Value round) const;

  /// By all computing warps, of which `isWarpLeader`, an i32, marks a thread
  /// each: waits for what was put for a round, kWords i32.
  Values take(KernelBuilder &b, Value round, Value isWarpLeader) const;
  /// Whether it is a tile; and the tile, which is the first of all if not.
  static Value isTile(KernelBuilder &b, ValueRange record);
  static QueryTile getTile(KernelBuilder &b, const AttentionProblem &problem,
                           ValueRange record);

private:
  void write(KernelBuilder &b, Value round, ArrayRef<Value> words) const;
  Value getRecord(KernelBuilder &b, Value round) const;

  StageRing slot;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_TILEHANDOFF_H
