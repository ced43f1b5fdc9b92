//===- OutputRows.cpp - A thread's rows of the results --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/OutputRows.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

void OutputRows::forEachPair(KernelBuilder &b,
                             function_ref<void(int64_t, Value)> body) const {
  ResultRows rows = problem.getOutputRows(b, query);
  int64_t bytes = problem.getOutputType().getIntOrFloatBitWidth() / 8;
  int64_t columns = problem.getOp().getValueHeadDim();
  for (int64_t r = 0; r < shape.getNumRows(); ++r) {
    SmallVector<int64_t> indices = shape.getRowIndices(r);
    b.ifThen(b.lt(getRow(b, r), problem.nq), [&] {
      Value first =
          b.add(b.mul(b.toI64(getRow(b, r)), rows.stride),
                b.toI64(firstColumn ? b.add(column, firstColumn) : column));
      // Head sizes are multiples of 8 columns: a column tile is in or out.
      for (size_t n = 0; n < indices.size(); n += 2) {
        int64_t offset = AccumulatorTile::getColumnOffset(n);
        auto emit = [&] {
          body(indices[n],
               b.offsetPtr(rows.base, b.mul(b.add(first, offset), bytes)));
        };
        if (firstColumn)
          b.ifThen(b.lt(b.add(firstColumn, offset), columns), emit);
        else if (offset < columns)
          emit();
      }
    });
  }
}

void OutputRows::store(KernelBuilder &b, ArrayRef<Value> output) const {
  Type type = problem.getOutputType();
  int64_t bytes = 2 * type.getIntOrFloatBitWidth() / 8;
  forEachPair(b, [&](int64_t index, Value address) {
    Value pair = type.isF32() ? b.makeVector({output[index], output[index + 1]})
                              : b.pack(output[index], output[index + 1], type);
    b.store(pair, address, bytes);
  });
}

void OutputRows::replaceNonFinite(KernelBuilder &b,
                                  ArrayRef<Value> output) const {
  forEachPair(b, [&](int64_t index, Value address) {
    for (int64_t of : {0, 1}) {
      Value here = b.offsetPtr(address, of * 4);
      // 0 times a finite number is 0.
      Value stored = b.load(b.getF32Type(), here, 4);
      b.ifThen(b.notI(b.eqF(b.mulF(stored, b.f32(0)), b.f32(0))),
               [&] { b.store(output[index + of], here, 4); });
    }
  });
}

void OutputRows::storeNaN(KernelBuilder &b, ArrayRef<Value> marks) const {
  Type type = problem.getOutputType();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  Value nan = b.fromF32(b.f32(std::numeric_limits<double>::quiet_NaN()), type);
  forEachPair(b, [&](int64_t index, Value address) {
    for (int64_t of : {0, 1})
      b.ifThen(b.notI(b.eqF(marks[index + of], b.f32(0))),
               [&] { b.store(nan, b.offsetPtr(address, of * bytes), bytes); });
  });
}

void OutputRows::forEachState(KernelBuilder &b,
                              function_ref<void(int64_t, Value)> body) const {
  Value lse = problem.getOp().getLse();
  if (!problem.splitsKeys() && !problem.getAbi().has(lse))
    return;
  ResultRows place =
      problem.splitsKeys()
          ? problem.getPartialStates(b, query)
          : ResultRows{problem.getHeadBase(b, lse, query.batch, query.head),
                       problem.getAbi().getStride(b, lse, 2)};
  for (int64_t r = 0; r < shape.getNumRows(); ++r) {
    Value here = getRow(b, r);
    // All four lanes of a row have its value.
    b.ifThen(b.andI(b.lt(here, problem.nq), b.eq(column, 0)), [&] {
      body(r, b.offsetPtr(place.base,
                          b.shl(b.mul(b.toI64(here), place.stride), 2)));
    });
  }
}

void OutputRows::storeState(KernelBuilder &b,
                            const OnlineNormalizer &normalizer,
                            const OnlineNormalizer::Row &row,
                            Value address) const {
  if (problem.splitsKeys())
    b.store(b.makeVector({row.reference, row.sum}), address, 8);
  else
    b.store(normalizer.getLogSumExp(b, row), address, 4);
}

void OutputRows::storeStates(KernelBuilder &b,
                             const OnlineNormalizer &normalizer,
                             ArrayRef<OnlineNormalizer::Row> rows) const {
  forEachState(b, [&](int64_t r, Value address) {
    storeState(b, normalizer, rows[r], address);
  });
}

void OutputRows::replaceNaNStates(KernelBuilder &b,
                                  const OnlineNormalizer &normalizer,
                                  ArrayRef<OnlineNormalizer::Row> rows) const {
  forEachState(b, [&](int64_t r, Value address) {
    // A row's sum, and so its log-sum-exp, is a number iff its reference and
    // weights are.
    Value stored = b.load(
        b.getF32Type(), b.offsetPtr(address, problem.splitsKeys() ? 4 : 0), 4);
    b.ifThen(b.notI(b.eqF(stored, stored)),
             [&] { storeState(b, normalizer, rows[r], address); });
  });
}
