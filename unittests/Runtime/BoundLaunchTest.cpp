//===- BoundLaunchTest.cpp - Launches on tensors of one kind --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a bound launch hands to the driver is what Kernel::launch does.
//
//===----------------------------------------------------------------------===//

#include "KernelFixture.h"

using namespace attnfuse;

namespace {
class BoundLaunchTest : public KernelFixture {
protected:
  void SetUp() override {
    KernelFixture::SetUp();
    setAddresses({0x10000, 0x20000, 0x30000, 0x40000});
  }

  /// Of q, k, cos and output.
  void setAddresses(std::array<uint64_t, 4> addresses) {
    q.data = addresses[0];
    k.data = addresses[1];
    cos.data = addresses[2];
    output.data = addresses[3];
  }

  void bind() {
    auto created =
        BoundLaunch::create(*kernel, {q, k, cos, int64_t(5)}, {output});
    ASSERT_TRUE(bool(created)) << created.error().message;
    bound = std::move(*created);
  }

  /// The bound launch, at the tensors' addresses: "" or the error.
  std::string launchBound() {
    uint64_t addresses[] = {q.data, k.data, cos.data, 0, output.data};
    Status status = bound->launch(nullptr, addresses);
    return status.ok() ? "" : status.error().message;
  }

  /// Launches in both ways and compares.
  void expectSame() {
    log->launches.clear();
    ASSERT_EQ(launchBound(), "");
    Status status = kernel->launch(nullptr, {q, k, cos, int64_t(5)}, {output});
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(log->launches.size(), 2u);
    const FakeLaunch &first = log->launches[0], &second = log->launches[1];
    EXPECT_EQ(first.kernel, second.kernel);
    EXPECT_EQ(first.grid, second.grid);
    EXPECT_EQ(first.block, second.block);
    EXPECT_EQ(first.shared, second.shared);
    EXPECT_EQ(first.parameters, second.parameters);
  }

  void TearDown() override {
    bound.reset();
    KernelFixture::TearDown();
  }

  TensorView q = view({2, 4, 70, 128}, ElementType::BF16);
  TensorView k = view({2, 2, 90, 128}, ElementType::BF16);
  TensorView cos = view({512, 64}, ElementType::F32);
  TensorView output = view({2, 4, 70, 128}, ElementType::BF16);
  std::unique_ptr<BoundLaunch> bound;
};
} // namespace

TEST_F(BoundLaunchTest, FollowsAddresses) {
  load(manifest);
  bind();
  expectSame();
  setAddresses({0x110000, 0x120000, 0x130000, 0x140000});
  expectSame();
  EXPECT_EQ(log->launches[0].parameters[0], 0x110000u);
  EXPECT_EQ(log->launches[0].parameters[2], 0x140000u);
  setAddresses({0x10000, 0x120000, 0x130000, 0x40000});
  expectSame();
}

TEST_F(BoundLaunchTest, OutlivesTheKernel) {
  load(manifest);
  bind();
  kernel.reset();
  EXPECT_EQ(launchBound(), "");
  EXPECT_EQ(log->launches.size(), 1u);
}

TEST_F(BoundLaunchTest, RefusesAddresses) {
  load(manifest);
  bind();
  k.data = 0x20008;
  EXPECT_EQ(launchBound(),
            "argument 'k': expected an address that is a multiple of 16 bytes "
            "and not null; copy the tensor to an aligned one");
  k.data = 0x20000;
  output.data = 0;
  EXPECT_EQ(launchBound(),
            "result 'output': expected an address that is a multiple of 16 "
            "bytes and not null; copy the tensor to an aligned one");
  EXPECT_TRUE(log->launches.empty());
  output.data = 0x40000;
  expectSame();
}

TEST_F(BoundLaunchTest, RefusesToBind) {
  load(manifest);
  auto refuse = [&](int64_t offset) {
    auto created = BoundLaunch::create(*kernel, {q, k, cos, offset}, {output});
    return created ? "bound" : created.error().message;
  };
  EXPECT_EQ(refuse(442), "bound");
  EXPECT_EQ(refuse(443), "the rotary table has too few rows");
  k.shape[3] = 64;
  EXPECT_EQ(refuse(0), "argument 'k': expected dimension 3 to be 128, got 64");
}

TEST_F(BoundLaunchTest, SkipsEmptyResults) {
  load(manifest);
  q = output = view({2, 4, 0, 128}, ElementType::BF16);
  bind();
  q.data = output.data = 0;
  EXPECT_EQ(launchBound(), "");
  EXPECT_TRUE(log->launches.empty());
}

TEST_F(BoundLaunchTest, ChoosesVersionsByAddress) {
  ManifestFunction &function = manifest.functions[0];
  Result<Manifest> guarded = parseManifest([] {
    std::string text = kTestManifest;
    size_t begin = text.find("\"kernels\": [");
    std::string kernels = text.substr(begin, text.rfind("]\n  }]") + 1 - begin);
    std::string special = kernels;
    special.replace(special.find("f_kernel"), 8, "special");
    text.replace(
        begin, kernels.size(),
        R"("versions": [{"when": ["eq", ["mod", "$address.cos", 8], 0], )" +
            special + "}, {" + kernels + "}]");
    return text;
  }());
  ASSERT_TRUE(bool(guarded)) << guarded.error().message;
  function = guarded->functions[0];
  load(manifest);
  bind();
  for (auto [address, name] : {std::pair(0x30000, "special"),
                               {0x30004, "f_kernel"},
                               {0x30010, "special"},
                               {0x30014, "f_kernel"}}) {
    setAddresses(
        {0x10000 + 16u * address, 0x20000, uint64_t(address), 0x40000});
    expectSame();
    EXPECT_EQ(log->launches[0].kernel, name);
  }
}

TEST_F(BoundLaunchTest, EncodesTensorMapsOfNewAddresses) {
  ManifestKernel &described = manifest.functions[0].versions[0].kernels[0];
  described.parameters[0].kind = ManifestParameter::Kind::TensorMap;
  described.parameters[0].box.rows = 64;
  log->parameterSizes = {128, 8, 8, 8, 8};
  load(manifest);
  bind();
  EXPECT_EQ(log->tensorMaps.size(), 1u);
  expectSame();
  EXPECT_EQ(log->tensorMaps.size(), 1u);
  q.data = 0x50000;
  expectSame();
  ASSERT_EQ(log->tensorMaps.size(), 2u);
  EXPECT_EQ(log->tensorMaps[1].address, 0x50000u);
  q.data = 0x10000;
  expectSame();
  EXPECT_EQ(log->tensorMaps.size(), 2u);
}
