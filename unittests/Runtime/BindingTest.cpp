//===- BindingTest.cpp - Arguments against a manifest ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestManifest.h"
#include <functional>
#include <gtest/gtest.h>

using namespace attnfuse;

namespace {
std::vector<ParameterValue> toWords(std::vector<uint64_t> words) {
  return {words.begin(), words.end()};
}

class BindingTest : public ::testing::Test {
protected:
  void SetUp() override {
    Result<Manifest> parsed = parseManifest(kTestManifest);
    ASSERT_TRUE(bool(parsed)) << parsed.error().message;
    function = parsed->functions[0];
  }

  /// Everything that precedes a launch, as one status.
  Status bind() {
    std::vector<ArgumentValue> arguments = {q, k, cos, offset};
    Result<Environment> bound = bindArguments(function, arguments);
    if (!bound)
      return bound.error();
    environment = *bound;
    if (Status status = bindResults(function, {output}, environment);
        !status.ok())
      return status;
    return evaluateChecks(function, environment);
  }

  /// The refusal after a change.
  std::string refuse() {
    Status status = bind();
    return status.ok() ? "no refusal" : status.error().message;
  }

  ManifestFunction function;
  TensorView q = view({2, 8, 100, 128}, ElementType::BF16);
  TensorView k = view({2, 4, 33, 128}, ElementType::BF16);
  TensorView cos = view({512, 64}, ElementType::F32);
  int64_t offset = 12;
  TensorView output = view({2, 8, 100, 128}, ElementType::BF16);
  Environment environment;
};
} // namespace

TEST_F(BindingTest, BindsDimensionsAndScalars) {
  ASSERT_EQ(refuse(), "no refusal");
  EXPECT_EQ(environment, (Environment{{"B", 2},
                                      {"Hq", 8},
                                      {"Nq", 100},
                                      {"Hkv", 4},
                                      {"Nkv", 33},
                                      {"P", 512},
                                      {"offset", 12}}));
  Result<std::vector<int64_t>> shape =
      getShape(function.results[0], environment);
  ASSERT_TRUE(bool(shape));
  EXPECT_EQ(*shape, (std::vector<int64_t>{2, 8, 100, 128}));
  EXPECT_EQ(getShape(function.results[0], {}).error().message,
            "the dimension B of 'output' has no value");
}

TEST_F(BindingTest, GridAndParameters) {
  ASSERT_TRUE(bind().ok());
  const ManifestKernel &kernel = function.versions[0].kernels[0];
  Result<std::array<unsigned, 3>> grid = evaluateGrid(kernel, environment);
  ASSERT_TRUE(bool(grid));
  EXPECT_EQ(*grid, (std::array<unsigned, 3>{2 * 16, 1, 1}));
  output.data = 0x2000;
  Result<std::vector<ParameterValue>> words = evaluateParameters(
      function, kernel, {q, k, cos, offset}, {output}, {}, environment);
  ASSERT_TRUE(bool(words));
  EXPECT_EQ(*words, toWords({0x1000, 100 * 128, 0x2000, 128, 33 - 12}));
}

TEST_F(BindingTest, GridLimits) {
  ASSERT_TRUE(bind().ok());
  const ManifestKernel &kernel = function.versions[0].kernels[0];
  environment.set("B", int64_t(1) << 26); // 2 * 8 * 2^26 = 2^30
  EXPECT_TRUE(bool(evaluateGrid(kernel, environment)));
  environment.set("B", int64_t(1) << 27);
  EXPECT_EQ(evaluateGrid(kernel, environment).error().message,
            "kernel 'f_kernel' would need 2147483648 blocks in dimension x, "
            "expected 1 to 2147483647; split the batch");
  environment.set("B", int64_t(1) << 62);
  EXPECT_EQ(evaluateGrid(kernel, environment).error().message,
            "'mul' of the sizes does not fit 64 bits");
  ManifestKernel tall = kernel;
  std::swap(tall.grid[0], tall.grid[1]);
  environment.set("B", 4096);
  EXPECT_EQ(evaluateGrid(tall, environment).error().message,
            "kernel 'f_kernel' would need 65536 blocks in dimension y, "
            "expected 1 to 65535; split the batch");
}

TEST_F(BindingTest, TransposedStorageAndBroadcastsAreAccepted) {
  q.strides = {100 * 8 * 128, 128, 8 * 128, 1};
  k.strides = {0, 0, 128, 1};
  EXPECT_EQ(refuse(), "no refusal");
}

TEST_F(BindingTest, ElementsWithoutAddressesAreRefused) {
  const std::string error = "argument 'q': expected strides whose last element "
                            "has an address; make the tensor contiguous";
  // Two batch entries, elements of two bytes: one stride is all the reach.
  constexpr int64_t kMost = int64_t(1) << 62;
  q.shape = output.shape = {2, 1, 1, 128};
  q.strides = {kMost - 128, 0, 0, 1};
  EXPECT_EQ(refuse(), "no refusal");
  q.strides[0] = kMost;
  EXPECT_EQ(refuse(), error);
  // The last of these is the sum of two strides that would fit alone.
  for (std::vector<int64_t> strides :
       {std::vector<int64_t>{-kMost - 8, 0, 0, 1},
        {kMost / 2 * 3, 0, 0, 1},
        {kMost / 2, kMost / 2, 0, 1}}) {
    q.shape[1] = output.shape[1] = 2;
    output.strides = {256, 128, 0, 1};
    q.strides = strides;
    k.shape[1] = 1;
    EXPECT_EQ(refuse(), error) << strides[0];
  }
  // Nothing is read of a dimension of one.
  q.shape = output.shape = {2, 1, 1, 128};
  q.strides = {128, kMost, kMost, 1};
  EXPECT_EQ(refuse(), "no refusal");
}

