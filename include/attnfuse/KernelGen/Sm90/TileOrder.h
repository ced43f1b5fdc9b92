//===- TileOrder.h - Which block computes which query tile ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A persistent grid: as many blocks as the machine runs at a time, each of
// which computes its share of the tiles (TileDeal.h), one after the other.
// Where keys are split, a block has one part of one tile, and there is nothing
// to balance.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_TILEORDER_H
#define ATTNFUSE_KERNELGEN_SM90_TILEORDER_H

#include "attnfuse/KernelGen/AttentionProblem.h"
#include "attnfuse/KernelGen/Sm90/TileDeal.h"
#include "attnfuse/KernelGen/Sm90/TileHandoff.h"

namespace mlir::attnfuse::kernelgen::sm90 {

class TileOrder {
public:
  /// `l2Bytes` is the size of the L2 cache.
  TileOrder(KernelBuilder &b, const AttentionProblem &problem,
            const KernelTile &shape, int64_t l2Bytes);

  /// The tile of the first round of this block, and that of a later one; or
  /// that there is no such round.
  TileRecord getFirst(KernelBuilder &b) const;
  TileRecord getNext(KernelBuilder &b, Value round) const;

private:
  TileRecord getRecord(KernelBuilder &b, Value round) const;
  QueryTile getTile(KernelBuilder &b, Value round) const;

  const AttentionProblem &problem;
  KernelTile shape;
  TileDeal deal;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_TILEORDER_H
