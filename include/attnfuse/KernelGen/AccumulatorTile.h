//===- AccumulatorTile.h - A thread's part of a product ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The accumulators of a warp's product are tiles of 16 rows and 8 columns,
// four elements of each in every lane: element e of lane l is at
//
//     row l / 4 + 8 (e / 2),  column 2 (l mod 4) + e mod 2
//
// (PTX ISA, mma.m16n8k16 and wgmma.m64nNk16, of which a warp has 16 rows). Four
// lanes, a quad, share a row. A thread keeps its elements in a flat list, by
// [row tile][column tile][element].
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_ACCUMULATORTILE_H
#define ATTNFUSE_KERNELGEN_ACCUMULATORTILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir::attnfuse::kernelgen {

struct AccumulatorTile {
  static constexpr int64_t kRows = 16, kColumns = 8, kElements = 4;

  int64_t rowTiles;
  int64_t columnTiles;

  int64_t getSize() const { return rowTiles * columnTiles * kElements; }
  int64_t getIndex(int64_t rowTile, int64_t columnTile, int64_t element) const {
    return (rowTile * columnTiles + columnTile) * kElements + element;
  }

  /// Rows that a thread has elements of; row r is half r mod 2 of row tile
  /// r / 2.
  int64_t getNumRows() const { return 2 * rowTiles; }
  /// Distance of the thread's row r from its row 0.
  static constexpr int64_t getRowOffset(int64_t row) {
    return row / 2 * kRows + row % 2 * 8;
  }
  /// The indices of a row's elements, by column.
  SmallVector<int64_t> getRowIndices(int64_t row) const {
    SmallVector<int64_t> indices;
    for (int64_t columnTile = 0; columnTile < columnTiles; ++columnTile)
      for (int64_t of : {0, 1})
        indices.push_back(getIndex(row / 2, columnTile, 2 * (row % 2) + of));
    return indices;
  }
  /// Distance of the n-th column of a row's elements from its first.
  static constexpr int64_t getColumnOffset(int64_t n) {
    return n / 2 * kColumns + n % 2;
  }
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_ACCUMULATORTILE_H
