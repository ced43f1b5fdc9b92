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

/// Where a score stands: i32 values.
struct ScorePosition {
  Value batch, head, query, key, nq, nkv, numHeads;
};

class ScoreChain {
public:
  ScoreChain(AttentionOp op, KernelAbi &abi) : op(op), abi(abi), ranges(op) {}

  /// Fails, with an error at the op, if the region holds an op that has no
  /// device form.
  static LogicalResult verify(AttentionOp op);

  /// A load of the region whose value is at hand.
  struct KnownLoad {
    Operation *load = nullptr;
    Value value;
  };

  /// The region's value for `score`. Query and key must lie inside the score
  /// matrix.
  Value apply(KernelBuilder &b, Value score, const ScorePosition &position,
              KnownLoad known) const;

private:
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
