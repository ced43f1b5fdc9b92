//===- SizeExpression.h - Arithmetic on sizes of a launch -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_SIZEEXPRESSION_H
#define ATTNFUSE_ANALYSIS_SIZEEXPRESSION_H

#include "llvm/Support/JSON.h"
#include <optional>

namespace mlir::attnfuse {

/// A number that is known now or at a launch: an expression of the manifest
/// (docs/manifest.md). What is known now is computed now.
class SizeExpression {
public:
  /*implicit*/ SizeExpression(int64_t value) : value(value) {}
  /*implicit*/ SizeExpression(llvm::json::Value value)
      : value(std::move(value)) {}

  /// The number, if it is known now.
  std::optional<int64_t> getInteger() const { return value.getAsInteger(); }
  const llvm::json::Value &getJson() const { return value; }

  friend SizeExpression operator+(const SizeExpression &a,
                                  const SizeExpression &b);
  friend SizeExpression operator-(const SizeExpression &a,
                                  const SizeExpression &b);
  friend SizeExpression operator*(const SizeExpression &a,
                                  const SizeExpression &b);
  friend SizeExpression ceilDiv(const SizeExpression &a,
                                const SizeExpression &b);
  friend SizeExpression min(const SizeExpression &a, const SizeExpression &b);
  friend SizeExpression max(const SizeExpression &a, const SizeExpression &b);
  /// 1 or 0.
  friend SizeExpression isAtMost(const SizeExpression &a,
                                 const SizeExpression &b);

private:
  llvm::json::Value value;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_SIZEEXPRESSION_H
