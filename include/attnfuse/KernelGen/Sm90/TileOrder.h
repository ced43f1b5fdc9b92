//===- TileOrder.h - Which block computes which query tile ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A persistent grid: as many blocks as the machine runs at a time, each of
// which takes one tile a round. Heads are cut into sections whose K and V stay
// in the L2 cache; in a section the tiles with the most keys come first, and
// every second round is dealt out backwards, so that all blocks end at about
// the same time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_TILEORDER_H
#define ATTNFUSE_KERNELGEN_SM90_TILEORDER_H

#include "attnfuse/KernelGen/AttentionProblem.h"

namespace mlir::attnfuse::kernelgen::sm90 {

class TileOrder {
public:
  /// `l2Bytes` is the size of the L2 cache.
  TileOrder(KernelBuilder &b, const AttentionProblem &problem, int64_t tileM,
            int64_t l2Bytes);

  /// Emits the rounds of this block. `body` gets the round, its query tile and
  /// the number of the block's next key tile, which it returns moved on.
  void forEachTile(
      KernelBuilder &b,
      function_ref<Value(Value round, const QueryTile &query, Value number)>
          body) const;

private:
  /// Number of this block's tile in round `round`.
  Value getTileNumber(KernelBuilder &b, Value round) const;
  QueryTile getTile(KernelBuilder &b, Value tileNumber) const;

  const AttentionProblem &problem;
  int64_t tileM;
  Value block, gridSize;
  Value rowBlocks, heads, headsPerSection, total;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_TILEORDER_H
