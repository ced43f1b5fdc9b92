//===- Rotation.h - Rotary embedding of a tile in shared memory -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_ROTATION_H
#define ATTNFUSE_KERNELGEN_ROTATION_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/KernelGen/SharedLayout.h"

namespace mlir::attnfuse::kernelgen {

/// Operands of one rotation; offset and positions may be null.
struct RotationOperands {
  RotationAttr attr;
  Value cos, sin, offset, positions;

  static RotationOperands getQuery(AttentionOp op);
  static RotationOperands getKey(AttentionOp op);
  explicit operator bool() const { return bool(attr); }
  /// Rotary width R.
  int64_t getWidth() const;
  /// Columns of a table that a thread loads at once.
  int64_t getTableVectorSize() const;
};

/// Rotates a tile in place, in f32 arithmetic with one rounding. A thread takes
/// a vector of neighbouring pairs at a time: the pairs (d, d + R/2) of `half`
/// lie in two chunks of a row, those of `interleaved` in one.
class TileRotation {
public:
  TileRotation(RotationOperands operands, Type elementType, KernelAbi &abi,
               int64_t threads)
      : operands(operands), elementType(elementType), abi(abi),
        threads(threads) {}

  /// Rotates `rows` rows of a tile from `tile` on, which hold sequence indices
  /// `firstRow` on, of `numRows` in the sequence of batch entry `batch`. Rows
  /// past the end are rotated by some position, which is harmless. Threads 0 to
  /// `threads` - 1 take part; the caller synchronises before and after. `tile`
  /// is a multiple of 8 rows into the layout.
  void emit(KernelBuilder &b, const SharedLayout &layout, Value tile,
            int64_t rows, Value firstRow, Value numRows, Value batch,
            Value thread) const;

private:
  Value getTableRow(KernelBuilder &b, Value row, Value numRows,
                    Value batch) const;
  Values loadTable(KernelBuilder &b, Value table, Value row, Value column,
                   int64_t size) const;

  RotationOperands operands;
  Type elementType;
  KernelAbi &abi;
  int64_t threads;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_ROTATION_H
