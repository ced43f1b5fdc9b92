//===- ShapeChecker.h - Named dimensions in verifiers -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The constraints that the building blocks and the fused op share, each in one
// place. Rule numbers are those of docs/spec.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_IR_SHAPECHECKER_H
#define ATTNFUSE_LIB_IR_SHAPECHECKER_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::attnfuse {

/// Gives the dimensions of an op's operands and results names, and reports the
/// op as soon as two dimensions of one name have different static sizes.
class ShapeChecker {
public:
  explicit ShapeChecker(Operation *op) : op(op) {}

  /// Names the dimensions of `value`, an operand or result called `name`.
  LogicalResult bind(StringRef name, Value value, ArrayRef<StringRef> dims);

  /// The static size of a dimension, or ShapedType::kDynamic.
  int64_t get(StringRef dim) const;

  /// Head sizes and rotary widths are compiled in: `dim` must be static and
  /// at least 1.
  LogicalResult checkStatic(StringRef dim) const;

  /// Hq is a multiple of Hkv.
  LogicalResult checkHeadGroups() const;

  Operation *getOperation() const { return op; }

private:
  struct Size {
    int64_t size = ShapedType::kDynamic;
    StringRef owner;
    Value value;
  };
  Operation *op;
  llvm::SmallMapVector<StringRef, Size, 8> sizes;
};

/// The operands and attributes of one rotation, of a rope or inside attention.
struct RotationParts {
  Value cos, sin, offset, positions;
  int64_t staticOffset;
  /// "" for rope, "q_" and "k_" for attention: prefixes operand names.
  StringRef prefix;
  /// The names that the input's B, N and D were bound to.
  StringRef batchDim, lengthDim, headDim;
};

/// rope_c1 to rope_c7.
LogicalResult verifyRotation(ShapeChecker &shapes, const RotationParts &parts);

/// block_sparse_c1 to block_sparse_c3, with B, Hq and Nq already bound.
LogicalResult verifyBlocks(ShapeChecker &shapes, Value rowOffsets,
                           int64_t queryBlock, int64_t keyBlock);

/// scaled_dot_product_c4.
LogicalResult verifyScale(Operation *op, const APFloat &scale);

/// weighted_sum_c3: the output has v's element type or is f32.
LogicalResult verifyOutputType(Operation *op, Type valueElement,
                               Type outputElement);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_IR_SHAPECHECKER_H
