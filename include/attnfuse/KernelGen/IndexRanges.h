//===- IndexRanges.h - Index values of a score region that fit 32 bits
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_INDEXRANGES_H
#define ATTNFUSE_KERNELGEN_INDEXRANGES_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::attnfuse::kernelgen {

/// Index arithmetic means 64 bits, and 32 are faster: an index value is held in
/// i32 iff its range, from those of the region's arguments on, shows that it
/// fits.
class IndexRanges {
public:
  explicit IndexRanges(AttentionOp op);

  /// True if the index `value` of the region is held in i64.
  bool isWide(Value value) const { return wideValues.contains(value); }

  /// True if `op`, which has index operands or results, must be computed in 64
  /// bits to give its value, be that wide or not.
  bool isComputedWide(Operation *op) const { return wideOps.contains(op); }

private:
  llvm::DenseSet<Value> wideValues;
  llvm::DenseSet<Operation *> wideOps;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_INDEXRANGES_H
