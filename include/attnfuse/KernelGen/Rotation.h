//===- Rotation.h - Rotary embedding of rows --------------------*- C++ -*-===//
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
  static RotationOperands get(RopeOp op);
  explicit operator bool() const { return bool(attr); }
  /// Rotary width R.
  int64_t getWidth() const;
  /// Bytes of an element of a table; both have one type.
  int64_t getTableElementBytes() const;
  /// Columns of a table that a thread loads at once.
  int64_t getTableVectorSize() const;
};

/// Rotates rows, in f32 arithmetic with one rounding. A row is cut into units:
/// what one thread takes at a time, a vector of neighbouring pairs. The pairs
/// (d, d + R/2) of `half` lie in two such vectors of features, those of
/// `interleaved` in one.
class RowRotation {
public:
  RowRotation(RotationOperands operands, Type elementType, KernelAbi &abi)
      : operands(operands), elementType(elementType), abi(abi) {}

  /// Cosines and sines of a unit, f32.
  struct Tables {
    Values cos, sin;
  };
  /// The vectors of features of a unit, as they are in memory.
  using Features = Values;
  /// Pointer to features of a row from a feature on, i32.
  using GetAddress = function_ref<Value(Value feature)>;

  int64_t getUnitsPerRow() const;

  /// The row of the tables, i64, for a sequence index, of `numRows` in the
  /// sequence of batch entry `batch`.
  Value getTableRow(KernelBuilder &b, Value row, Value numRows,
                    Value batch) const;
  /// `size` neighbouring entries of a table, f32.
  Values loadTable(KernelBuilder &b, Value table, Value row, Value column,
                   int64_t size) const;

  /// Pointer to an element of a table.
  Value getTablePtr(KernelBuilder &b, Value table, Value row,
                    Value column) const;
  /// Calls `body` for each table with the range of global memory in which the
  /// rows lie that `count` neighbouring sequence indices need, `firstRow` among
  /// the `numRows` of the sequence: address, i64, and size, i32, multiples of
  /// 16 bytes. Emits nothing where an operand gives the positions; at run time,
  /// leaves out tables whose rows are far apart.
  void forEachTableRange(KernelBuilder &b, Value firstRow, int64_t count,
                         Value numRows, Value batch,
                         function_ref<void(Value, Value)> body) const;

  /// Of unit `unit` of the row, by the tables' row.
  Tables loadTables(KernelBuilder &b, Value unit, Value tableRow) const;
  Features loadFeatures(KernelBuilder &b, Value unit,
                        GetAddress getAddress) const;
  /// Rotates the unit and stores it.
  void store(KernelBuilder &b, Value unit, const Features &features,
             const Tables &tables, GetAddress getAddress) const;

private:
  SmallVector<Value> getFeatureStarts(KernelBuilder &b, Value unit) const;
  Type getVectorType() const;

  RotationOperands operands;
  Type elementType;
  KernelAbi &abi;
};

/// Rotates a tile in shared memory, in place.
class TileRotation {
public:
  /// Threads 0 to `threads` - 1 take part, each with `unitsAtOnce` units in
  /// registers: some 24 registers each.
  TileRotation(RotationOperands operands, Type elementType, KernelAbi &abi,
               int64_t threads, int64_t unitsAtOnce)
      : rows(operands, elementType, abi), threads(threads),
        unitsAtOnce(unitsAtOnce) {}

  /// Rotates `numTileRows` rows of a tile from `tile` on, which hold sequence
  /// indices `firstRow` on, of `numRows` in the sequence of batch entry
  /// `batch`, and, after every `period` rows, the same again of another head.
  /// Rows past the end are rotated by some position, which is
  /// harmless. `awaitTile` waits until the tile has arrived: the tables are
  /// loaded before it where they can be, and it may be called several times,
  /// but at least once by every thread, so that none runs ahead of the tiles.
  /// The caller synchronises after all. `tile` is a multiple of 8 rows into the
  /// layout.
  void emit(KernelBuilder &b, const SharedLayout &layout, Value tile,
            int64_t numTileRows, int64_t period, Value firstRow, Value numRows,
            Value batch, Value thread,
            function_ref<void()> awaitTile = nullptr) const;

private:
  RowRotation rows;
  int64_t threads, unitsAtOnce;
};

/// What both tables have for `rows` positions, in shared memory: rows of
/// `pitch` bytes from `base` on, those of cos before those of sin.
struct StagedTables {
  Value base;
  int64_t pitch, rows;
};

/// Rotates rows that a warp has in registers, as the A operand of a product:
/// 16 rows, by 16 columns four registers of two elements (PTX ISA,
/// mma.m16n8k16). Lane l has columns 2 (l mod 4) and the next, of every 8, of
/// rows l / 4 and l / 4 + 8. For rotations of which arePairsInLanes holds.
class FragmentRotation {
public:
  FragmentRotation(RotationOperands operands, Type elementType, KernelAbi &abi)
      : rows(operands, elementType, abi), operands(operands),
        elementType(elementType) {}

  /// Emits a copy of 8 or 16 bytes, at a multiple of them, from global to
  /// shared memory.
  using Copy = function_ref<void(Value to, Value from, int64_t bytes)>;

  /// Copies the tables' rows for sequence indices `firstRow` on, of `numRows`
  /// in the sequence of batch entry `batch`. `thread` is one of `threads`,
  /// which share the work, by calls of `copy`; the caller synchronises.
  void stageTables(KernelBuilder &b, const StagedTables &staged, Value firstRow,
                   Value numRows, Value batch, Value thread, int64_t threads,
                   Copy copy) const;
  /// What `lane` needs for its rows, the staged ones `row` and `row` + 8:
  /// vectors as they are in memory.
  Values loadTables(KernelBuilder &b, const StagedTables &staged, Value row,
                    Value lane) const;
  /// Groups of 8 columns that tables are loaded for.
  int64_t getNumGroups() const;
  /// Rotates group `group` of `fragments`, and that with its partners, in
  /// place, by what loadTables gave.
  void rotate(KernelBuilder &b, MutableArrayRef<Value> fragments,
              ArrayRef<Value> tables, int64_t group) const;

private:
  RowRotation rows;
  RotationOperands operands;
  Type elementType;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_ROTATION_H
