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
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/TileWalk.h"

namespace mlir::attnfuse::kernelgen {

/// Rows from `firstRow` on of one or more heads from `head` on, of one batch
/// entry, as KernelTile has them.
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

  /// Heads of the whole batch, or groups of heads that are packed into a tile,
  /// and the row blocks of each: together, all query tiles.
  Value getNumHeadGroups(KernelBuilder &b, const KernelTile &shape) const;
  Value getNumRowBlocks(KernelBuilder &b, const KernelTile &shape) const;
  /// Of split keys, part `part` of the tile.
  QueryTile getQueryTile(KernelBuilder &b, const KernelTile &shape,
                         Value headGroup, Value rowBlock,
                         Value part = {}) const;
  /// The same by its batch entry, head and row, which are known already.
  /// `part` is ignored where keys are not split.
  QueryTile getQueryTileAt(KernelBuilder &b, Value batch, Value head,
                           Value firstRow, Value part) const;
  /// Where row `tileRow` of the tile is: `head` and `firstRow` of its own.
  QueryTile getRowsFrom(KernelBuilder &b, const KernelTile &shape,
                        QueryTile tile, Value tileRow) const;
  TileWalk getWalk(KernelBuilder &b, const KernelTile &shape,
                   const QueryTile &tile) const;
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
