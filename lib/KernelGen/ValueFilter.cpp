//===- ValueFilter.cpp - Infinite and NaN elements of V -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ValueFilter.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

Value mlir::attnfuse::kernelgen::filterValues(KernelBuilder &b, Value pair,
                                              Type type, Value keepsFinite) {
  // An exponent of all ones is infinity or NaN.
  int64_t exponent = type.isBF16() ? 0x7f80 : 0x7c00;
  int64_t one = type.isBF16() ? 0x3f80 : 0x3c00;
  Value result = b.i32(0);
  for (int64_t shift : {0, 16}) {
    Value element = b.andI(pair, int32_t(0xffffu << shift));
    Value bits = b.i32(int32_t(exponent << shift));
    Value isFinite = b.notI(b.eq(b.andI(element, bits), bits));
    Value kept = b.select(isFinite, element, b.i32(0));
    Value marked = b.select(isFinite, b.i32(0), b.i32(int32_t(one << shift)));
    result = b.orI(result, b.select(keepsFinite, kept, marked));
  }
  return result;
}
