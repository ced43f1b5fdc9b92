//===- RotationCalculus.h - What rotating k costs ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/rotation-calculus.md derives the model and compares it with
// measurements.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_ROTATIONCALCULUS_H
#define ATTNFUSE_ANALYSIS_ROTATIONCALCULUS_H

#include "attnfuse/Analysis/SizeExpression.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Target/TargetInfo.h"

namespace mlir::attnfuse {

/// Sizes of a launch; `numBlocks` is the length of the list of a block-sparse
/// pattern.
struct AttentionSizes {
  SizeExpression batch, queryHeads, keyHeads, queries, keys;
  std::optional<SizeExpression> numBlocks = std::nullopt;

  /// From the op's types. What they leave open has a name.
  static AttentionSizes get(AttentionOp op);
};

/// Key tiles of `tileM` x `tileN` that all query tiles of a launch visit, and
/// those of one query tile, on average.
struct TileVisits {
  TileVisits(AttentionOp op, const AttentionSizes &sizes, int64_t tileM,
             int64_t tileN);
  SizeExpression ofQueryTile, inAll;
};

/// What rotating k adds to the time of an attention, in picoseconds: integers
/// where the sizes are known.
struct RotationCosts {
  /// In the kernel with tiles of `tileM` x `tileN`, in every visit.
  SizeExpression fused;
  /// Once, by a kernel before it.
  SizeExpression split;

  RotationCosts(AttentionOp op, const AttentionSizes &sizes, int64_t tileM,
                int64_t tileN, const TargetInfo &target);
};

/// Whether the fused way is expected to be quicker, as an expression of the
/// manifest.
llvm::json::Value getFusedIsQuicker(AttentionOp op, const AttentionSizes &sizes,
                                    int64_t tileM, int64_t tileN,
                                    const TargetInfo &target);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_ROTATIONCALCULUS_H
