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

  /// `operation`, a literal, is one of two operands that manifests know. Where
  /// many are taken the least or the greatest of, the lists do not nest.
  static SizeExpression apply(llvm::StringRef operation, SizeExpression a,
                              SizeExpression b);

  friend SizeExpression operator+(SizeExpression a, SizeExpression b);
  friend SizeExpression operator-(SizeExpression a, SizeExpression b);
  friend SizeExpression operator*(SizeExpression a, SizeExpression b);
  friend SizeExpression ceilDiv(SizeExpression a, SizeExpression b);
  /// The remainder that is not negative.
  friend SizeExpression mod(SizeExpression a, SizeExpression b);
  friend SizeExpression min(SizeExpression a, SizeExpression b);
  friend SizeExpression max(SizeExpression a, SizeExpression b);
  /// 1 or 0.
  friend SizeExpression isAtMost(SizeExpression a, SizeExpression b);
  friend SizeExpression isEqual(SizeExpression a, SizeExpression b);

private:
  llvm::json::Value value;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_SIZEEXPRESSION_H
