//===- InterpreterTest.cpp - The fp64 reference ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Reference/Interpreter.h"
#include "../TestModule.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

namespace {
constexpr double kInf = INFINITY;

/// All results, one after another; empty after an error, which is stored.
std::vector<double> run(llvm::StringRef text,
                        const std::vector<HostTensor> &arguments,
                        std::string *message = nullptr) {
  TestModule module(text);
  EXPECT_TRUE(module.getFunction()) << text.str();
  if (!module.getFunction())
    return {};
  auto results = interpret(module.getFunction(), arguments);
  if (!results) {
    std::string error = llvm::toString(results.takeError());
    if (message)
      *message = error;
    else
      ADD_FAILURE() << error;
    return {};
  }
  std::vector<double> values;
  for (const HostTensor &result : *results)
    for (double value : getValues(result))
      values.push_back(value);
  return values;
}

void expectNear(const std::vector<double> &actual,
                const std::vector<double> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    if (std::isfinite(expected[i]))
      EXPECT_NEAR(actual[i], expected[i], 1e-12) << "element " << i;
    else
      EXPECT_EQ(actual[i], expected[i]) << "element " << i;
}

HostTensor f32(std::vector<int64_t> shape, const std::vector<double> &values) {
  return makeTensor(ElementType::F32, std::move(shape), values);
}
HostTensor i32(std::vector<int64_t> shape, const std::vector<double> &values) {
  return makeTensor(ElementType::I32, std::move(shape), values);
}

/// A function from scores [1, 1, Nq, Nkv] to what `body` makes of %s.
std::string onScores(llvm::StringRef arguments, llvm::StringRef body) {
  return ("func.func @f(%s: tensor<1x1x?x?xf32>" + arguments +
          ") -> tensor<1x1x?x?xf32> {\n" + body +
          "\n return %r : tensor<1x1x?x?xf32> }")
      .str();
}

TEST(InterpreterTest, ScaledDotProductWithGroupedHeads) {
  llvm::StringRef text = R"(
    func.func @f(%q: tensor<1x4x1x2xf32>, %k: tensor<1x2x2x2xf32>)
        -> tensor<1x4x1x2xf32> {
      %s = attnfuse.scaled_dot_product %q, %k {scale = 0.5 : f64}
          : tensor<1x4x1x2xf32>, tensor<1x2x2x2xf32> -> tensor<1x4x1x2xf32>
      return %s : tensor<1x4x1x2xf32>
    })";
  // Heads 0 and 1 read key head 0, heads 2 and 3 key head 1.
  expectNear(run(text, {f32({1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                        f32({1, 2, 2, 2}, {1, 0, 0, 1, 2, 0, 0, 3})}),
             {0.5, 1, 1.5, 2, 5, 9, 7, 12});
}

TEST(InterpreterTest, DefaultScaleIsOneOverRootOfHeadSize) {
  llvm::StringRef text = R"(
    func.func @f(%q: tensor<1x1x1x4xf32>, %k: tensor<1x1x1x4xf32>)
        -> tensor<1x1x1x1xf32> {
      %s = attnfuse.scaled_dot_product %q, %k
          : tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32> -> tensor<1x1x1x1xf32>
      return %s : tensor<1x1x1x1xf32>
    })";
  expectNear(run(text, {f32({1, 1, 1, 4}, {1, 2, 3, 4}),
                        f32({1, 1, 1, 4}, {1, 1, 2, 3})}),
             {10.5});
}

TEST(InterpreterTest, RopeHalfWithOffsetRotatesTheFirstFeatures) {
  llvm::StringRef text = R"(
    func.func @f(%x: tensor<1x1x2x5xf32>, %c: tensor<4x2xf32>,
                 %s: tensor<4x2xf32>, %o: i64) -> tensor<1x1x2x5xf32> {
      %r = attnfuse.rope %x, %c, %s half offset(%o) {static_offset = 1 : i64}
          : tensor<1x1x2x5xf32>, tensor<4x2xf32>, tensor<4x2xf32>
      return %r : tensor<1x1x2x5xf32>
    })";
  HostTensor offset(ElementType::I64, {});
  offset.setInt(0, 1);
  // Rows 2 and 3 of the tables. Row 2 turns pair 0 by a quarter and leaves
  // pair 1; row 3 has cos 0.5, sin 0.25 for pair 0 and negates
  // pair 1.
  expectNear(run(text, {f32({1, 1, 2, 5}, {1, 2, 3, 4, 5, 10, 20, 30, 40, 50}),
                        f32({4, 2}, {9, 9, 7, 7, 0, 1, 0.5, -1}),
                        f32({4, 2}, {9, 9, 7, 7, 1, 0, 0.25, 0}), offset}),
             {-3, 2, 1, 4, 5, 5 - 7.5, -20, 15 + 2.5, -40, 50});
}

