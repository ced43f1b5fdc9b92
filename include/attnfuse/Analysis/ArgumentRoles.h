//===- ArgumentRoles.h - What a function's arguments are --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names and roles of the arguments and results of a function of attnfuse
// ops. Tools, the manifest and error messages all use these names, which are
// the same before and after fusion.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_ARGUMENTROLES_H
#define ATTNFUSE_ANALYSIS_ARGUMENTROLES_H

#include "attnfuse/Dialect/AttnFuse/IR/AttributeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace mlir::attnfuse {

enum class RoleKind {
  Query,
  Key,
  Value,
  /// The operand of a rope whose result is neither q nor k of a product.
  Input,
  Cos,
  Sin,
  Offset,
  Positions,
  Slopes,
  Bias,
  RowOffsets,
  ColIndices,
  /// A score operand of attnfuse.attention that is neither slopes nor bias.
  ScoreOperand,
  /// Scores, or probabilities, that the function is given.
  Scores,
  Output,
  LogSumExp,
  Other
};

struct ArgumentRole {
  RoleKind kind = RoleKind::Other;
  /// Whose rotation it belongs to (Cos, Sin, Offset, Positions): both, if q
  /// and k share it.
  bool ofQuery = false, ofKey = false;
  /// Unique among the arguments (or the results) of the function.
  std::string name;

  /// "query", "key", "q_cos", "cos" (shared by q and k), "bias", ...
  std::string getRoleString() const;
};

/// One entry per argument, in order. Where an argument has several roles, the
/// first use in the function decides.
std::vector<ArgumentRole> getArgumentRoles(func::FuncOp function);

/// One entry per result, in order: "output" and "lse" for those of an
/// attention, "result" for any other tensor.
std::vector<ArgumentRole> getResultRoles(func::FuncOp function);

/// The value that `value` is a tensor.cast of, or `value`.
Value skipCasts(Value value);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_ARGUMENTROLES_H
