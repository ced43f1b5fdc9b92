//===- ScoreLoads.h - What a score region loads ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads that go with every score cost more than the score. One that reads
// element (i, j) of a [B, H, Nq, Nkv] tensor, any of whose first three
// dimensions may be broadcast, an additive bias, need not: a kernel can bring
// the tensor to shared memory tile by tile, as it does K.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_SCORELOADS_H
#define ATTNFUSE_ANALYSIS_SCORELOADS_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

namespace mlir::attnfuse {

struct StagedOperand {
  /// The load in the score region, of elements of 16 bits.
  Operation *load;
  /// The operand of the attention.
  Value tensor;
  bool perBatch, perHead, perQuery;
};

/// The loads of the score region that depend on the query or the key.
SmallVector<Operation *> getElementLoads(AttentionOp op);

/// All such loads, in the region's order, if each of them can be staged; else
/// none.
SmallVector<StagedOperand> getStagedOperands(AttentionOp op);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_SCORELOADS_H
