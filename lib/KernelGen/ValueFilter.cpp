//===- ValueFilter.cpp - Infinite and NaN elements of V -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ValueFilter.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

/// Calls `body` for the two elements of a pair, with the bits of the element's
/// half and whether the element is finite; combines the results.
static Value forBothHalves(
    KernelBuilder &b, Value pair, Type type,
    function_ref<Value(int64_t shift, Value bits, Value isFinite)> body) {
  // An exponent of all ones is infinity or NaN.
  int64_t exponent = type.isBF16() ? 0x7f80 : 0x7c00;
  Value result;
  for (int64_t shift : {0, 16}) {
    Value bits = b.i32(int32_t(exponent << shift));
    Value isFinite = b.notI(b.eq(b.andI(pair, bits), bits));
    Value half = body(shift, b.i32(int32_t(0xffffu << shift)), isFinite);
    result = result ? b.orI(result, half) : half;
  }
  return result;
}

Value mlir::attnfuse::kernelgen::filterValues(KernelBuilder &b, Value pair,
                                              Type type, Value keepsFinite) {
  int64_t one = type.isBF16() ? 0x3f80 : 0x3c00;
  return forBothHalves(
      b, pair, type, [&](int64_t shift, Value bits, Value isFinite) {
        Value kept = b.select(isFinite, b.andI(pair, bits), b.i32(0));
        Value marked =
            b.select(isFinite, b.i32(0), b.i32(int32_t(one << shift)));
        return b.select(keepsFinite, kept, marked);
      });
}

Value mlir::attnfuse::kernelgen::replaceNonFinite(KernelBuilder &b, Value pair,
                                                  Value other, Type type) {
  return forBothHalves(b, pair, type, [&](int64_t, Value bits, Value isFinite) {
    return b.andI(b.select(isFinite, pair, other), bits);
  });
}
