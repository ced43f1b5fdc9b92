//===- WorkspaceTest.cpp - Launches of several kernels --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelFixture.h"

using namespace attnfuse;

namespace {
/// x [B, 3, N, 64] goes through the workspace x.copy, and through y where there
/// is much of it, to out; `workspace` describes x.copy further.
std::string
manifestText(const std::string &workspace = R"("shape": ["B", 3, "N", 64])",
             const std::string &secondFlags = "") {
  return R"({"version": 1, "chip": "sm_80", "functions": [{"name": "f",
    "arguments": [
      {"name": "x", "role": "", "type": "f16", "shape": ["B", 3, "N", 64]}],
    "results": [
      {"name": "out", "role": "", "type": "f16", "shape": ["B", 3, "N", 64]}],
    "workspace": [
      {"name": "y", "role": "", "type": "f32", "shape": ["N", 5]},
      {"name": "x.copy", "role": "", "type": "f16", )" +
         workspace + R"(}],
    "checks": [],
    "versions": [
      {"when": ["le", "N", 1], "kernels": [
        {"name": "direct", "block": [32, 1, 1], "grid": [1, 1, 1],
         "shared_memory": 0, "parameters": [{"kind": "pointer", "of": "x"}]}]},
      {"when": ["le", "N", 10], "kernels": [
        {"name": "copy", "block": [32, 1, 1], "grid": [1, 1, 1],
         "shared_memory": 0, "parameters": [
           {"kind": "pointer", "of": "x.copy"},
           {"kind": "stride", "of": "x.copy", "dim": 0}]},
        {"name": "use", "block": [32, 1, 1], "grid": ["B", 1, 1],
         "shared_memory": 64, )" +
         secondFlags + R"( "parameters": [
           {"kind": "tensor_map", "of": "x.copy", "box": [1, 16, 64]}]}]},
      {"kernels": [
        {"name": "both", "block": [32, 1, 1], "grid": [1, 1, 1],
         "shared_memory": 0, "parameters": [
           {"kind": "pointer", "of": "y"},
           {"kind": "pointer", "of": "x.copy"}]}]}]}]})";
}

class WorkspaceTest : public KernelFixture {
protected:
  void SetUp() override {
    KernelFixture::SetUp();
    log->parameterSizesOf = {{"direct", {8}},
                             {"copy", {8, 8}},
                             {"use", {sizeof(CUtensorMap)}},
                             {"both", {8, 8}}};
    load(manifestText());
  }
  TensorView getView(int64_t length, uint64_t address) {
    TensorView tensor = view({2, 3, length, 64}, ElementType::F16);
    tensor.data = address;
    return tensor;
  }
  int64_t getSize(int64_t length) {
    Result<int64_t> size = kernel->getWorkspaceSize({getView(length, 0x10000)},
                                                    {getView(length, 0x20000)});
    EXPECT_TRUE(bool(size));
    return size ? *size : -1;
  }
  std::string launch(int64_t length, CUdeviceptr workspace = 0) {
    Status status = kernel->launch(nullptr, {getView(length, 0x10000)},
                                   {getView(length, 0x20000)}, workspace);
    return status.ok() ? "" : status.error().message;
  }
};
} // namespace

TEST_F(WorkspaceTest, OnlyWhatTheVersionUsesTakesRoom) {
  EXPECT_EQ(getSize(0), 0);
  EXPECT_EQ(getSize(1), 0);
  EXPECT_EQ(getSize(10), 2 * 3 * 10 * 64 * 2);
  // 11 x 5 floats are 220 bytes, and tensors start at multiples of 256.
  EXPECT_EQ(getSize(11), 256 + 2 * 3 * 11 * 64 * 2);
}

TEST_F(WorkspaceTest, AGivenWorkspaceIsUsed) {
  ASSERT_EQ(launch(11, 0x30000), "");
  ASSERT_EQ(log->launches.size(), 1u);
  EXPECT_EQ(log->launches[0].parameters,
            (std::vector<uint64_t>{0x30000, 0x30100}));
  EXPECT_EQ(log->pools, 0);
  EXPECT_EQ(launch(11, 0x30001),
            "expected a workspace at a multiple of 256 bytes");
}