TEST(InterpreterTest, RopeInterleavedWithPositionsClampsToTheTable) {
  llvm::StringRef text = R"(
    func.func @f(%x: tensor<2x1x2x2xf32>, %c: tensor<2x1xf32>,
                 %s: tensor<2x1xf32>, %p: tensor<2x2xi32>)
        -> tensor<2x1x2x2xf32> {
      %r = attnfuse.rope %x, %c, %s interleaved positions(%p : tensor<2x2xi32>)
          : tensor<2x1x2x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>
      return %r : tensor<2x1x2x2xf32>
    })";
  // Row 0 is the identity, row 1 a quarter turn.
  expectNear(run(text, {f32({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                        f32({2, 1}, {1, 0}), f32({2, 1}, {0, 1}),
                        i32({2, 2}, {1, 0, 99, -5})}),
             {-2, 1, 3, 4, -6, 5, 7, 8});
}

TEST(InterpreterTest, RopeBesideTheTable) {
  auto runAt = [](llvm::StringRef computed, int64_t offset) {
    std::string text = (R"(
      func.func @f(%x: tensor<1x1x2x2xf32>, %c: tensor<?x1xf32>,
                   %s: tensor<?x1xf32>, %o: i64) -> tensor<1x1x2x2xf32> {
        %p = arith.addi %o, %o : i64
        %r = attnfuse.rope %x, %c, %s interleaved offset()" +
                        computed + R"() {static_offset = 1 : i64}
            : tensor<1x1x2x2xf32>, tensor<?x1xf32>, tensor<?x1xf32>
        return %r : tensor<1x1x2x2xf32>
      })")
                           .str();
    HostTensor value(ElementType::I64, {});
    value.setInt(0, offset);
    std::string error;
    run(text,
        {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({3, 1}, {1, 1, 1}),
         f32({3, 1}, {0, 0, 0}), value},
        &error);
    return error;
  };
  EXPECT_EQ(runAt("%o", -1), "");
  EXPECT_EQ(runAt("%o", 0), "");
  EXPECT_EQ(runAt("%o", -2), "the rows of a rotation from -2 + 1 on are not "
                             "all in its table of 3 rows");
  EXPECT_EQ(runAt("%o", 1), "the rows of a rotation from 1 + 1 on are not all "
                            "in its table of 3 rows");
  EXPECT_NE(runAt("%o", INT64_MIN), "");
  // What is computed on the device cannot be refused.
  EXPECT_EQ(runAt("%p", -2), "");
}

TEST(InterpreterTest, CausalAlignments) {
  // Two queries, three keys: bottom_right moves the diagonal by one.
  HostTensor scores = f32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  expectNear(run(onScores("", "%r = attnfuse.causal %s bottom_right : "
                              "tensor<1x1x?x?xf32>"),
                 {scores}),
             {1, 2, -kInf, 4, 5, 6});
  expectNear(run(onScores("", "%r = attnfuse.causal %s top_left : "
                              "tensor<1x1x?x?xf32>"),
                 {scores}),
             {1, -kInf, -kInf, 4, 5, -kInf});
}

TEST(InterpreterTest, SlidingWindowBoundsAreInclusive) {
  HostTensor scores = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  expectNear(run(onScores("", R"(%r = attnfuse.sliding_window %s top_left
                      {left = 0 : i64, right = 1 : i64} : tensor<1x1x?x?xf32>)"),
                 {scores}),
             {1, 2, -kInf, -kInf, -kInf, 6, 7, -kInf});
  expectNear(run(onScores("", R"(%r = attnfuse.sliding_window %s bottom_right
                      {left = 1 : i64} : tensor<1x1x?x?xf32>)"),
                 {scores}),
             {-kInf, 2, 3, 4, -kInf, -kInf, 7, 8});
}

TEST(InterpreterTest, BlockSparseListsPerQueryBlock) {
  // Query blocks of 2 and key blocks of 2 over 3 x 5: block row 0 lists key
  // blocks 0 and 2 (of one key), block row 1 lists none.
  expectNear(run(onScores(", %o: tensor<3xi32>, %c: tensor<?xi32>",
                          R"(%r = attnfuse.block_sparse %s, %o, %c
              {query_block = 2 : i64, key_block = 2 : i64}
              : tensor<1x1x?x?xf32>, tensor<3xi32>, tensor<?xi32>)"),
                 {f32({1, 1, 3, 5},
                      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
                  i32({3}, {0, 2, 2}), i32({2}, {0, 2})}),
             {1, 2, -kInf, -kInf, 5, 6, 7, -kInf, -kInf, 10, -kInf, -kInf,
              -kInf, -kInf, -kInf});
}

TEST(InterpreterTest, AlibiStandardSlopesOfThreeHeads) {
  llvm::StringRef text = R"(
    func.func @f(%s: tensor<1x3x1x2xf32>) -> tensor<1x3x1x2xf32> {
      %r = attnfuse.alibi %s bottom_right : tensor<1x3x1x2xf32>
      return %r : tensor<1x3x1x2xf32>
    })";
  // P = 2: slopes 2^-4, 2^-8, then 2^-2. The query is aligned with key 1.
  expectNear(run(text, {f32({1, 3, 1, 2}, {1, 2, 3, 4, 5, 6})}),
             {1 - 0x1p-4, 2, 3 - 0x1p-8, 4, 5 - 0x1p-2, 6});
}

TEST(InterpreterTest, AlibiSlopesPerBatchEntryOnBothSides) {
  llvm::StringRef text = R"(
    func.func @f(%s: tensor<2x1x1x2xf32>, %t: tensor<2x1xf32>)
        -> tensor<2x1x1x2xf32> {
      %r = attnfuse.alibi %s top_left slopes(%t : tensor<2x1xf32>)
          : tensor<2x1x1x2xf32>
      return %r : tensor<2x1x1x2xf32>
    })";
  expectNear(
      run(text, {f32({2, 1, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {0.5, 4})}),
      {1, 1.5, 3, 0});
}

TEST(InterpreterTest, BiasBroadcastsAndItsInfinitiesMaskForGood) {
  // -inf of the first bias masks, although the second has +inf there.
  std::string text = onScores(", %a: tensor<2x1xf32>, %b: tensor<3xf32>", R"(
      %t = attnfuse.additive_bias %s, %a
          : tensor<1x1x?x?xf32>, tensor<2x1xf32>
      %r = attnfuse.additive_bias %t, %b
          : tensor<1x1x?x?xf32>, tensor<3xf32>)");
  expectNear(
      run(text, {f32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}),
                 f32({2, 1}, {10, -kInf}), f32({3}, {100, -kInf, kInf})}),
      {111, -kInf, kInf, -kInf, -kInf, -kInf});
}

