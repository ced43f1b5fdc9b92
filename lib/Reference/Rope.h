//===- Rope.h - Rotations in fp64 -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_ROPE_H
#define ATTNFUSE_LIB_REFERENCE_ROPE_H

#include "Array.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

namespace mlir::attnfuse::reference {

struct RopeArguments {
  /// `x` is [B, H, N, D], the tables [P, R / 2], `positions` null, [N] or
  /// [B, N], `offset` null or a scalar.
  const Array *x, *cos, *sin, *offset, *positions;
  Pairing pairing;
  int64_t staticOffset;
};

/// Whether an offset of the arguments, without positions, keeps all rows of `x`
/// inside the tables.
bool isInsideTables(const RopeArguments &arguments);

/// Positions outside the tables are clamped. `roundoff` is that of the type
/// that an implementation rounds the result to.
Array rotate(const RopeArguments &arguments, double roundoff);

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_ROPE_H
