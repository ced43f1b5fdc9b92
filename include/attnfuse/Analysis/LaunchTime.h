//===- LaunchTime.h - Large blocks against small ones -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Many small blocks fill a machine that few large ones leave partly idle, and
// large ones use an SM better. Which are quicker depends on how many rounds of
// blocks a launch takes, and on how many places the last round leaves empty.
// docs/Architecture.md has the derivation, docs/performance.md what it was
// fitted to.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_LAUNCHTIME_H
#define ATTNFUSE_ANALYSIS_LAUNCHTIME_H

#include "attnfuse/Analysis/TileVisits.h"

namespace mlir::attnfuse {

/// Rows of a block of one warpgroup.
constexpr int64_t kSmallBlockRows = 64;

/// Time of a launch of a pipelined kernel of `op`, in a unit that kernels of
/// the same op have in common: for comparing their tiles, whose rows are a
/// multiple of kSmallBlockRows. Rotations are not counted. `smCount` is that of
/// the launch.
SizeExpression estimateLaunchTime(
    AttentionOp op, const AttentionSizes &sizes, const BlockTile &tile,
    const SizeExpression &smCount = llvm::json::Value("$sm_count"));

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_LAUNCHTIME_H
