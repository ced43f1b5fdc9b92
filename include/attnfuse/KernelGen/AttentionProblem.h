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
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/TileWalk.h"

namespace mlir::attnfuse::kernelgen {

/// Rows [firstRow, firstRow + tile_m) of one head of one batch entry.
struct QueryTile {
  Value batch, head, keyHead, firstRow;
  /// The part of the keys, where they are split.
  Value part;
};

/// Rows in memory: the address of the first, and their distance in elements,
/// i64.
struct ResultRows {
  Value base, stride;
};

class AttentionProblem {
public:
  /// Reads the sizes.
  AttentionProblem(KernelBuilder &b, AttentionOp op, KernelAbi &abi);

  AttentionOp getOp() const { return op; }
  KernelAbi &getAbi() const { return abi; }
  /// Of q, k and v.
  Type getElementType() const { return op.getElementType(); }
  /// Of what the kernel writes: f32 where keys are split.
  Type getOutputType() const;
  double getScale() const { return scale; }
  /// Whether scores are scaled one by one, before the chain, and not by the
  /// normalizer.
  bool scalesScores() const { return OnlineNormalizer::scalesScores(op); }
  /// Whether this kernel computes parts of the results, which another combines.
  bool splitsKeys() const { return abi.getPartials().has_value(); }

  /// The tile of rows from `rowBlock` * tileM on of head `headOfBatch` (of
  /// batch size x heads); of split keys, part `part`.
  QueryTile getQueryTile(KernelBuilder &b, Value headOfBatch, Value rowBlock,
                         int64_t tileM, Value part = {}) const;
  TileWalk getWalk(KernelBuilder &b, const QueryTile &tile, int64_t tileM,
                   int64_t tileN) const;
  /// Address of the first row of a head's matrix.
  Value getHeadBase(KernelBuilder &b, Value tensor, Value batch,
                    Value head) const;
  /// The head's rows of the output, or of the tile's part of it.
  ResultRows getOutputRows(KernelBuilder &b, const QueryTile &tile) const;
  /// The same of the normalizer's states; 2 elements a row.
  ResultRows getPartialStates(KernelBuilder &b, const QueryTile &tile) const;

  Value numHeads, numKeyHeads, nq, nkv;
  /// Parts that the keys are split in, i32; null where they are not.
  Value numParts;
  BandLimits limits;

private:
  /// Rows of a [B, Hq, parts, Nq, `columns`] tensor of the workspace.
  ResultRows getPartialRows(KernelBuilder &b, StringRef name,
                            const QueryTile &tile, int64_t columns) const;
  std::optional<BlockList> getBlockList(KernelBuilder &b, const QueryTile &tile,
                                        int64_t tileN) const;

  mutable AttentionOp op;
  KernelAbi &abi;
  double scale;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_ATTENTIONPROBLEM_H
