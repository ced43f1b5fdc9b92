//===- SizeExpression.cpp - Arithmetic on sizes of a launch ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/SizeExpression.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir::attnfuse;

/// `fold` computes the number; it returns true where it does not fit.
static SizeExpression
apply(llvm::StringRef operation, const SizeExpression &a,
      const SizeExpression &b,
      llvm::function_ref<bool(int64_t, int64_t, int64_t &)> fold) {
  int64_t result;
  if (a.getInteger() && b.getInteger() &&
      !fold(*a.getInteger(), *b.getInteger(), result))
    return result;
  return llvm::json::Value(
      llvm::json::Array{operation, a.getJson(), b.getJson()});
}

namespace mlir::attnfuse {

SizeExpression operator+(const SizeExpression &a, const SizeExpression &b) {
  return apply("add", a, b, llvm::AddOverflow<int64_t>);
}
SizeExpression operator-(const SizeExpression &a, const SizeExpression &b) {
  return apply("sub", a, b, llvm::SubOverflow<int64_t>);
}
SizeExpression operator*(const SizeExpression &a, const SizeExpression &b) {
  return apply("mul", a, b, llvm::MulOverflow<int64_t>);
}
SizeExpression ceilDiv(const SizeExpression &a, const SizeExpression &b) {
  return apply("ceildiv", a, b, [](int64_t a, int64_t b, int64_t &result) {
    if (b < 1)
      return true;
    result = llvm::divideCeilSigned(a, b);
    return false;
  });
}
SizeExpression min(const SizeExpression &a, const SizeExpression &b) {
  return apply("min", a, b, [](int64_t a, int64_t b, int64_t &result) {
    result = std::min(a, b);
    return false;
  });
}
SizeExpression max(const SizeExpression &a, const SizeExpression &b) {
  return apply("max", a, b, [](int64_t a, int64_t b, int64_t &result) {
    result = std::max(a, b);
    return false;
  });
}
SizeExpression isAtMost(const SizeExpression &a, const SizeExpression &b) {
  return apply("le", a, b, [](int64_t a, int64_t b, int64_t &result) {
    result = a <= b;
    return false;
  });
}

} // namespace mlir::attnfuse
