//===- SizeExpression.cpp - Arithmetic on sizes of a launch ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/SizeExpression.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir::attnfuse;
namespace json = llvm::json;

namespace {
/// Computes the number; returns false where there is none of 64 bits, which is
/// left for the launch to refuse.
using Fold = bool (*)(int64_t a, int64_t b, int64_t &result);
} // namespace

static Fold getFold(llvm::StringRef operation) {
  return llvm::StringSwitch<Fold>(operation)
      .Case("add",
            [](int64_t a, int64_t b, int64_t &result) {
              return !llvm::AddOverflow(a, b, result);
            })
      .Case("sub",
            [](int64_t a, int64_t b, int64_t &result) {
              return !llvm::SubOverflow(a, b, result);
            })
      .Case("mul",
            [](int64_t a, int64_t b, int64_t &result) {
              return !llvm::MulOverflow(a, b, result);
            })
      .Case("ceildiv",
            [](int64_t a, int64_t b, int64_t &result) {
              if (b >= 1)
                result = llvm::divideCeilSigned(a, b);
              return b >= 1;
            })
      .Case("mod",
            [](int64_t a, int64_t b, int64_t &result) {
              if (b >= 1)
                result = llvm::mod<int64_t>(a, b);
              return b >= 1;
            })
      .Case("min",
            [](int64_t a, int64_t b, int64_t &result) {
              result = std::min(a, b);
              return true;
            })
      .Case("max",
            [](int64_t a, int64_t b, int64_t &result) {
              result = std::max(a, b);
              return true;
            })
      .Case("le",
            [](int64_t a, int64_t b, int64_t &result) {
              result = a <= b;
              return true;
            })
      .Case("eq", [](int64_t a, int64_t b, int64_t &result) {
        result = a == b;
        return true;
      });
}

SizeExpression SizeExpression::apply(llvm::StringRef operation,
                                     SizeExpression a, SizeExpression b) {
  int64_t result;
  if (a.getInteger() && b.getInteger() &&
      getFold(operation)(*a.getInteger(), *b.getInteger(), result))
    return result;
  // A limit of many is one list, for it may be of more than what readers take
  // of lists in lists.
  json::Array *list = a.value.getAsArray();
  if (list && (operation == "min" || operation == "max") &&
      list->front() == json::Value(operation)) {
    list->push_back(std::move(b.value));
    return a;
  }
  return json::Value(
      json::Array{operation, std::move(a.value), std::move(b.value)});
}

namespace mlir::attnfuse {

SizeExpression operator+(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("add", std::move(a), std::move(b));
}
SizeExpression operator-(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("sub", std::move(a), std::move(b));
}
SizeExpression operator*(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("mul", std::move(a), std::move(b));
}
SizeExpression ceilDiv(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("ceildiv", std::move(a), std::move(b));
}
SizeExpression mod(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("mod", std::move(a), std::move(b));
}
SizeExpression min(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("min", std::move(a), std::move(b));
}
SizeExpression max(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("max", std::move(a), std::move(b));
}
SizeExpression isAtMost(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("le", std::move(a), std::move(b));
}
SizeExpression isEqual(SizeExpression a, SizeExpression b) {
  return SizeExpression::apply("eq", std::move(a), std::move(b));
}

} // namespace mlir::attnfuse
