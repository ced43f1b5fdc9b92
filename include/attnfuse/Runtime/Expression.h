//===- Expression.h - Integer expressions of the manifest -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNTIME_EXPRESSION_H
#define ATTNFUSE_RUNTIME_EXPRESSION_H

#include "attnfuse/Support/Result.h"
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attnfuse {

/// The values of names: dimensions, scalar arguments and what the launch adds.
/// It refers to the names, which must outlive it. There are a dozen: to look
/// through them all takes less time than a map.
class Environment {
public:
  using Entry = std::pair<std::string_view, int64_t>;

  Environment() { entries.reserve(kUsualSize); }
  Environment(std::initializer_list<Entry> entries) : entries(entries) {}

  /// The value of `name`, or null.
  const int64_t *find(std::string_view name) const;
  /// Binds `name`, if it has no value yet; then the value that it has.
  int64_t bind(std::string_view name, int64_t value);
  void set(std::string_view name, int64_t value);

  /// Whether the same names have the same values.
  bool operator==(const Environment &other) const;

private:
  static constexpr size_t kUsualSize = 16;
  /// Each name once.
  std::vector<Entry> entries;
};

/// Names that start with it are the launch's own; no tensor or dimension has
/// one.
constexpr char kReservedPrefix = '$';
/// The number of multiprocessors of the device.
constexpr std::string_view kSmCountName = "$sm_count";
/// Followed by a tensor's name: the address of its first element, in bytes.
constexpr std::string_view kAddressPrefix = "$address.";
/// Followed by a tensor's name, '.' and a dimension: the stride in elements, 0
/// where the dimension has not more than one.
constexpr std::string_view kStridePrefix = "$stride.";

/// An integer, a name, or an operator on operands.
struct Expression {
  enum class Kind { Integer, Name, Operation };
  enum class Operator { Add, Sub, Mul, CeilDiv, Mod, Max, Min, Le, Eq };

  Kind kind = Kind::Integer;
  int64_t integer = 0;
  std::string name;
  Operator op = Operator::Add;
  std::vector<Expression> operands;
};

std::string_view getOperatorName(Expression::Operator op);
Result<Expression::Operator> parseOperator(std::string_view name);
/// Whether `op` takes `count` operands: two, or for add, mul, max and min more.
bool takesOperands(Expression::Operator op, size_t count);

/// The value over 64-bit integers. `ceildiv` rounds up, `mod` is never
/// negative, `le` and `eq` give 1 or 0. Errors: an unbound name, a result that
/// does not fit, a divisor below 1.
Result<int64_t> evaluate(const Expression &expression,
                         const Environment &environment);

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_EXPRESSION_H
