//===- TileCopy.cpp - Rows of a tensor into a shared tile
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm80/TileCopy.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm80;

/// More steps than this become a loop.
static constexpr int64_t kMaxUnrolledSteps = 8;

TileCopy::TileCopy(KernelBuilder &b, const SharedLayout &layout,
                   int64_t columns, int64_t threads, Value thread)
    : layout(layout), columns(columns) {
  int64_t chunksPerRow = llvm::PowerOf2Ceil(layout.getChunks());
  rowsPerStep = threads / chunksPerRow;
  allChunksUsed = chunksPerRow == layout.getChunks();
  firstRow = b.divU(thread, chunksPerRow);
  chunk = b.remU(thread, chunksPerRow);
}

void TileCopy::forEachChunk(KernelBuilder &b,
                            function_ref<void(Value, Value)> body) const {
  int64_t steps = llvm::divideCeil(layout.getRows(), rowsPerStep);
  auto emitStep = [&](Value row, bool mayEnd) {
    Value exists;
    if (mayEnd)
      exists = b.lt(row, layout.getRows());
    if (!allChunksUsed) {
      Value used = b.lt(chunk, layout.getChunks());
      exists = exists ? b.andI(exists, used) : used;
    }
    auto emit = [&] { body(row, layout.getOffset(b, row, chunk)); };
    if (exists)
      b.ifThen(exists, emit);
    else
      emit();
  };
  bool isRagged = steps * rowsPerStep > layout.getRows();
  if (steps <= kMaxUnrolledSteps) {
    for (int64_t step = 0; step < steps; ++step)
      emitStep(b.add(firstRow, step * rowsPerStep),
               isRagged && step == steps - 1);
    return;
  }
  int64_t unrolledRows = kMaxUnrolledSteps * rowsPerStep;
  b.forLoop(b.i32(0), b.i32(layout.getRows()), unrolledRows, [&](Value start) {
    for (int64_t step = 0; step < kMaxUnrolledSteps; ++step)
      emitStep(b.add(b.add(firstRow, start), step * rowsPerStep),
               layout.getRows() % unrolledRows != 0);
  });
}

Value TileCopy::getGlobalAddress(KernelBuilder &b, const Rows &rows,
                                 Value row) const {
  Value element = b.add(b.mul(b.toI64(row), rows.stride),
                        b.toI64(b.mul(chunk, SharedLayout::kChunkElements)));
  return b.offsetPtr(rows.base, b.shl(element, 1));
}

void TileCopy::load(KernelBuilder &b, const Rows &rows, Value tile) const {
  forEachChunk(b, [&](Value row, Value sharedOffset) {
    Value globalRow = b.add(rows.first, row);
    Value valid = b.lt(globalRow, rows.numRows);
    if (columns != layout.getColumns())
      valid =
          b.andI(valid, b.lt(chunk, columns / SharedLayout::kChunkElements));
    // Addresses stay inside the tensor even where nothing is read.
    Value address =
        getGlobalAddress(b, rows, b.min(globalRow, b.sub(rows.numRows, 1)));
    copyAsync(b, b.offsetPtr(tile, sharedOffset), address, valid);
  });
}

void TileCopy::store(KernelBuilder &b, const Rows &rows, Value tile) const {
  Type type = VectorType::get({4}, b.getI32Type());
  forEachChunk(b, [&](Value row, Value sharedOffset) {
    Value globalRow = b.add(rows.first, row);
    Value valid = b.lt(globalRow, rows.numRows);
    if (columns != layout.getColumns())
      valid =
          b.andI(valid, b.lt(chunk, columns / SharedLayout::kChunkElements));
    b.ifThen(valid, [&] {
      Value data = b.load(type, b.offsetPtr(tile, sharedOffset), 16);
      b.store(data, getGlobalAddress(b, rows, globalRow), 16);
    });
  });
}

void TileCopy::transform(KernelBuilder &b, Value tile,
                         function_ref<Value(Value)> transform) const {
  Type type = VectorType::get({4}, b.getI32Type());
  forEachChunk(b, [&](Value, Value sharedOffset) {
    Value address = b.offsetPtr(tile, sharedOffset);
    Value data = b.load(type, address, 16);
    Values words;
    for (int64_t word = 0; word < 4; ++word)
      words.push_back(transform(b.extractElement(data, word)));
    b.store(b.makeVector(words), address, 16);
  });
}
