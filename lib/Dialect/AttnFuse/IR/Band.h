//===- Band.h - Arithmetic of band masks ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_IR_BAND_H
#define ATTNFUSE_LIB_IR_BAND_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

namespace mlir::attnfuse {

/// A mask that keeps the keys i + off - left <= j <= i + off + right of query
/// i, where off is 0 or Nkv - Nq by `align` and an absent bound is infinite.
/// What causal, sliding_window and the fused op's bands have in common.
struct Band {
  Alignment align;
  std::optional<int64_t> left, right;

  /// The band of a causal or sliding_window op, or nothing.
  static std::optional<Band> get(Operation *op);
  explicit Band(Alignment align, std::optional<int64_t> left,
                std::optional<int64_t> right)
      : align(align), left(left), right(right) {}
  explicit Band(BandAttr attr)
      : Band(attr.getAlign(), attr.getLeft(), attr.getRight()) {}

  BandAttr getAttr(MLIRContext *context) const {
    return BandAttr::get(context, align, left, right);
  }

  bool operator==(const Band &other) const {
    return align == other.align && left == other.left && right == other.right;
  }
  bool isUnbounded() const { return !left && !right; }

  /// The keys that both keep; the alignments must be equal.
  Band intersect(const Band &other) const;

  /// The band with the fewest bounds and, where it is free to choose, top_left
  /// that keeps the same keys for `nq` queries and `nkv` keys, each of which
  /// may be dynamic.
  Band simplify(int64_t nq, int64_t nkv) const;
};

/// Bands that together keep the same keys: simplified, one at most for each
/// alignment, none unbounded, in the order of their first member.
SmallVector<Band> simplifyBands(ArrayRef<Band> bands, int64_t nq, int64_t nkv);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_IR_BAND_H
