//===- TensorMapTest.cpp - Tensor maps as parameters ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel of the test manifest with these parameters:
//   map of q, offset, map of k, map of output, map of q with other rows.
//
//===----------------------------------------------------------------------===//

#include "KernelFixture.h"
#include <thread>

using namespace attnfuse;

namespace {
constexpr int64_t kMaxSize = std::numeric_limits<uint32_t>::max();

class TensorMapTest : public KernelFixture {
protected:
  void SetUp() override {
    KernelFixture::SetUp();
    log->parameterSizes = {128, 8, 128, 128, 128};
    ManifestFunction &function = manifest.functions[0];
    std::vector<ManifestParameter> &parameters =
        function.versions[0].kernels[0].parameters;
    ASSERT_EQ(parameters.size(), 5u);
    for (auto [index, tensor, rows] :
         {std::tuple(0, 0, 64), {2, 1, 128}, {3, 4, 192}, {4, 0, 256}}) {
      parameters[index].kind = ManifestParameter::Kind::TensorMap;
      parameters[index].tensor = tensor;
      parameters[index].box.rows = rows;
    }
    parameters[1].kind = ManifestParameter::Kind::Value;
    parameters[1].value.kind = Expression::Kind::Name;
    parameters[1].value.name = "offset";
    q.data = 0x10000;
    k.data = 0x20000;
    output.data = 0x30000;
  }

  Result<std::vector<ParameterValue>> evaluateAll() {
    const ManifestFunction &function = manifest.functions[0];
    std::vector<ArgumentValue> arguments = {q, k, cos, int64_t(5)};
    Result<Environment> environment = bindArguments(function, arguments);
    if (!environment)
      return environment.error();
    if (Status status = bindResults(function, {output}, *environment);
        !status.ok())
      return status.error();
    return evaluateParameters(function, function.versions[0].kernels[0],
                              arguments, {output}, {}, *environment);
  }

  /// The requests of q and k.
  std::array<TensorMapRequest, 2> getRequests() {
    Result<std::vector<ParameterValue>> values = evaluateAll();
    if (!values) {
      ADD_FAILURE() << values.error().message;
      return {};
    }
    return {std::get<TensorMapRequest>((*values)[0]),
            std::get<TensorMapRequest>((*values)[2])};
  }

  std::string refuse() {
    Result<std::vector<ParameterValue>> values = evaluateAll();
    return values ? "no refusal" : values.error().message;
  }

  Kernel loadKernel() {
    Result<Kernel> kernel = Kernel::load(openDevice(), manifest, "f", "ptx");
    EXPECT_TRUE(bool(kernel)) << kernel.error().message;
    return *kernel;
  }

  Status launch(const Kernel &kernel) {
    return kernel.launch(nullptr, {q, k, cos, int64_t(5)}, {output});
  }

  TensorView q = view({3, 8, 65, 128}, ElementType::BF16);
  TensorView k = view({3, 2, 70, 128}, ElementType::BF16);
  TensorView cos = view({80, 64}, ElementType::F32);
  TensorView output = q;
};

using Sizes = std::array<uint64_t, 4>;
using Strides = std::array<uint64_t, 3>;
} // namespace

TEST_F(TensorMapTest, Contiguous) {
  Result<std::vector<ParameterValue>> values = evaluateAll();
  ASSERT_TRUE(bool(values)) << values.error().message;
  ASSERT_EQ(values->size(), 5u);
  EXPECT_EQ(std::get<uint64_t>((*values)[1]), 5u);
  auto request = std::get<TensorMapRequest>((*values)[2]);
  EXPECT_EQ(request.address, 0x20000u);
  EXPECT_EQ(request.type, ElementType::BF16);
  EXPECT_EQ(request.sizes, (Sizes{128, 70, 2, 3}));
  EXPECT_EQ(request.byteStrides, (Strides{256, 70 * 256, 2 * 70 * 256}));
  EXPECT_EQ(request.box.rows, 128u);
  EXPECT_EQ(request.boxColumns, 64u);

  auto ofOutput = std::get<TensorMapRequest>((*values)[3]);
  EXPECT_EQ(ofOutput.address, 0x30000u);
  EXPECT_EQ(ofOutput.sizes, (Sizes{128, 65, 8, 3}));
  EXPECT_EQ(ofOutput.box.rows, 192u);

  // The same tensor with another box is another map.
  auto ofQ = std::get<TensorMapRequest>((*values)[0]);
  auto again = std::get<TensorMapRequest>((*values)[4]);
  EXPECT_EQ(ofQ.address, again.address);
  EXPECT_FALSE(ofQ == again);
  again = ofQ;
  EXPECT_TRUE(ofQ == again);
  again.box.heads = 2;
  EXPECT_FALSE(ofQ == again);
}

