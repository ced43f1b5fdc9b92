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
                            function_ref<void(const Chunk &)> body) const {
  int64_t rows = layout.getRows();
  int64_t steps = llvm::divideCeil(rows, rowsPerStep);
  // The steps from `firstEnding` on may be past the last row.
  auto emitRun = [&](Value start, int64_t count, int64_t firstEnding) {
    for (int64_t step = 0; step < count; ++step) {
      Chunk at{start, step * rowsPerStep, {}, {}};
      at.sharedOffset = layout.getOffset(b, start, chunk, at.distance);
      if (step >= firstEnding)
        at.exists = b.lt(at.getRow(b), rows);
      body(at);
    }
  };
  auto emit = [&] {
    if (steps <= kMaxUnrolledSteps)
      return emitRun(firstRow, steps, rows / rowsPerStep);
    int64_t unrolledRows = kMaxUnrolledSteps * rowsPerStep;
    b.forLoop(b.i32(0), b.i32(rows), unrolledRows, [&](Value start) {
      emitRun(b.add(firstRow, start), kMaxUnrolledSteps,
              rows % unrolledRows == 0 ? kMaxUnrolledSteps : 0);
    });
  };
  if (allChunksUsed)
    emit();
  else
    b.ifThen(b.lt(chunk, layout.getChunks()), emit);
}

/// Emits `body`, under the condition if there is one.
static void emitIf(KernelBuilder &b, Value condition,
                   function_ref<void()> body) {
  if (condition)
    b.ifThen(condition, body);
  else
    body();
}

Value TileCopy::getGlobalAddress(KernelBuilder &b, const Rows &rows,
                                 Value row) const {
  Value element = b.add(b.mul(b.toI64(row), rows.stride),
                        b.toI64(b.mul(chunk, SharedLayout::kChunkElements)));
  return b.offsetPtr(rows.base, b.shl(element, 1));
}

Value TileCopy::isValid(KernelBuilder &b, Value rowsLeft,
                        int64_t distance) const {
  Value valid = b.lt(b.i32(distance), rowsLeft);
  if (columns != layout.getColumns())
    valid = b.andI(valid, b.lt(chunk, columns / SharedLayout::kChunkElements));
  return valid;
}

void TileCopy::load(KernelBuilder &b, const Rows &rows, Value tile) const {
  // One product for a run. Where nothing is read, an address may lie outside
  // the tensor.
  Value stepBytes = b.mul(rows.stride, 2 * rowsPerStep);
  Value address, rowsLeft;
  forEachChunk(b, [&](const Chunk &at) {
    if (at.distance == 0) {
      Value globalRow = b.add(rows.first, at.start);
      address = getGlobalAddress(b, rows, globalRow);
      rowsLeft = b.sub(rows.numRows, globalRow);
    } else {
      address = b.offsetPtr(address, stepBytes);
    }
    Value valid = isValid(b, rowsLeft, at.distance);
    emitIf(b, at.exists, [&] {
      copyAsync(b, b.offsetPtr(tile, at.sharedOffset), address, valid);
    });
  });
}

void TileCopy::store(KernelBuilder &b, const Rows &rows, Value tile) const {
  Type type = VectorType::get({4}, b.getI32Type());
  forEachChunk(b, [&](const Chunk &at) {
    Value globalRow = b.add(rows.first, at.getRow(b));
    Value valid = isValid(b, b.sub(rows.numRows, globalRow), 0);
    if (at.exists)
      valid = b.andI(valid, at.exists);
    b.ifThen(valid, [&] {
      Value data = b.load(type, b.offsetPtr(tile, at.sharedOffset), 16);
      b.store(data, getGlobalAddress(b, rows, globalRow), 16);
    });
  });
}

void TileCopy::transform(KernelBuilder &b, Value tile,
                         function_ref<Value(Value)> transform) const {
  Type type = VectorType::get({4}, b.getI32Type());
  forEachChunk(b, [&](const Chunk &at) {
    emitIf(b, at.exists, [&] {
      Value address = b.offsetPtr(tile, at.sharedOffset);
      Value data = b.load(type, address, 16);
      Values words;
      for (int64_t word = 0; word < 4; ++word)
        words.push_back(transform(b.extractElement(data, word)));
      b.store(b.makeVector(words), address, 16);
    });
  });
}
