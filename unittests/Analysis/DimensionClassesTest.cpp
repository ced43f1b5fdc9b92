//===- DimensionClassesTest.cpp - Which dimensions are the same -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/DimensionClasses.h"
#include "../TestModule.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
using Strings = std::vector<std::string>;

Strings getNames(const std::vector<ArgumentRole> &roles) {
  Strings names;
  for (const ArgumentRole &role : roles)
    names.push_back(role.name);
  return names;
}

Strings getRoleStrings(const std::vector<ArgumentRole> &roles) {
  Strings strings;
  for (const ArgumentRole &role : roles)
    strings.push_back(role.getRoleString());
  return strings;
}

std::string toMessage(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "";
}

const llvm::StringRef kChain = R"(
  func.func @f(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>,
               %v: tensor<?x?x?x8xf16>, %qc: tensor<?x8xf32>,
               %qs: tensor<?x8xf32>, %kc: tensor<?x8xf32>,
               %ks: tensor<?x8xf32>, %o: i64, %p: tensor<?x?xi32>,
               %b: tensor<?x?xf32>, %c: tensor<1x?xf16>, %r: tensor<?xi32>,
               %i: tensor<?xi32>, %unused: f32)
      -> (tensor<?x?x?x8xf16>, tensor<?x?x?xf32>) {
    %qr = attnfuse.rope %q, %qc, %qs half offset(%o)
        : tensor<?x?x?x16xf16>, tensor<?x8xf32>, tensor<?x8xf32>
    %kr = attnfuse.rope %k, %kc, %ks half positions(%p : tensor<?x?xi32>)
        : tensor<?x?x?x16xf16>, tensor<?x8xf32>, tensor<?x8xf32>
    %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x?x?x16xf16>,
        tensor<?x?x?x16xf16> -> tensor<?x?x?x?xf32>
    %t = attnfuse.additive_bias %s, %b : tensor<?x?x?x?xf32>, tensor<?x?xf32>
    %u = attnfuse.additive_bias %t, %c : tensor<?x?x?x?xf32>, tensor<1x?xf16>
    %w = attnfuse.block_sparse %u, %r, %i
        {query_block = 16 : i64, key_block = 32 : i64}
        : tensor<?x?x?x?xf32>, tensor<?xi32>, tensor<?xi32>
    %x, %lse = attnfuse.softmax %w : tensor<?x?x?x?xf32>, tensor<?x?x?xf32>
    %y = attnfuse.weighted_sum %x, %v : tensor<?x?x?x?xf32>,
        tensor<?x?x?x8xf16> -> tensor<?x?x?x8xf16>
    return %y, %lse : tensor<?x?x?x8xf16>, tensor<?x?x?xf32>
  })";

TEST(ArgumentRolesTest, NamesAndRolesOfAChain) {
  TestModule module(kChain);
  ASSERT_TRUE(module.getFunction());
  std::vector<ArgumentRole> roles = getArgumentRoles(module.getFunction());
  EXPECT_EQ(getNames(roles),
            (Strings{"q", "k", "v", "q_cos", "q_sin", "k_cos", "k_sin",
                     "offset", "positions", "bias", "bias_1", "row_offsets",
                     "col_indices", "arg13"}));
  EXPECT_EQ(getRoleStrings(roles),
            (Strings{"query", "key", "value", "q_cos", "q_sin", "k_cos",
                     "k_sin", "q_offset", "k_positions", "bias", "bias",
                     "row_offsets", "col_indices", "other"}));
  EXPECT_EQ(getNames(getResultRoles(module.getFunction())),
            (Strings{"output", "lse"}));
}