TEST_F(WorkspaceTest, ItComesFromThePoolOtherwise) {
  ASSERT_EQ(launch(10), "");
  ASSERT_EQ(launch(10), "");
  EXPECT_EQ(log->pools, 1);
  EXPECT_EQ(log->pooled, 0);
  EXPECT_EQ(log->pooledBytes, (std::vector<size_t>{7680, 7680}));
  ASSERT_EQ(log->launches.size(), 4u);
  // What one kernel writes is what the next one's map is of.
  uint64_t address = log->launches[0].parameters[0];
  EXPECT_EQ(log->launches[0].parameters[1], 3u * 10 * 64);
  const FakeTensorMap &map = log->tensorMaps[log->launches[1].parameters[0]];
  EXPECT_EQ(map.address, address);
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{64, 10, 3, 2}));
  EXPECT_EQ(map.byteStrides,
            (std::vector<uint64_t>{128, 10 * 128, 3 * 10 * 128}));
}

TEST_F(WorkspaceTest, NothingIsAllocatedWithoutNeed) {
  ASSERT_EQ(launch(1), "");
  ASSERT_EQ(launch(0), "");
  EXPECT_EQ(log->pools, 0);
  EXPECT_EQ(log->launches.size(), 1u);
}

TEST_F(WorkspaceTest, ThePoolMayBeTooSmall) {
  EXPECT_EQ(launch(int64_t(1) << 28)
                .find("allocating a workspace of 211527139328 bytes of device "
                      "memory failed: CUDA_ERROR_OUT_OF_MEMORY"),
            0u);
  load(manifestText(R"("shape": ["B", "N", "N", 64])"));
  TensorView x = getView(1 << 29, 0x10000), out = getView(1 << 29, 0x20000);
  for (TensorView *tensor : {&x, &out})
    tensor->shape[0] = 1 << 20;
  EXPECT_EQ(kernel->launch(nullptr, {x}, {out}).error().message,
            "workspace 'x.copy' has more bytes than an address; split the "
            "batch");
}

TEST_F(WorkspaceTest, NoSumOfBytesWraps) {
  load(manifestText(R"("shape": ["B", 3, "N", 64])"));
  ManifestFunction function = kernel->getFunction();
  const ManifestVersion &both = function.versions.back();
  // y of f32 and x.copy of f16, in bytes; the whole is below 2^63.
  auto layOut = [&](std::vector<ManifestDim> y, std::vector<ManifestDim> copy) {
    function.workspace[0].shape = std::move(y);
    function.workspace[1].shape = std::move(copy);
    return layOutWorkspace(function, both, {});
  };
  constexpr int64_t kQuarter = int64_t(1) << 62;
  Result<WorkspaceLayout> layout =
      layOut({kQuarter / 4}, {(kQuarter - 256) / 2});
  ASSERT_TRUE(bool(layout));
  EXPECT_EQ(layout->bytes, std::numeric_limits<int64_t>::max() - 255);
  const std::string error = "has more bytes than an address; split the batch";
  auto refuse = [&](std::vector<ManifestDim> y, std::vector<ManifestDim> copy) {
    Result<WorkspaceLayout> layout = layOut(std::move(y), std::move(copy));
    return layout ? "no refusal" : layout.error().message;
  };
  // A sum, the alignment, and products of 2^63, 2^64 and 2^65 bytes.
  EXPECT_EQ(refuse({kQuarter / 4}, {kQuarter / 2}),
            "workspace 'x.copy' " + error);
  EXPECT_EQ(refuse({2 * (kQuarter / 4) - 1}, {64}), "workspace 'y' " + error);
  for (int64_t size : {2, 4, 8})
    EXPECT_EQ(refuse({size, kQuarter / 4}, {64}), "workspace 'y' " + error);
  EXPECT_EQ(refuse({std::numeric_limits<int64_t>::max()}, {64}),
            "workspace 'y' " + error);
}

TEST_F(WorkspaceTest, AGivenWorkspaceEndsBelowTheLastAddress) {
  // Of 11 rows: 256 and 8448 bytes.
  EXPECT_EQ(launch(11, CUdeviceptr(0) - 8448),
            "expected a workspace of 8704 bytes, got an address with fewer "
            "bytes after it");
  EXPECT_EQ(launch(11, CUdeviceptr(0) - 8960), "");
}

