//===- TileCopy.h - Rows of a tensor into a shared tile ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM80_TILECOPY_H
#define ATTNFUSE_KERNELGEN_SM80_TILECOPY_H

#include "attnfuse/KernelGen/KernelBuilder.h"
#include "attnfuse/KernelGen/SharedLayout.h"

namespace mlir::attnfuse::kernelgen::sm80 {

/// How the threads of a block share the 16-byte chunks of a tile: neighbouring
/// threads take neighbouring chunks of a row, whose number is rounded up to a
/// power of two so that a thread keeps its chunk from one of its rows to the
/// next.
class TileCopy {
public:
  /// `columns` <= layout.getColumns() exist in memory; the tile's others are
  /// zero.
  TileCopy(KernelBuilder &b, const SharedLayout &layout, int64_t columns,
           int64_t threads, Value thread);

  /// Rows of a matrix in global memory: row r starts at `base` + 2 r `stride`
  /// bytes.
  struct Rows {
    Value base, stride; ///< pointer, i64 elements
    Value first,
        numRows; ///< i32: the tile's first row, and the end of the matrix
  };

  /// Issues asynchronous copies of the tile's rows; rows past the end become
  /// zero.
  void load(KernelBuilder &b, const Rows &rows, Value tile) const;
  /// Copies the tile's rows to memory, without those past the end.
  void store(KernelBuilder &b, const Rows &rows, Value tile) const;
  /// Replaces every 16-byte chunk of the tile by `transform` of its four i32.
  void transform(KernelBuilder &b, Value tile,
                 function_ref<Value(Value)> transform) const;

private:
  /// A chunk of this thread, in row `start` + `distance` of the tile. Those of
  /// a run have the same `start` and follow each other by `rowsPerStep` rows.
  struct Chunk {
    Value start;
    int64_t distance;
    Value sharedOffset;
    Value exists; ///< Null where it always does.

    Value getRow(KernelBuilder &b) const { return b.add(start, distance); }
  };
  void forEachChunk(KernelBuilder &b,
                    function_ref<void(const Chunk &)> body) const;
  /// Whether memory has the chunk `distance` rows behind that with `rowsLeft`
  /// rows of the matrix left.
  Value isValid(KernelBuilder &b, Value rowsLeft, int64_t distance) const;
  Value getGlobalAddress(KernelBuilder &b, const Rows &rows, Value row) const;

  const SharedLayout &layout;
  int64_t columns, rowsPerStep;
  bool allChunksUsed;
  Value firstRow, chunk;
};

} // namespace mlir::attnfuse::kernelgen::sm80

#endif // ATTNFUSE_KERNELGEN_SM80_TILECOPY_H