TEST(ArgumentRolesTest, FusedOpWithNamesInTheIR) {
  TestModule module(R"(
    func.func @f(%q: tensor<1x1x4x16xf16>, %c: tensor<4x8xf32>,
                 %s: tensor<1xf32>, %b: tensor<4xf32> {attnfuse.name = "k"})
        -> tensor<1x1x4x16xf16> {
      %o = attnfuse.attention q(%q) k(%q) v(%q)
          rotate_q <half, offset = 0>(%c, %c)
          rotate_k <half, offset = 0>(%c, %c)
          softmax score operands(%s, %b) {
        ^bb0(%x: f32, %bi: index, %h: index, %i: index, %j: index, %n: index,
             %m: index, %hq: index, %ts: tensor<1xf32>, %tb: tensor<4xf32>):
          %slope = tensor.extract %ts[%h] : tensor<1xf32>
          %bias = tensor.extract %tb[%j] : tensor<4xf32>
          %y = arith.addf %slope, %bias : f32
          attnfuse.yield %y : f32
      } {scale = 1.0 : f64} : (tensor<1x1x4x16xf16>, tensor<1x1x4x16xf16>,
          tensor<1x1x4x16xf16>, tensor<4x8xf32>, tensor<4x8xf32>,
          tensor<4x8xf32>, tensor<4x8xf32>, tensor<1xf32>, tensor<4xf32>)
          -> tensor<1x1x4x16xf16>
      return %o : tensor<1x1x4x16xf16>
    })");
  ASSERT_TRUE(module.getFunction());
  std::vector<ArgumentRole> roles = getArgumentRoles(module.getFunction());
  EXPECT_EQ(getNames(roles), (Strings{"q", "cos", "slopes", "k"}));
  EXPECT_EQ(getRoleStrings(roles), (Strings{"query", "cos", "slopes", "bias"}));
}

TEST(ArgumentRolesTest, ResultsAndArgumentsHaveDifferentNames) {
  TestModule module(R"(
    func.func @f(%q: tensor<1x1x4x16xf16> {attnfuse.name = "output"},
                 %k: tensor<1x1x4x16xf16> {attnfuse.name = "lse"})
        -> (tensor<1x1x4x16xf16>,
            tensor<1x1x4xf32> {attnfuse.name = "output"}) {
      %o, %l = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 1.0 : f64}
          : (tensor<1x1x4x16xf16>, tensor<1x1x4x16xf16>, tensor<1x1x4x16xf16>)
          -> (tensor<1x1x4x16xf16>, tensor<1x1x4xf32>)
      return %o, %l : tensor<1x1x4x16xf16>, tensor<1x1x4xf32>
    })");
  ASSERT_TRUE(module.getFunction());
  EXPECT_EQ(getNames(getArgumentRoles(module.getFunction())),
            (Strings{"output", "lse"}));
  EXPECT_EQ(getNames(getResultRoles(module.getFunction())),
            (Strings{"output_2", "output_1"}));
}

class DimensionsTest : public ::testing::Test {
protected:
  DimensionsTest() : module(kChain) {
    classes.emplace(
        llvm::cantFail(DimensionClasses::analyze(module.getFunction())));
    sizes.emplace(*classes);
  }
  std::string set(llvm::StringRef key, int64_t size) {
    return toMessage(sizes->set(key, size, "--dims"));
  }
  TestModule module;
  std::optional<DimensionClasses> classes;
  std::optional<DimensionSizes> sizes;
};

TEST_F(DimensionsTest, SizesReachEveryTensor) {
  for (auto [key, size] :
       std::vector<std::pair<StringRef, int64_t>>{{"B", 2},
                                                  {"Hkv", 3},
                                                  {"Nq", 17},
                                                  {"bias.1", 40},
                                                  {"H", 6},
                                                  {"P_q", 20},
                                                  {"P_k", 50},
                                                  {"nnz", 4}})
    EXPECT_EQ(set(key, size), "") << key.str();
  EXPECT_EQ(toMessage(sizes->finish()), "");
  using Shape = std::vector<int64_t>;
  auto shape = [&](unsigned argument) {
    return sizes->getShape(module.getFunction().getArgument(argument));
  };
  EXPECT_EQ(shape(0), (Shape{2, 6, 17, 16}));
  EXPECT_EQ(shape(1), (Shape{2, 3, 40, 16}));
  EXPECT_EQ(shape(3), (Shape{20, 8}));
  EXPECT_EQ(shape(6), (Shape{50, 8}));
  EXPECT_EQ(shape(7), Shape());
  EXPECT_EQ(shape(8), (Shape{2, 40}));
  EXPECT_EQ(shape(9), (Shape{17, 40}));
  EXPECT_EQ(shape(10), (Shape{1, 40}));
  // ceildiv(17, 16) + 1.
  EXPECT_EQ(shape(11), (Shape{3}));
  EXPECT_EQ(sizes->getResultShape(0), (Shape{2, 6, 17, 8}));
  EXPECT_EQ(sizes->getResultShape(1), (Shape{2, 6, 17}));
}