TEST(InterpreterTest, FiniteBiasesNeverAddUpToAMask) {
  double lowest = -3.4028234663852886e38;
  std::string text = onScores(", %a: tensor<2xf32>", R"(
      %t = attnfuse.additive_bias %s, %a
          : tensor<1x1x?x?xf32>, tensor<2xf32>
      %r = attnfuse.additive_bias %t, %a
          : tensor<1x1x?x?xf32>, tensor<2xf32>)");
  expectNear(run(text, {f32({1, 1, 1, 2}, {1, 2}), f32({2}, {lowest, 3})}),
             {lowest, 8});
}

const llvm::StringRef kSoftmax = R"(
    func.func @f(%s: tensor<1x1x?x?xf32>, %v: tensor<1x1x?x2xf32>)
        -> (tensor<1x1x?x2xf32>, tensor<1x1x?xf32>) {
      %p, %lse = attnfuse.softmax %s
          : tensor<1x1x?x?xf32>, tensor<1x1x?xf32>
      %o = attnfuse.weighted_sum %p, %v : tensor<1x1x?x?xf32>,
          tensor<1x1x?x2xf32> -> tensor<1x1x?x2xf32>
      return %o, %lse : tensor<1x1x?x2xf32>, tensor<1x1x?xf32>
    })";

