//===- SharedLayout.h - Swizzled tiles in shared memory ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of 16-bit elements, `rows` x `columns`, is stored as panels of 64
// columns (128 bytes a row), then at most one of 32 and one of 16. In a panel
// of `chunks` 16-byte chunks a row, chunk c of row r lies at chunk
//
//     c ^ ((r / (8 / chunks)) mod chunks)
//
// which are the 128-, 64- and 32-byte swizzles of the tensor memory
// accelerator. The pattern repeats every 8 rows, and the 8 rows of one matrix
// of ldmatrix, at one chunk, fall in 8 different 16-byte bank groups.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SHAREDLAYOUT_H
#define ATTNFUSE_KERNELGEN_SHAREDLAYOUT_H

#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen {

class SharedLayout {
public:
  /// Elements of 2 bytes in a 16-byte chunk.
  static constexpr int64_t kChunkElements = 8;

  struct Panel {
    int64_t firstChunk;
    int64_t chunks;
    int64_t byteOffset;
    int64_t getPitch() const { return chunks * 16; }
  };

  /// `columns` is a multiple of 16.
  SharedLayout(int64_t rows, int64_t columns);

  int64_t getRows() const { return rows; }
  int64_t getColumns() const { return columns; }
  int64_t getChunks() const { return columns / kChunkElements; }
  int64_t getBytes() const { return rows * columns * 2; }
  ArrayRef<Panel> getPanels() const { return panels; }
  const Panel &getPanel(int64_t chunk) const;

  /// Byte offset of a chunk.
  int64_t getOffset(int64_t row, int64_t chunk) const;
  /// Of row `row` + `rowOffset`; a multiple of 8 is added as a constant.
  Value getOffset(KernelBuilder &b, Value row, Value chunk,
                  int64_t rowOffset = 0) const;

private:
  int64_t rows, columns;
  SmallVector<Panel> panels;
};

/// Addresses of one lane's rows for ldmatrix: the lane's row and the low bit of
/// its chunk are run-time values, the rest of the chunk and multiples of 8 rows
/// are constants, which become immediate offsets and one XOR.
class LaneAddress {
public:
  LaneAddress(KernelBuilder &b, const SharedLayout &layout, Value tile,
              Value row, Value chunkLowBit);
  /// Pointer to chunk `evenChunk` + low bit of row `row + rowOffset`;
  /// `rowOffset` is a multiple of 8.
  Value get(KernelBuilder &b, int64_t rowOffset, int64_t evenChunk) const;

private:
  const SharedLayout &layout;
  Value tile;
  /// By panel, the lane's offset at chunk 0 of the panel's pattern.
  SmallVector<Value> laneOffsets;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_SHAREDLAYOUT_H
