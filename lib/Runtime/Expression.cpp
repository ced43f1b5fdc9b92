//===- Expression.cpp - Integer expressions of the manifest ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/Expression.h"
#include <algorithm>
#include <iterator>

using namespace attnfuse;

namespace {
// In the order of Expression::Operator.
constexpr std::string_view kOperatorNames[] = {
    "add", "sub", "mul", "ceildiv", "mod", "max", "min", "le", "eq"};

Error makeOverflow(Expression::Operator op) {
  return {"'" + std::string(getOperatorName(op)) +
          "' of the sizes does not fit 64 bits"};
}

Result<int64_t> apply(Expression::Operator op, int64_t lhs, int64_t rhs) {
  using Operator = Expression::Operator;
  int64_t value = 0;
  switch (op) {
  case Operator::Add:
    if (__builtin_add_overflow(lhs, rhs, &value))
      return makeOverflow(op);
    return value;
  case Operator::Sub:
    if (__builtin_sub_overflow(lhs, rhs, &value))
      return makeOverflow(op);
    return value;
  case Operator::Mul:
    if (__builtin_mul_overflow(lhs, rhs, &value))
      return makeOverflow(op);
    return value;
  case Operator::CeilDiv:
  case Operator::Mod: {
    if (rhs < 1)
      return Error{"expected a positive divisor in '" +
                   std::string(getOperatorName(op)) + "', got " +
                   std::to_string(rhs)};
    int64_t remainder = lhs % rhs;
    if (op == Operator::CeilDiv)
      return lhs / rhs + (remainder > 0 ? 1 : 0);
    return remainder < 0 ? remainder + rhs : remainder;
  }
  case Operator::Max:
    return std::max(lhs, rhs);
  case Operator::Min:
    return std::min(lhs, rhs);
  case Operator::Le:
    return int64_t(lhs <= rhs);
  case Operator::Eq:
    return int64_t(lhs == rhs);
  }
  return Error{"unknown operator"};
}
} // namespace

const int64_t *Environment::find(std::string_view name) const {
  for (const Entry &entry : entries)
    if (entry.first == name)
      return &entry.second;
  return nullptr;
}

int64_t Environment::bind(std::string_view name, int64_t value) {
  if (const int64_t *bound = find(name))
    return *bound;
  entries.push_back({name, value});
  return value;
}

void Environment::set(std::string_view name, int64_t value) {
  for (Entry &entry : entries)
    if (entry.first == name) {
      entry.second = value;
      return;
    }
  entries.push_back({name, value});
}

bool Environment::operator==(const Environment &other) const {
  return std::is_permutation(entries.begin(), entries.end(),
                             other.entries.begin(), other.entries.end());
}

std::string_view attnfuse::getOperatorName(Expression::Operator op) {
  return kOperatorNames[size_t(op)];
}

Result<Expression::Operator> attnfuse::parseOperator(std::string_view name) {
  const auto *found =
      std::find(std::begin(kOperatorNames), std::end(kOperatorNames), name);
  if (found == std::end(kOperatorNames))
    return Error{"unknown operator '" + std::string(name) + "'"};
  return Expression::Operator(found - std::begin(kOperatorNames));
}

bool attnfuse::takesOperands(Expression::Operator op, size_t count) {
  using Operator = Expression::Operator;
  bool variadic = op == Operator::Add || op == Operator::Mul ||
                  op == Operator::Max || op == Operator::Min;
  return variadic ? count >= 2 : count == 2;
}

Result<int64_t> attnfuse::evaluate(const Expression &expression,
                                   const Environment &environment) {
  switch (expression.kind) {
  case Expression::Kind::Integer:
    return expression.integer;
  case Expression::Kind::Name: {
    const int64_t *value = environment.find(expression.name);
    if (!value)
      return Error{"'" + expression.name + "' has no value"};
    return *value;
  }
  case Expression::Kind::Operation:
    break;
  }
  Result<int64_t> value = evaluate(expression.operands[0], environment);
  for (size_t i = 1; value && i < expression.operands.size(); ++i) {
    Result<int64_t> rhs = evaluate(expression.operands[i], environment);
    if (!rhs)
      return rhs;
    value = apply(expression.op, *value, *rhs);
  }
  return value;
}