TEST_F(DimensionsTest, MissingAndUnknown) {
  EXPECT_EQ(set("B", 2), "");
  EXPECT_EQ(set("N", 8), "");
  EXPECT_EQ(toMessage(sizes->finish()),
            "missing sizes for Hq, Hkv, P_q, P_k, nnz: expected --dims "
            "Hq=...,Hkv=...,P_q=...,P_k=...,nnz=...");
  EXPECT_EQ(set("M", 2), "unknown dimension 'M': function 'f' has B, Hq, Nq, "
                         "Hkv, Nkv, P_q, P_k, R, nnz");
}

TEST_F(DimensionsTest, Contradictions) {
  EXPECT_EQ(toMessage(sizes->setShape(0, {2, 6, 17, 16})), "");
  EXPECT_EQ(set("Nq", 18),
            "sizes contradict each other: Nq is 17 by dimension 2 of argument "
            "'q', but 18 by --dims");
  EXPECT_EQ(set("D", 32), "sizes contradict each other: D is 16 by the "
                          "function, but 32 by --dims");
  EXPECT_EQ(set("Nkv", -1), "expected Nkv of at least 0, got -1 from --dims");
  EXPECT_EQ(toMessage(sizes->setShape(1, {2, 3})),
            "expected argument 'k' of rank 4, got rank 2");
  EXPECT_EQ(toMessage(sizes->setShape(11, {4})), "");
  EXPECT_EQ(toMessage(sizes->finish()),
            "sizes contradict each other: R is 4 by dimension 0 of argument "
            "'row_offsets', but 3 by 17 queries in blocks of 16");
}

TEST_F(DimensionsTest, HeadsMustDivide) {
  for (auto [key, size] :
       std::vector<std::pair<StringRef, int64_t>>{{"B", 1},
                                                  {"N", 1},
                                                  {"Hq", 6},
                                                  {"Hkv", 4},
                                                  {"P_q", 1},
                                                  {"P_k", 1},
                                                  {"nnz", 0}})
    EXPECT_EQ(set(key, size), "");
  EXPECT_EQ(toMessage(sizes->finish()),
            "expected Hq to be a multiple of Hkv, got 6 and 4");
}

TEST(DimensionClassesTest, StaticSizesThatContradict) {
  TestModule module(R"(
    func.func @f(%s: tensor<1x1x?x8xf32>, %v: tensor<1x1x?x8xf32>)
        -> tensor<1x1x?x8xf32> {
      %p = attnfuse.softmax %s : tensor<1x1x?x8xf32>
      %o = attnfuse.weighted_sum %p, %v : tensor<1x1x?x8xf32>,
          tensor<1x1x?x8xf32> -> tensor<1x1x?x8xf32>
      return %o : tensor<1x1x?x8xf32>
    })");
  ASSERT_TRUE(module.getFunction());
  auto classes = DimensionClasses::analyze(module.getFunction());
  ASSERT_TRUE(bool(classes));
  DimensionSizes sizes(*classes);
  // v's dynamic length is the scores' static one.
  EXPECT_EQ(toMessage(sizes.setShape(1, {1, 1, 9, 8})),
            "sizes contradict each other: Nkv is 8 by the function, but 9 by "
            "dimension 2 of argument 'v'");
}
} // namespace
