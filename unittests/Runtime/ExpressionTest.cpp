//===- ExpressionTest.cpp - Evaluating integer expressions ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/Expression.h"
#include <gtest/gtest.h>
#include <limits>

using namespace attnfuse;

namespace {
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

Expression integer(int64_t value) {
  Expression expression;
  expression.integer = value;
  return expression;
}

Expression name(const char *text) {
  Expression expression;
  expression.kind = Expression::Kind::Name;
  expression.name = text;
  return expression;
}

Expression apply(const char *op, std::vector<Expression> operands) {
  Expression expression;
  expression.kind = Expression::Kind::Operation;
  expression.op = *parseOperator(op);
  expression.operands = std::move(operands);
  return expression;
}

int64_t value(const char *op, int64_t lhs, int64_t rhs) {
  Result<int64_t> result =
      evaluate(apply(op, {integer(lhs), integer(rhs)}), {});
  EXPECT_TRUE(bool(result)) << result.error().message;
  return result ? *result : kMin;
}

std::string error(const Expression &expression) {
  Result<int64_t> result = evaluate(expression, {{"N", 7}});
  return result ? "no error" : result.error().message;
}
} // namespace

TEST(Expression, Operators) {
  EXPECT_EQ(value("add", 3, -5), -2);
  EXPECT_EQ(value("sub", 3, 5), -2);
  EXPECT_EQ(value("mul", -3, 5), -15);
  EXPECT_EQ(value("max", -3, 5), 5);
  EXPECT_EQ(value("min", -3, 5), -3);
  EXPECT_EQ(value("le", 5, 5), 1);
  EXPECT_EQ(value("le", 6, 5), 0);
  EXPECT_EQ(value("eq", 5, 5), 1);
  EXPECT_EQ(value("eq", -5, 5), 0);
}

TEST(Expression, DivisionRoundsUpAndModIsNotNegative) {
  EXPECT_EQ(value("ceildiv", 0, 4), 0);
  EXPECT_EQ(value("ceildiv", 1, 4), 1);
  EXPECT_EQ(value("ceildiv", 8, 4), 2);
  EXPECT_EQ(value("ceildiv", -7, 4), -1);
  EXPECT_EQ(value("ceildiv", kMax, kMax - 1), 2);
  EXPECT_EQ(value("mod", 7, 4), 3);
  EXPECT_EQ(value("mod", -7, 4), 1);
  EXPECT_EQ(value("mod", -8, 4), 0);
}

TEST(Expression, NamesAndNesting) {
  Expression nested = apply("mul", {apply("ceildiv", {name("N"), integer(4)}),
                                    name("B"), integer(10)});
  Result<int64_t> result = evaluate(nested, {{"N", 9}, {"B", 5}});
  ASSERT_TRUE(bool(result));
  EXPECT_EQ(*result, 150);
}

TEST(Expression, Errors) {
  EXPECT_EQ(error(apply("add", {name("M"), integer(1)})), "'M' has no value");
  EXPECT_EQ(error(apply("ceildiv", {name("N"), integer(0)})),
            "expected a positive divisor in 'ceildiv', got 0");
  EXPECT_EQ(error(apply("mod", {name("N"), integer(-2)})),
            "expected a positive divisor in 'mod', got -2");
}

TEST(Expression, OverflowIsAnError) {
  EXPECT_EQ(error(apply("add", {integer(kMax), integer(1)})),
            "'add' of the sizes does not fit 64 bits");
  EXPECT_EQ(error(apply("sub", {integer(kMin), integer(1)})),
            "'sub' of the sizes does not fit 64 bits");
  EXPECT_EQ(error(apply("mul", {integer(kMax), name("N")})),
            "'mul' of the sizes does not fit 64 bits");
  EXPECT_EQ(value("add", kMax, 0), kMax);
}

TEST(Expression, OperandCounts) {
  EXPECT_FALSE(takesOperands(Expression::Operator::Add, 1));
  EXPECT_TRUE(takesOperands(Expression::Operator::Mul, 3));
  EXPECT_FALSE(takesOperands(Expression::Operator::Sub, 3));
  EXPECT_TRUE(takesOperands(Expression::Operator::Le, 2));
  EXPECT_FALSE(bool(parseOperator("pow")));
}
