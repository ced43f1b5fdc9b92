//===- AttentionProblem.h - What a kernel is to compute ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The run-time sizes of an attention, read from the kernel's parameters, and
// the places in memory that belong to one query tile. Positions are i32.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_ATTENTIONPROBLEM_H
#define ATTNFUSE_KERNELGEN_ATTENTIONPROBLEM_H

#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/KernelGen/TileWalk.h"

namespace mlir::attnfuse::kernelgen {

/// Rows [firstRow, firstRow + tile_m) of one head of one batch entry.
struct QueryTile {
  Value batch, head, keyHead, firstRow;
};

class AttentionProblem {
public:
  /// Reads the sizes.
  AttentionProblem(KernelBuilder &b, AttentionOp op, KernelAbi &abi);

  AttentionOp getOp() const { return op; }
  KernelAbi &getAbi() const { return abi; }
  /// Of q, k and v.
  Type getElementType() const { return op.getElementType(); }
  Type getOutputType() const;
  double getScale() const { return scale; }
  /// Whether scores are scaled one by one, before the chain, and not by the
  /// normalizer.
  bool scalesScores() const { return op.hasScoreChain() || scale <= 0; }

  /// The tile of rows from `rowBlock` * tileM on of head `headOfBatch` (of
  /// batch size x heads).
  QueryTile getQueryTile(KernelBuilder &b, Value headOfBatch, Value rowBlock,
                         int64_t tileM) const;
  TileWalk getWalk(KernelBuilder &b, const QueryTile &tile, int64_t tileM,
                   int64_t tileN) const;
  /// Address of the first row of a head's matrix.
  Value getHeadBase(KernelBuilder &b, Value tensor, Value batch,
                    Value head) const;

  Value numHeads, numKeyHeads, nq, nkv;
  BandLimits limits;

private:
  std::optional<BlockList> getBlockList(KernelBuilder &b, const QueryTile &tile,
                                        int64_t tileN) const;

  mutable AttentionOp op;
  KernelAbi &abi;
  double scale;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_ATTENTIONPROBLEM_H