TEST_F(TensorMapTest, HeadsSideBySide) {
  // [B, N, H, D] in memory, with a gap after each position.
  k.strides = {70 * 264, 128, 264, 1};
  TensorMapRequest request = getRequests()[1];
  EXPECT_EQ(request.sizes, (Sizes{128, 70, 2, 3}));
  EXPECT_EQ(request.byteStrides, (Strides{528, 256, 70 * 528}));
}

TEST_F(TensorMapTest, StridesOfSizeOneDimensionsAreReplaced) {
  q = output = view({1, 8, 1, 128}, ElementType::BF16);
  k = view({1, 1, 70, 128}, ElementType::BF16);
  q.strides[0] = 3;
  q.strides[2] = -7;
  k.strides[0] = int64_t(1) << 60;
  k.strides[1] = 0;
  auto [ofQ, ofK] = getRequests();
  EXPECT_EQ(ofQ.sizes, (Sizes{128, 1, 8, 1}));
  EXPECT_EQ(ofQ.byteStrides, (Strides{16, 256, 16}));
  EXPECT_EQ(ofK.sizes, (Sizes{128, 70, 1, 1}));
  EXPECT_EQ(ofK.byteStrides, (Strides{256, 16, 16}));
  EXPECT_TRUE(launch(loadKernel()).ok());
}

TEST_F(TensorMapTest, EmptyTensorsBorrowAnAddress) {
  k = view({3, 2, 0, 128}, ElementType::BF16);
  k.data = 0;
  k.strides = {3, -5, 7, 0};
  TensorMapRequest request = getRequests()[1];
  EXPECT_EQ(request.address, 0x30000u);
  EXPECT_EQ(request.sizes, (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(request.byteStrides, (Strides{16, 16, 16}));
  EXPECT_EQ(request.box.rows, 128u);
  Status status = launch(loadKernel());
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(log->launches.size(), 1u);

  // Results need less alignment than maps.
  manifest.functions[0].results[0].alignment = 1;
  output.data = 0x3000e;
  manifest.functions[0].versions[0].kernels[0].parameters[3] =
      manifest.functions[0].versions[0].kernels[0].parameters[0];
  EXPECT_EQ(getRequests()[1].address, 0x30000u);
}

TEST_F(TensorMapTest, Limits) {
  k.strides = {(int64_t(1) << 39) - 8, 128, 128, 1};
  EXPECT_EQ(getRequests()[1].byteStrides[2], (uint64_t(1) << 40) - 16);
  k.strides[0] = int64_t(1) << 39;
  EXPECT_EQ(refuse(),
            "argument 'k': expected the stride of dimension 0 to be 0 to "
            "549755813887 for its tensor map, got 549755813888; make the "
            "tensor contiguous");
  k.strides[0] = 128;
  k.strides[1] = -128;
  EXPECT_EQ(refuse(),
            "argument 'k': expected the stride of dimension 1 to be 0 to "
            "549755813887 for its tensor map, got -128; make the tensor "
            "contiguous");
  k.strides[1] = 128;
  k.shape[2] = kMaxSize;
  EXPECT_EQ(getRequests()[1].sizes[1], uint64_t(kMaxSize));
  k.shape[2] = kMaxSize + 1;
  EXPECT_EQ(refuse(), "argument 'k': expected dimension 2 to be at most "
                      "4294967295 for its tensor map, got 4294967296");
}

TEST_F(TensorMapTest, LaunchPassesMapsByValue) {
  Kernel kernel = loadKernel();
  Status status = launch(kernel);
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_EQ(log->tensorMaps.size(), 4u);
  const FakeTensorMap &map = log->tensorMaps[1];
  EXPECT_EQ(map.type, 9); // bf16
  EXPECT_EQ(map.address, 0x20000u);
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{128, 70, 2, 3}));
  EXPECT_EQ(map.byteStrides,
            (std::vector<uint64_t>{256, 70 * 256, 2 * 70 * 256}));
  EXPECT_EQ(map.box, (std::vector<uint32_t>{64, 128, 1, 1}));
  EXPECT_EQ(map.elementStrides, (std::vector<uint32_t>{1, 1, 1, 1}));
  EXPECT_EQ(map.interleave, 0);
  EXPECT_EQ(map.swizzle, 3);   // 128 bytes
  EXPECT_EQ(map.promotion, 3); // 256 bytes
  EXPECT_EQ(map.fill, 0);      // zeros

  std::vector<uint64_t> expected;
  for (int index : {0, -1, 1, 2, 3})
    for (int word = 0; word < (index < 0 ? 1 : 16); ++word)
      expected.push_back(index < 0 ? 5 : index + 0x1001 * word);
  ASSERT_EQ(log->launches.size(), 1u);
  EXPECT_EQ(log->launches[0].parameters, expected);
}