TEST_F(WorkspaceTest, OnlyALaterKernelStartsEarly) {
  ASSERT_EQ(launch(10, 0x30000), "");
  EXPECT_FALSE(log->launches[0].startsEarly);
  EXPECT_FALSE(log->launches[1].startsEarly);
  log->launches.clear();
  load(manifestText(R"("shape": ["B", 3, "N", 64])",
                    R"("starts_early": true,)"));
  ASSERT_EQ(launch(10, 0x30000), "");
  EXPECT_FALSE(log->launches[0].startsEarly);
  EXPECT_TRUE(log->launches[1].startsEarly);
  EXPECT_EQ(log->launches[1].grid, (std::array<unsigned, 3>{2, 1, 1}));
}

TEST_F(WorkspaceTest, SizesMayBeExpressions) {
  load(manifestText(R"("shape": ["B", ["mul", 2, "$sm_count"], "N", 64])"));
  EXPECT_EQ(getSize(10), 2 * 26 * 10 * 64 * 2);
  ASSERT_EQ(launch(10, 0x30000), "");
  EXPECT_EQ(log->launches[0].parameters[1], 26u * 10 * 64);
  // Only of the version that is launched are they evaluated.
  load(manifestText(R"("shape": [["sub", 8, "N"], 3, "N", 64])"));
  EXPECT_EQ(launch(1), "");
  EXPECT_EQ(getSize(8), 0);
  EXPECT_EQ(launch(9), "a dimension of 'x.copy' is negative");
  load(manifestText(
      R"("shape": [["mul", 4611686018427387904, "N"], 3, "N", 64])"));
  EXPECT_EQ(launch(1), "");
  EXPECT_EQ(launch(9), "'mul' of the sizes does not fit 64 bits");
}

TEST_F(WorkspaceTest, Malformed) {
  EXPECT_EQ(getErrorOf(manifestText(R"("shape": [["mul", "B"], 64])")),
            "malformed manifest: wrong number of operands of 'mul' in 'x.copy' "
            "of the workspace of function 'f'");
  // What is given has sizes, no formulas.
  std::string argument = manifestText();
  argument.replace(argument.find(R"("B")"), 3, R"(["add", 1, 1])");
  EXPECT_EQ(getErrorOf(argument),
            "malformed manifest: expected a size or a name in the shape of 'x' "
            "of the arguments of function 'f'");
  EXPECT_EQ(getErrorOf(manifestText(R"("shape": ["M", 64])")),
            "malformed manifest: the dimension 'M' of workspace 'x.copy' is "
            "none of function 'f'");
  // A scalar is no size: it may be negative.
  std::string scalar = manifestText(R"("shape": ["n", 3, "N", 64])");
  scalar.replace(scalar.find(R"({"name": "x")"), 0,
                 R"({"name": "n", "role": "", "type": "i64", "shape": []},)");
  EXPECT_EQ(getErrorOf(scalar),
            "malformed manifest: the dimension 'n' of workspace 'x.copy' is "
            "none of function 'f'");
  EXPECT_EQ(getErrorOf(manifestText(R"("shape": [])")),
            "malformed manifest: expected dimensions of workspace 'x.copy' of "
            "function 'f'");
  EXPECT_EQ(getErrorOf(manifestText(R"("shape": ["B", 3, "N", 60])")),
            "malformed manifest: expected an 'alignment' of 16, "
            "'unit_inner_stride' and a 'stride_multiple' of 8, or multiples, "
            "for the tensor map of 'x.copy' of kernel 'use'");
  std::string name = manifestText();
  name.replace(name.find("x.copy"), 6, "x");
  EXPECT_EQ(getErrorOf(name), "malformed manifest: the name 'x' stands twice "
                              "in function 'f'");
  std::string when = manifestText();
  when.replace(when.find(R"("N", 10)"), 7, R"("$address.y", 10)");
  EXPECT_EQ(getErrorOf(when), "malformed manifest: no tensor 'y' for "
                              "'$address.y' in version 1 of function 'f'");
  EXPECT_EQ(getErrorOf(manifestText(R"("shape": ["B", 3, "N", 64])",
                                    R"("starts_early": 1,)")),
            "malformed manifest: expected 'starts_early' in kernel 'use' to "
            "be true or false");
}
