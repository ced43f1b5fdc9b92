//===- InputsTest.cpp - Arguments, given or made up -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Inputs.h"
#include "../TestModule.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

namespace {
const llvm::StringRef kChain = R"(
  func.func @f(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>,
               %v: tensor<?x?x?x8xf16>, %c: tensor<?x8xf32>,
               %s: tensor<?x8xf32>, %o: i64, %p: tensor<?xi32>,
               %b: tensor<?x?xf32>, %t: tensor<?xf32>, %r: tensor<?x1x?xi32>,
               %i: tensor<?xi32>) -> tensor<?x?x?x8xf16> {
    %qr = attnfuse.rope %q, %c, %s half offset(%o)
        : tensor<?x?x?x16xf16>, tensor<?x8xf32>, tensor<?x8xf32>
    %kr = attnfuse.rope %k, %c, %s half positions(%p : tensor<?xi32>)
        {static_offset = 3 : i64}
        : tensor<?x?x?x16xf16>, tensor<?x8xf32>, tensor<?x8xf32>
    %1 = attnfuse.scaled_dot_product %qr, %kr : tensor<?x?x?x16xf16>,
        tensor<?x?x?x16xf16> -> tensor<?x?x?x?xf32>
    %2 = attnfuse.additive_bias %1, %b : tensor<?x?x?x?xf32>, tensor<?x?xf32>
    %3 = attnfuse.alibi %2 bottom_right slopes(%t : tensor<?xf32>)
        : tensor<?x?x?x?xf32>
    %4 = attnfuse.block_sparse %3, %r, %i
        {query_block = 16 : i64, key_block = 32 : i64}
        : tensor<?x?x?x?xf32>, tensor<?x1x?xi32>, tensor<?xi32>
    %5 = attnfuse.softmax %4 : tensor<?x?x?x?xf32>
    %y = attnfuse.weighted_sum %5, %v : tensor<?x?x?x?xf32>,
        tensor<?x?x?x8xf16> -> tensor<?x?x?x8xf16>
    return %y : tensor<?x?x?x8xf16>
  })";
enum Argument {
  Q,
  K,
  V,
  Cos,
  Sin,
  Offset,
  Positions,
  BiasArg,
  Slopes,
  Rows,
  Columns
};

class InputsTest : public ::testing::Test {
protected:
  InputsTest()
      : module(kChain), classes(llvm::cantFail(
                            DimensionClasses::analyze(module.getFunction()))) {
    spec.seed = 1;
    spec.dims = "B=3,H=4,Nq=50,Nkv=100";
  }
  Call prepare() { return llvm::cantFail(prepareCall(classes, spec)); }
  std::string getError() {
    llvm::Expected<Call> call = prepareCall(classes, spec);
    return call ? "" : llvm::toString(call.takeError());
  }
  TestModule module;
  DimensionClasses classes;
  InputSpec spec;
};

TEST_F(InputsTest, RandomArgumentsFollowTheirRoles) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    spec.seed = seed;
    Call call = prepare();
    ASSERT_EQ(call.arguments.size(), 11u);
    const HostTensor &cos = call.arguments[Cos], &sin = call.arguments[Sin];
    int64_t numRows = cos.getShape()[0];
    for (int64_t i = 0; i < cos.getNumElements(); ++i) {
      double angle = double(i / 8) * std::pow(10000.0, -double(i % 8) / 8);
      EXPECT_NEAR(cos.getFloat(i), std::cos(angle), 1e-7);
      EXPECT_NEAR(sin.getFloat(i), std::sin(angle), 1e-7);
    }
    EXPECT_GE(call.arguments[Offset].getInt(0), 0);
    EXPECT_LE(call.arguments[Offset].getInt(0) + 50, numRows);
    for (int64_t i = 0; i < 100; ++i) {
      EXPECT_GE(call.arguments[Positions].getInt(i), 0);
      EXPECT_LT(call.arguments[Positions].getInt(i) + 3, numRows);
    }
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_GT(call.arguments[Slopes].getFloat(i), 0);
      EXPECT_LE(call.arguments[Slopes].getFloat(i), 1);
    }
    int numMasked = 0;
    for (int64_t i = 0; i < 5000; ++i)
      numMasked += call.arguments[BiasArg].getFloat(i) == -INFINITY;
    EXPECT_GT(numMasked, 50);
    EXPECT_LT(numMasked, 400);
    // Four block rows for each of three batch entries; valid by prepareCall.
    EXPECT_EQ(call.arguments[Rows].getShape(), (std::vector<int64_t>{3, 1, 5}));
    EXPECT_EQ(call.arguments[Rows].getInt(14),
              call.arguments[Columns].getNumElements());
  }
}

