//===- ScoreChain.h - The score region, per element -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the region of attnfuse.attention for one score. Index arithmetic is
// done in i32 where that suffices, loads go to the score operands' memory. What
// depends only on the row, the column or the head is emitted for every element
// and left to LLVM to share.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SCORECHAIN_H
#define ATTNFUSE_KERNELGEN_SCORECHAIN_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/IndexRanges.h"
#include "attnfuse/KernelGen/KernelAbi.h"

namespace mlir::attnfuse::kernelgen {

/// Where a score stands: i32 values. The key is `firstKey` + `keyOffset`.
struct ScorePosition {
  Value batch, head, query, firstKey;
  int64_t keyOffset;
  Value nq, nkv, numHeads;
};

class ScoreChain {
public:
  ScoreChain(AttentionOp op, KernelAbi &abi) : op(op), abi(abi), ranges(op) {}

  /// Fails, with an error at the op, if the region holds an op that has no
  /// device form.
  static LogicalResult verify(AttentionOp op);

  /// The sum that the region adds `load` to, if it ends like additive_bias: by
  /// -inf where the element is -inf, and else the sum, at least kLowestScore
  /// (docs/spec.md). Null if it does not.
  static Value getHidingSum(AttentionOp op, Operation *load);

  /// A load of the region whose value is at hand.
  struct KnownLoad {
    Operation *load = nullptr;
    Value value;
  };

  /// `result`, by default what the region yields, for `score`. A product and
  /// the sum it goes into are rounded once.
  Value apply(KernelBuilder &b, Value score, const ScorePosition &position,
              ArrayRef<KnownLoad> known, Value result = {}) const;

private:
  /// An i32 as a sum with a constant. Elements of a row differ by the
  /// constant, so what is computed of the base is shared.
  struct OffsetValue {
    Value base;
    int64_t offset;
  };
  using Offsets = DenseMap<Value, OffsetValue>;
  /// The operation's result in terms of the base of an operand; null if it is
  /// not known to be base and constant.
  Value emitByOffset(KernelBuilder &b, Operation &operation,
                     const IRMapping &map, Offsets &offsets) const;

  Value emit(KernelBuilder &b, Operation &operation, IRMapping &map) const;
  Value emitIndexOp(KernelBuilder &b, Operation &operation,
                    IRMapping &map) const;
  Value emitExtract(KernelBuilder &b, Operation &operation,
                    IRMapping &map) const;

  mutable AttentionOp op;
  KernelAbi &abi;
  IndexRanges ranges;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_SCORECHAIN_H