TEST_F(BindingTest, KernelsGetTheStridesOfBroadcasts) {
  // One key head, and one query head, read by all.
  k.strides = {33 * 128, 0, 128, 1};
  q.strides = {100 * 128, 0, 128, 1};
  ASSERT_EQ(refuse(), "no refusal");
  ManifestKernel kernel = function.versions[0].kernels[0];
  ManifestParameter stride;
  stride.kind = ManifestParameter::Kind::Stride;
  for (size_t tensor : {0, 1})
    for (size_t dim : {0, 1, 2}) {
      stride.tensor = tensor;
      stride.dim = dim;
      kernel.parameters.push_back(stride);
    }
  Result<std::vector<ParameterValue>> words = evaluateParameters(
      function, kernel, {q, k, cos, offset}, {output}, {}, environment);
  ASSERT_TRUE(bool(words));
  words->erase(words->begin(), words->end() - 6);
  EXPECT_EQ(*words, toWords({100 * 128, 0, 128, //
                             33 * 128, 0, 128}));
}

TEST_F(BindingTest, StridesOfSizeOneDimensionsDoNotMatter) {
  for (TensorView *tensor : {&q, &k, &output}) {
    tensor->shape[0] = 1;
    tensor->strides[0] = 3;
  }
  EXPECT_EQ(refuse(), "no refusal");
}

TEST_F(BindingTest, EmptyTensorsNeedNoMemory) {
  q.shape[2] = output.shape[2] = 0;
  q.data = output.data = 0;
  EXPECT_EQ(refuse(), "no refusal");
  EXPECT_TRUE(output.isEmpty());
}

TEST_F(BindingTest, Counts) {
  EXPECT_EQ(bindArguments(function, {q, k}).error().message,
            "expected 4 arguments (q, k, cos, offset), got 2");
  EXPECT_EQ(bindResults(function, {}, environment).error().message,
            "expected 1 results (output), got 0");
  EXPECT_EQ(bindArguments(function, {q, k, cos, cos}).error().message,
            "argument 'offset': expected a scalar, got a tensor");
  EXPECT_EQ(bindArguments(function, {q, k, int64_t(1), offset}).error().message,
            "argument 'cos': expected a tensor, got a scalar");
}

TEST_F(BindingTest, Shapes) {
  auto refuseWith = [&](std::function<void()> change) {
    SetUp();
    q = view({2, 8, 100, 128}, ElementType::BF16);
    k = view({2, 4, 33, 128}, ElementType::BF16);
    output = q;
    change();
    return refuse();
  };
  EXPECT_EQ(refuseWith([&] { q.type = ElementType::F16; }),
            "argument 'q': expected bf16 elements, got f16");
  EXPECT_EQ(refuseWith([&] { k.shape.pop_back(); }),
            "argument 'k': expected 4 dimensions, got 3");
  EXPECT_EQ(refuseWith([&] { k.strides.pop_back(); }),
            "argument 'k': expected 4 strides, got 3");
  EXPECT_EQ(refuseWith([&] { k.shape[3] = 64; }),
            "argument 'k': expected dimension 3 to be 128, got 64");
  EXPECT_EQ(refuseWith([&] { k.shape[0] = 3; }),
            "argument 'k': expected dimension 0 to be B = 2, got 3");
  EXPECT_EQ(refuseWith([&] { output.shape[2] = 99; }),
            "result 'output': expected dimension 2 to be Nq = 100, got 99");
  EXPECT_EQ(refuseWith([&] { q.shape[2] = -1; }),
            "argument 'q': expected dimension 2 to be at least 0, got -1");
}

TEST_F(BindingTest, NullPointers) {
  q.data = 0;
  EXPECT_EQ(refuse(),
            "argument 'q': expected device memory, got a null pointer");
}

TEST_F(BindingTest, Alignment) {
  k.data = 0x1008;
  EXPECT_EQ(refuse(), "argument 'k': expected an address that is a multiple of "
                      "16 bytes; copy the tensor to an aligned one");
}

TEST_F(BindingTest, InnerStride) {
  q.strides[3] = 2;
  EXPECT_EQ(refuse(), "argument 'q': expected stride 1 in the last dimension, "
                      "got 2; make the tensor contiguous");
}

TEST_F(BindingTest, StrideMultiple) {
  q.strides[2] = 132;
  EXPECT_EQ(refuse(), "argument 'q': expected the stride of dimension 2 to be "
                      "a multiple of 8, got 132; make the tensor contiguous");
}

TEST_F(BindingTest, OverlappingResults) {
  output.strides[1] = 0;
  EXPECT_EQ(refuse(),
            "result 'output': expected dimension 1 not to have stride 0, which "
            "would write its elements over each other");
}

TEST_F(BindingTest, Checks) {
  offset = 412;
  EXPECT_EQ(refuse(), "no refusal");
  offset = 413;
  EXPECT_EQ(refuse(), "the rotary table has too few rows");
  offset = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(refuse(), "'add' of the sizes does not fit 64 bits");
}