TEST_F(InputsTest, NormalNumbersHaveMeanZeroAndVarianceOne) {
  Call call = prepare();
  const HostTensor &q = call.arguments[Q];
  double sum = 0, squares = 0, count = double(q.getNumElements());
  for (int64_t i = 0; i < q.getNumElements(); ++i) {
    sum += q.getFloat(i);
    squares += q.getFloat(i) * q.getFloat(i);
  }
  EXPECT_NEAR(sum / count, 0, 0.05);
  EXPECT_NEAR(squares / count, 1, 0.05);
}

TEST_F(InputsTest, TheSeedDecidesAndArgumentsDiffer) {
  Call first = prepare(), second = prepare();
  for (size_t i = 0; i < first.arguments.size(); ++i)
    for (int64_t e = 0; e < first.arguments[i].getNumElements(); ++e)
      ASSERT_EQ(first.arguments[i].getFloat(e),
                second.arguments[i].getFloat(e));
  spec.seed = 2;
  Call other = prepare();
  int numEqual = 0;
  for (int64_t e = 0; e < 1000; ++e)
    numEqual +=
        first.arguments[Q].getFloat(e) == other.arguments[Q].getFloat(e) ||
        first.arguments[Q].getFloat(e) == first.arguments[K].getFloat(e);
  EXPECT_LT(numEqual, 20);
  // Fixed for all time and all machines.
  EXPECT_EQ(first.arguments[Q].getFloat(0), 0.35546875);
  EXPECT_EQ(first.arguments[Q].getFloat(1), -0.2230224609375);
}

TEST_F(InputsTest, AGivenNumberOfBlocksIsMet) {
  for (int64_t numBlocks : {0, 1, 30, 48}) {
    spec.dims = "B=3,H=4,Nq=50,Nkv=100,nnz=" + std::to_string(numBlocks);
    Call call = prepare();
    EXPECT_EQ(call.arguments[Columns].getNumElements(), numBlocks);
    EXPECT_EQ(call.arguments[Rows].getInt(14), numBlocks);
  }
  spec.dims = "B=3,H=4,Nq=50,Nkv=100,nnz=49";
  EXPECT_EQ(getError(), "expected at most 48 listed blocks, got 49");
}

TEST_F(InputsTest, ResultsArePoisoned) {
  Call call = prepare();
  ASSERT_EQ(call.results.size(), 1u);
  EXPECT_EQ(call.results[0].getShape(), (std::vector<int64_t>{3, 4, 50, 8}));
  for (int64_t i = 0; i < call.results[0].getNumElements(); ++i)
    EXPECT_TRUE(std::isnan(call.results[0].getFloat(i)));
}

TEST_F(InputsTest, GivenBlockListsAreChecked) {
  spec.dims = "B=1,H=1,Nq=50,Nkv=100";
  auto give = [&](std::vector<int64_t> rows, std::vector<int64_t> columns) {
    HostTensor r(ElementType::I32, {1, 1, int64_t(rows.size())});
    HostTensor c(ElementType::I32, {int64_t(columns.size())});
    for (size_t i = 0; i < rows.size(); ++i)
      r.setInt(i, rows[i]);
    for (size_t i = 0; i < columns.size(); ++i)
      c.setInt(i, columns[i]);
    spec.given["row_offsets"] = r;
    spec.given["col_indices"] = c;
    return getError();
  };
  EXPECT_EQ(give({0, 2, 2, 3, 4}, {0, 3, 1, 2}), "");
  EXPECT_EQ(give({0, 2, 2, 3}, {0, 3, 1}),
            "sizes contradict each other: R is 4 by dimension 2 of argument "
            "'row_offsets', but 5 by 50 queries in blocks of 16");
  EXPECT_EQ(give({0, 2, 1, 3, 4}, {0, 3, 1, 2}),
            "argument 'row_offsets' has entry 2 = 1: expected at least the "
            "entry before, 2");
  EXPECT_EQ(give({0, 2, 2, 3, 5}, {0, 3, 1, 2}),
            "argument 'row_offsets' has entry 4 = 5: expected a number in "
            "[0, 4]");
  EXPECT_EQ(give({0, 2, 2, 3, 4}, {3, 0, 1, 2}),
            "argument 'col_indices' has entry 1 = 0: expected strictly "
            "increasing columns below 4");
  EXPECT_EQ(give({0, 2, 2, 3, 4}, {0, 4, 1, 2}),
            "argument 'col_indices' has entry 1 = 4: expected strictly "
            "increasing columns below 4");
  EXPECT_EQ(give({0, 2, 2, 3, 4}, {-1, 3, 1, 2}),
            "argument 'col_indices' has entry 0 = -1: expected strictly "
            "increasing columns below 4");
}