TEST(InterpreterTest, SoftmaxOfMaskedAndHugeScores) {
  // Weights 1/2, 1/2; then an empty row; then one key that takes all. The
  // NaN and infinity of v sit where the weight is 0.
  double third = std::log(2.0);
  expectNear(run(kSoftmax, {f32({1, 1, 3, 3}, {0, -kInf, 0, -kInf, -kInf, -kInf,
                                               -1e30, -kInf, 1e30}),
                            f32({1, 1, 3, 2}, {1, 2, NAN, kInf, 3, 6})}),
             {2, 4, 0, 0, 3, 6, third, -kInf, double(float(1e30))});
}

TEST(InterpreterTest, SoftmaxOfFiniteMinimumIsUniform) {
  double lowest = -3.4028234663852886e38;
  expectNear(run(kSoftmax, {f32({1, 1, 1, 2}, {lowest, lowest}),
                            f32({1, 1, 2, 2}, {1, 2, 3, 6})}),
             {2, 4, lowest});
}

TEST(InterpreterTest, NoKeysAndNoQueries) {
  expectNear(run(kSoftmax, {f32({1, 1, 1, 0}, {}), f32({1, 1, 0, 2}, {})}),
             {0, 0, -kInf});
  expectNear(
      run(kSoftmax, {f32({1, 1, 0, 2}, {}), f32({1, 1, 2, 2}, {1, 2, 3, 6})}),
      {});
}

TEST(InterpreterTest, ReluNormalisers) {
  auto relu = [](llvm::StringRef norm) {
    return onScores("", "%r = attnfuse.relu_attention %s " + norm.str() +
                            " : tensor<1x1x?x?xf32>");
  };
  HostTensor scores = f32({1, 1, 2, 4}, {1, -2, 3, -kInf, -1, -2, -3, -4});
  expectNear(run(relu("sum"), {scores}), {0.25, 0, 0.75, 0, 0, 0, 0, 0});
  expectNear(run(relu("length"), {scores}), {0.25, 0, 0.75, 0, 0, 0, 0, 0});
  expectNear(run(relu("none"), {scores}), {1, 0, 3, 0, 0, 0, 0, 0});
}

