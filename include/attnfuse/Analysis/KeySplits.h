//===- KeySplits.h - When blocks share the keys of a tile -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch with fewer query tiles than the machine holds blocks leaves some of
// it idle while the others walk over their keys. Splitting the keys of every
// tile into parts fills it, for the price of a second kernel that combines the
// parts. docs/Architecture.md has the derivation.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_KEYSPLITS_H
#define ATTNFUSE_ANALYSIS_KEYSPLITS_H

#include "attnfuse/Analysis/TileVisits.h"
#include "attnfuse/Target/TargetInfo.h"

namespace mlir::attnfuse {

struct KeySplits {
  /// `smCount` is that of the launch, which may differ from the target's.
  KeySplits(AttentionOp op, const AttentionSizes &sizes, const BlockTile &tile,
            const TargetInfo &target,
            const SizeExpression &smCount = llvm::json::Value("$sm_count"));

  /// Parts of the keys of a query tile: as many as fill the machine with one
  /// block each, and of the longest walk kLeastTiles key tiles each, but for
  /// one; from 1 to kMostParts. An expression of the sizes and of the number of
  /// SMs.
  SizeExpression count;
  /// Picoseconds that the longest tile's walk gets shorter by, and that
  /// combining the parts takes.
  SizeExpression gain, cost;

  /// Key tiles of a part below which a block is mostly prologue and epilogue.
  static constexpr int64_t kLeastTiles = 2;
  /// More parts than there are SMs in any machine of the table; the kernel that
  /// combines them takes the longer the more there are.
  static constexpr int64_t kMostParts = 256;

  /// 1 where splitting is expected to be quicker, else 0.
  SizeExpression pays() const {
    return isAtMost(2, count) * isAtMost(cost, gain);
  }
  /// Whether it could be for some sizes that the op's types allow, on a machine
  /// of some number of SMs.
  bool mayPay;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_KEYSPLITS_H