TEST(InputsOfConstants, AreCheckedWithTheArguments) {
  TestModule module(R"(
    func.func @f(%s: tensor<1x1x32x?xf32>, %cols: tensor<2xi32>)
        -> tensor<1x1x32x?xf32> {
      %rows = arith.constant dense<[0, 0, 2]> : tensor<3xi32>
      %m = attnfuse.block_sparse %s, %rows, %cols
          {query_block = 16 : i64, key_block = 16 : i64}
          : tensor<1x1x32x?xf32>, tensor<3xi32>, tensor<2xi32>
      return %m : tensor<1x1x32x?xf32>
    })");
  DimensionClasses classes =
      llvm::cantFail(DimensionClasses::analyze(module.getFunction()));
  InputSpec spec;
  spec.seed = 1;
  auto getError = [&](int64_t column) {
    HostTensor columns(ElementType::I32, {2});
    columns.setInt(1, column);
    spec.given["col_indices"] = columns;
    spec.dims = "Nkv=32";
    llvm::Expected<Call> call = prepareCall(classes, spec);
    return call ? "" : llvm::toString(call.takeError());
  };
  EXPECT_EQ(getError(1), "");
  EXPECT_EQ(getError(2), "argument 'col_indices' has entry 1 = 2: expected "
                         "strictly increasing columns below 2");
}

TEST_F(InputsTest, GivenTensorsAreChecked) {
  spec.given["v"] = HostTensor(ElementType::F32, {3, 4, 100, 8});
  EXPECT_EQ(getError(), "argument 'v': expected elements of type f16, got f32");
  spec.given["v"] = HostTensor(ElementType::F16, {3, 4, 99, 8});
  EXPECT_EQ(getError(), "sizes contradict each other: Nkv is 99 by dimension "
                        "2 of argument 'v', but 100 by --dims");
  spec.given.clear();
  spec.given["w"] = HostTensor(ElementType::F16, {3, 4, 99, 8});
  EXPECT_EQ(getError(), "unknown argument 'w': function 'f' has q, k, v, cos, "
                        "sin, offset, positions, bias, slopes, row_offsets, "
                        "col_indices");
}

TEST_F(InputsTest, ShortTables) {
  HostTensor offset(ElementType::I64, {});
  offset.setInt(0, 15);
  spec.given["offset"] = offset;
  spec.dims = "B=1,H=1,Nq=50,Nkv=10,P=65";
  EXPECT_EQ(getError(), "");
  spec.dims = "B=1,H=1,Nq=50,Nkv=10,P=64";
  EXPECT_EQ(getError(), "the rotary table 'cos' is too short: expected at "
                        "least 65 rows for 50 positions from 15, got 64");
  // Of no rows, too, the first has to be one of the table, or the end.
  spec.dims = "B=1,H=1,Nq=0,Nkv=10,P=15";
  EXPECT_EQ(getError(), "");
  spec.dims = "B=1,H=1,Nq=0,Nkv=10,P=14";
  EXPECT_EQ(getError(), "the rotary table 'cos' is too short: expected at "
                        "least 15 rows for 0 positions from 15, got 14");
}

TEST_F(InputsTest, NegativeOffsets) {
  HostTensor offset(ElementType::I64, {});
  spec.given["offset"] = offset;
  spec.dims = "B=1,H=1,Nq=50,Nkv=10,P=65";
  EXPECT_EQ(getError(), "");
  for (int64_t value : {int64_t(-1), INT64_MIN}) {
    spec.given["offset"].setInt(0, value);
    EXPECT_EQ(getError(),
              "argument 'offset': expected an offset of at least "
              "0, which is the first row of the rotary table, got " +
                  std::to_string(value));
  }
}

TEST_F(InputsTest, Dims) {
  spec.dims = "B=x";
  EXPECT_EQ(getError(), "expected --dims NAME=SIZE,..., got 'B=x'");
  spec.dims = "B=2,N=30,Nq=7";
  Call call = prepare();
  EXPECT_EQ(call.arguments[Q].getShape(), (std::vector<int64_t>{2, 4, 7, 16}));
  EXPECT_EQ(call.arguments[K].getShape(), (std::vector<int64_t>{2, 2, 30, 16}));
  spec.dims = "B=1000000,N=1000000";
  EXPECT_NE(getError().find("'q' is too large"), std::string::npos);
  spec.seed.reset();
  EXPECT_EQ(getError(), "argument 'q' has no value: expected --input q=FILE or "
                        "--random=SEED");
}
} // namespace