TEST(InterpreterTest, FusedOpEqualsItsChain) {
  std::string signature = R"(
    func.func @f(%q: tensor<1x2x3x2xf32>, %k: tensor<1x1x4x2xf32>,
                 %v: tensor<1x1x4x1xf32>, %c: tensor<4x1xf32>,
                 %n: tensor<4x1xf32>, %b: tensor<2x1x4xf32>)
        -> (tensor<1x2x3x1xf32>, tensor<1x2x3xf32>) {)";
  std::string chain = signature + R"(
      %r = attnfuse.rope %q, %c, %n half {static_offset = 1 : i64}
          : tensor<1x2x3x2xf32>, tensor<4x1xf32>, tensor<4x1xf32>
      %s = attnfuse.scaled_dot_product %r, %k {scale = 2.0 : f64}
          : tensor<1x2x3x2xf32>, tensor<1x1x4x2xf32> -> tensor<1x2x3x4xf32>
      %t = attnfuse.additive_bias %s, %b
          : tensor<1x2x3x4xf32>, tensor<2x1x4xf32>
      %a = attnfuse.alibi %t bottom_right : tensor<1x2x3x4xf32>
      %m = attnfuse.causal %a bottom_right : tensor<1x2x3x4xf32>
      %p, %l = attnfuse.softmax %m : tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      %o = attnfuse.weighted_sum %p, %v : tensor<1x2x3x4xf32>,
          tensor<1x1x4x1xf32> -> tensor<1x2x3x1xf32>
      return %o, %l : tensor<1x2x3x1xf32>, tensor<1x2x3xf32>
    })";
  std::string fused = signature + R"(
      %o, %l = attnfuse.attention q(%q) k(%k) v(%v)
          rotate_q <half, offset = 1>(%c, %n)
          bands [#attnfuse.band<bottom_right, right = 0>] softmax
          score operands(%b) {
        ^bb0(%s: f32, %bi: index, %h: index, %i: index, %j: index,
             %nq: index, %nkv: index, %hq: index, %t: tensor<2x1x4xf32>):
          %inf = arith.constant 0xFF800000 : f32
          %zero = arith.constant 0 : index
          %x = tensor.extract %t[%h, %zero, %j] : tensor<2x1x4xf32>
          %y = arith.addf %s, %x : f32
          %slope = attnfuse.alibi_slope %h, %hq
          %off = arith.subi %nkv, %nq : index
          %diagonal = arith.addi %i, %off : index
          %d = arith.subi %diagonal, %j : index
          %di = arith.index_cast %d : index to i32
          %df = arith.sitofp %di : i32 to f32
          %da = math.absf %df : f32
          %penalty = arith.mulf %slope, %da : f32
          %z = arith.subf %y, %penalty : f32
          %is = arith.cmpf oeq, %x, %inf : f32
          %w = arith.select %is, %inf, %z : f32
          attnfuse.yield %w : f32
      } {scale = 2.0 : f64}
      : (tensor<1x2x3x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x1xf32>,
         tensor<4x1xf32>, tensor<4x1xf32>, tensor<2x1x4xf32>)
      -> (tensor<1x2x3x1xf32>, tensor<1x2x3xf32>)
      return %o, %l : tensor<1x2x3x1xf32>, tensor<1x2x3xf32>
    })";
  std::vector<HostTensor> arguments = {
      f32({1, 2, 3, 2}, {.1, .2, .3, -.4, .5, .6, .7, .8, -.9, 1, 1.1, 1.2}),
      f32({1, 1, 4, 2}, {.3, .1, -.4, .1, .5, .9, -.2, .6}),
      f32({1, 1, 4, 1}, {1, 2, 4, -8}),
      f32({4, 1}, {1, .6, 0, -.6}),
      f32({4, 1}, {0, .8, 1, .8}),
      f32({2, 1, 4}, {.5, -kInf, .25, 0, -kInf, -kInf, -kInf, 1})};
  std::vector<double> expected = run(chain, arguments);
  ASSERT_EQ(expected.size(), 12u);
  // Head 1 sees key 3 alone, and only the last query sees that.
  EXPECT_EQ(expected[3], 0);
  EXPECT_EQ(expected[5], -8);
  EXPECT_EQ(expected[9], -kInf);
  expectNear(run(fused, arguments), expected);
}

TEST(InterpreterTest, ScalarArithmeticAndConstantTensors) {
  llvm::StringRef text = R"(
    func.func @f(%x: tensor<1x1x1x2xf32>, %o: i64) -> tensor<1x1x1x2xf32> {
      %c = arith.constant dense<[[1.0], [0.0], [0.6]]> : tensor<3x1xf64>
      %cos = arith.constant dense<[[1.0], [0.0]]> : tensor<2x1xf32>
      %sin = arith.constant dense<[[0.0], [1.0]]> : tensor<2x1xf32>
      %one = arith.constant 1 : i64
      %p = arith.subi %o, %one : i64
      %r = attnfuse.rope %x, %cos, %sin half offset(%p)
          : tensor<1x1x1x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>
      return %r : tensor<1x1x1x2xf32>
    })";
  HostTensor offset(ElementType::I64, {});
  offset.setInt(0, 2);
  expectNear(run(text, {f32({1, 1, 1, 2}, {1, 2}), offset}), {-2, 1});
}

TEST(InterpreterTest, Errors) {
  std::string message;
  run(kSoftmax, {f32({1, 1, 1, 2}, {1, 2})}, &message);
  EXPECT_EQ(message, "expected 2 arguments, got 1");
  run(kSoftmax, {f32({1, 1, 1, 2}, {1, 2}), f32({1, 1, 3, 2}, {})}, &message);
  EXPECT_EQ(message, "sizes contradict each other: Nkv is 2 by dimension 3 of "
                     "argument 'scores', but 3 by dimension 2 of argument 'v'");
  run(kSoftmax, {i32({1, 1, 1, 2}, {1, 2}), f32({1, 1, 2, 2}, {})}, &message);
  EXPECT_EQ(message, "argument 'scores' has the wrong kind of element");
  run("func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {"
      "  %y = arith.addf %x, %x : tensor<1xf32>"
      "  return %y : tensor<1xf32> }",
      {f32({1}, {1})}, &message);
  EXPECT_EQ(message, "the reference cannot evaluate 'arith.addf'");
}
} // namespace