TEST_F(TensorMapTest, ElementTypes) {
  for (ManifestTensor &tensor : manifest.functions[0].arguments)
    if (tensor.shape.size() == 4)
      tensor.type = ElementType::F16;
  q.type = k.type = ElementType::F16;
  ASSERT_TRUE(launch(loadKernel()).ok());
  ASSERT_EQ(log->tensorMaps.size(), 4u);
  EXPECT_EQ(log->tensorMaps[0].type, 6);
  EXPECT_EQ(log->tensorMaps[2].type, 9); // the output
}

TEST_F(TensorMapTest, Float32) {
  manifest.functions[0].arguments[1].type = ElementType::F32;
  manifest.functions[0].arguments[1].strideMultiple = 4;
  k = view({3, 1, 70, 128}, ElementType::F32);
  k.data = 0x20000;
  k.strides = {70 * 132, 0, 132, 1};
  ASSERT_TRUE(launch(loadKernel()).ok());
  ASSERT_EQ(log->tensorMaps.size(), 4u);
  const FakeTensorMap &map = log->tensorMaps[1];
  EXPECT_EQ(map.type, 7);
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{128, 70, 1, 3}));
  EXPECT_EQ(map.byteStrides, (std::vector<uint64_t>{528, 16, 70 * 528}));
  EXPECT_EQ(map.box, (std::vector<uint32_t>{32, 128, 1, 1}));
  EXPECT_EQ(log->tensorMaps[0].box, (std::vector<uint32_t>{64, 64, 1, 1}));

  k.shape[2] = 0;
  TensorMapRequest empty = getRequests()[1];
  EXPECT_EQ(empty.type, ElementType::F32);
  EXPECT_EQ(empty.boxColumns, 32u);
}

TEST_F(TensorMapTest, WhatTheManifestDoesNotDemandIsStillChecked) {
  ManifestTensor &argument = manifest.functions[0].arguments[1];
  argument.alignment = 2;
  argument.strideMultiple = 1;
  argument.unitInnerStride = false;
  k.data += 8;
  EXPECT_EQ(refuse(), "argument 'k': expected an address that is a multiple of "
                      "16 bytes for its tensor map; copy the tensor to an "
                      "aligned one");
  k.data -= 8;
  k.strides[3] = 2;
  EXPECT_EQ(refuse(), "argument 'k': expected stride 1 in the last dimension "
                      "for its tensor map, got 2; make the tensor contiguous");
  k.strides[3] = 1;
  k.strides[2] = 132;
  EXPECT_EQ(refuse(), "argument 'k': expected the stride of dimension 2 to be "
                      "a multiple of 8 for its tensor map, got 132; make the "
                      "tensor contiguous");
  // Nothing is ever a stride away.
  k.shape[2] = 1;
  EXPECT_EQ(refuse(), "no refusal");
}

TEST_F(TensorMapTest, MapsAreEncodedOnce) {
  Kernel kernel = loadKernel();
  ASSERT_TRUE(launch(kernel).ok());
  ASSERT_TRUE(launch(kernel).ok());
  // Kernels of one loading share the maps.
  Kernel copy = kernel;
  ASSERT_TRUE(launch(copy).ok());
  EXPECT_EQ(log->tensorMaps.size(), 4u);
  ASSERT_EQ(log->launches.size(), 3u);
  EXPECT_EQ(log->launches[1].parameters, log->launches[0].parameters);

  auto expectNew = [&](size_t count, const char *what) {
    size_t before = log->tensorMaps.size();
    ASSERT_TRUE(launch(kernel).ok()) << what;
    EXPECT_EQ(log->tensorMaps.size(), before + count) << what;
    ASSERT_TRUE(launch(kernel).ok()) << what;
    EXPECT_EQ(log->tensorMaps.size(), before + count) << what;
  };
  k.data += 16;
  expectNew(1, "address");
  EXPECT_EQ(log->tensorMaps.back().address, 0x20010u);
  // The map of k is the third parameter, after 16 words and one.
  EXPECT_EQ(log->launches.back().parameters[17], 4u);
  k.shape[2] = 69;
  expectNew(1, "size");
  k.strides[1] -= 128;
  expectNew(1, "stride");
  output.data += 16;
  expectNew(1, "result");
  q.data += 16;
  expectNew(2, "two boxes");
}

TEST_F(TensorMapTest, TheCacheIsBounded) {
  Kernel kernel = loadKernel();
  ASSERT_TRUE(launch(kernel).ok());
  const uint64_t first = k.data;
  // 60 more maps of k fit beside the 4.
  for (int i = 1; i <= 60; ++i) {
    k.data = first + 16 * i;
    ASSERT_TRUE(launch(kernel).ok());
  }
  EXPECT_EQ(log->tensorMaps.size(), 64u);
  k.data = first;
  ASSERT_TRUE(launch(kernel).ok());
  EXPECT_EQ(log->tensorMaps.size(), 64u);
  auto countNew = [&] {
    size_t before = log->tensorMaps.size();
    EXPECT_TRUE(launch(kernel).ok());
    return log->tensorMaps.size() - before;
  };
  // The 65th takes the place of the least recently used, the second of k.
  k.data = first + 16 * 61;
  EXPECT_EQ(countNew(), 1u);
  for (int kept : {0, 2, 3, 60, 61}) {
    k.data = first + 16 * kept;
    EXPECT_EQ(countNew(), 0u) << kept;
  }
  k.data = first + 16;
  EXPECT_EQ(countNew(), 1u);
  EXPECT_EQ(log->tensorMaps.back().address, k.data);
  // Now the fifth had to go; the third and fourth were used again.
  k.data = first + 16 * 4;
  EXPECT_EQ(countNew(), 1u);
}

TEST_F(TensorMapTest, ThreadsShareTheCache) {
  // The fake driver's log is not for several threads, but the cache lets one
  // at a time encode. The refusal of k's map keeps all from launching.
  ScopedVariable strict("FAKE_CUDA_MAPS", "strict");
  Kernel kernel = loadKernel();
  k.strides[1] = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int run = 0; run < 100; ++run)
        EXPECT_FALSE(launch(kernel).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  // That of q, once.
  EXPECT_EQ(log->tensorMaps.size(), 1u);
}

TEST_F(TensorMapTest, StridesOfZero) {
  Kernel kernel = loadKernel();
  k.strides[1] = 0;
  ASSERT_TRUE(launch(kernel).ok());
  EXPECT_EQ(log->tensorMaps[1].byteStrides,
            (std::vector<uint64_t>{256, 0, 2 * 70 * 256}));

  ScopedVariable strict("FAKE_CUDA_MAPS", "strict");
  kernel = loadKernel();
  EXPECT_EQ(launch(kernel).error().message,
            "argument 'k': the driver cannot describe the stride 0 of "
            "dimension 1; make the tensor contiguous (encoding the tensor map "
            "failed: CUDA_ERROR_INVALID_VALUE (invalid argument))");
  k.strides = {0, 70 * 128, 128, 1};
  EXPECT_EQ(launch(kernel).error().message.find(
                "argument 'k': the driver cannot describe the stride 0 of "
                "dimension 0; make the tensor contiguous"),
            0u);
  EXPECT_EQ(log->launches.size(), 1u);
}

TEST_F(TensorMapTest, OtherRefusalsAreTheDrivers) {
  ScopedVariable none("FAKE_CUDA_MAPS", "none");
  EXPECT_EQ(launch(loadKernel()).error().message,
            "argument 'q': encoding the tensor map failed: "
            "CUDA_ERROR_INVALID_VALUE (invalid argument)");
}

TEST_F(TensorMapTest, NothingIsLaunchedBeforeAllMapsAreEncoded) {
  ManifestFunction &function = manifest.functions[0];
  function.versions[0].kernels.push_back(function.versions[0].kernels[0]);
  function.versions[0].kernels[0].parameters.resize(2);
  log->parameterSizes.clear();
  Kernel kernel = loadKernel();
  ScopedVariable strict("FAKE_CUDA_MAPS", "strict");
  k.strides[1] = 0;
  EXPECT_FALSE(launch(kernel).ok());
  EXPECT_TRUE(log->launches.empty());
  k.strides[1] = 70 * 128;
  EXPECT_TRUE(launch(kernel).ok());
  EXPECT_EQ(log->launches.size(), 2u);
}

TEST_F(TensorMapTest, OldDriversLoadOtherKernels) {
  auto driver = CudaDriver::load(FAKE_OLD_CUDA_LIBRARY);
  ASSERT_TRUE(bool(driver)) << driver.error().message;
  EXPECT_FALSE((*driver)->tensorMapEncodeTiled);
  auto device = CudaDevice::open(*driver);
  ASSERT_TRUE(bool(device)) << device.error().message;
  EXPECT_EQ(Kernel::load(*device, manifest, "f", "ptx").error().message,
            "kernel 'f_kernel' takes tensor maps, which the CUDA driver cannot "
            "encode (it has no function cuTensorMapEncodeTiled); install a "
            "driver of version 525 (CUDA 12.0) or newer");
  manifest = *parseManifest(kTestManifest);
  Result<Kernel> kernel = Kernel::load(*device, manifest, "f", "ptx");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  EXPECT_TRUE(launch(*kernel).ok());
}
