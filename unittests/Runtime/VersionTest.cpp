//===- VersionTest.cpp - Functions with several versions ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelFixture.h"

using namespace attnfuse;

namespace {
/// A kernel with what `parameter` says of its only parameter.
std::string
kernelText(const std::string &name,
           const std::string &parameter = R"("kind": "pointer", "of": "x")",
           int sharedMemory = 0) {
  return R"({"name": ")" + name +
         R"(", "block": [32, 1, 1], "grid": [1, 1, 1], "shared_memory": )" +
         std::to_string(sharedMemory) + R"(, "parameters": [{)" + parameter +
         "}]}";
}

std::string versionText(const std::string &when, const std::string &kernels) {
  return "{" + (when.empty() ? "" : "\"when\": " + when + ", ") +
         "\"kernels\": [" + kernels + "]}";
}

/// A function of x.y [B, N, 64], x [B, H, N, D], n and the result out [B, N],
/// none of which has to be aligned; `body` gives its kernels.
std::string manifestText(const std::string &body) {
  return R"({"version": 1, "chip": "sm_80", "functions": [{"name": "f",
    "arguments": [
      {"name": "x.y", "role": "", "type": "f16", "shape": ["B", "N", 64]},
      {"name": "x", "role": "", "type": "f32", "shape": ["B", "H", "N", "D"]},
      {"name": "n", "role": "", "type": "i64", "shape": []}],
    "results": [
      {"name": "out", "role": "", "type": "f32", "shape": ["B", "N"]}],
    "checks": [])" +
         (body.empty() ? std::string() : ", " + body) + "}]}";
}

/// With a version `when`, of the kernel "special", and the last, "general".
std::string guardedText(const std::string &when) {
  return manifestText("\"versions\": [" +
                      versionText(when, kernelText("special")) + ", " +
                      versionText("", kernelText("general")) + "]");
}

class VersionTest : public KernelFixture {
protected:
  void SetUp() override {
    KernelFixture::SetUp();
    log->parameterSizes = {8};
    y.data = 0x10002;
    x.data = 0x20010;
    out.data = 0x30004;
  }

  /// The kernels that one launch launches, or its error.
  std::string launch() {
    log->launches.clear();
    Status status = kernel->launch(nullptr, {y, x, n}, {out});
    if (!status.ok())
      return status.error().message;
    std::string names;
    for (const FakeLaunch &launch : log->launches)
      names += (names.empty() ? "" : ", ") + launch.kernel;
    // Which the kernel tells without a launch, too.
    auto version = kernel->getVersion({y, x, n}, {out});
    EXPECT_TRUE(bool(version)) << version.error().message;
    std::string told;
    for (const ManifestKernel &entry : (*version)->kernels)
      told += (told.empty() ? "" : ", ") + entry.name;
    EXPECT_EQ(told, names);
    return names;
  }

  TensorView y = view({2, 5, 64}, ElementType::F16);
  TensorView x = view({2, 3, 5, 8}, ElementType::F32);
  int64_t n = 7;
  TensorView out = view({2, 5}, ElementType::F32);
};
} // namespace

TEST_F(VersionTest, Reads) {
  Result<Manifest> manifest =
      parseManifest(guardedText(R"(["le", "$stride.x.y.1", "$address.out"])"));
  ASSERT_TRUE(bool(manifest)) << manifest.error().message;
  const ManifestFunction &function = manifest->functions[0];
  ASSERT_EQ(function.versions.size(), 2u);
  ASSERT_TRUE(function.versions[0].when);
  EXPECT_EQ(function.versions[0].when->op, Expression::Operator::Le);
  EXPECT_FALSE(function.versions[1].when);
  EXPECT_EQ(function.versions[1].kernels[0].name, "general");
  ASSERT_EQ(function.tensorNames.size(), 2u);
  EXPECT_EQ(function.tensorNames[0].name, "$stride.x.y.1");
  EXPECT_EQ(function.tensorNames[0].tensor, 0u);
  EXPECT_EQ(function.tensorNames[0].dim, size_t(1));
  EXPECT_EQ(function.tensorNames[1].tensor, 3u);
  EXPECT_FALSE(function.tensorNames[1].dim);

  manifest =
      parseManifest(manifestText("\"kernels\": [" + kernelText("a") + "]"));
  ASSERT_TRUE(bool(manifest)) << manifest.error().message;
  ASSERT_EQ(manifest->functions[0].versions.size(), 1u);
  EXPECT_FALSE(manifest->functions[0].versions[0].when);
  EXPECT_TRUE(manifest->functions[0].tensorNames.empty());
}

TEST_F(VersionTest, MalformedVersions) {
  const std::string a = kernelText("a"), last = versionText("", a);
  auto getErrorOfBody = [](const std::string &body) {
    return getErrorOf(manifestText(body));
  };
  auto getErrorOfVersions = [&](const std::string &versions) {
    return getErrorOfBody("\"versions\": " + versions);
  };
  EXPECT_EQ(getErrorOfBody(""),
            "malformed manifest: expected either 'kernels' or 'versions' in "
            "function 'f', got neither");
  EXPECT_EQ(
      getErrorOfBody("\"kernels\": [" + a + "], \"versions\": [" + last + "]"),
      "malformed manifest: expected either 'kernels' or 'versions' in "
      "function 'f', got both");
  EXPECT_EQ(getErrorOfVersions("[" + last + "]"), "no error");
  EXPECT_EQ(getErrorOfVersions("[]"),
            "malformed manifest: expected at least one version in 'versions' "
            "of function 'f'");
  EXPECT_EQ(getErrorOfVersions("{}"),
            "malformed manifest: expected 'versions' in function 'f' to be a "
            "list");
  EXPECT_EQ(getErrorOfVersions("[7]"),
            "malformed manifest: expected 'kernels' in version 0 of function "
            "'f'");
  EXPECT_EQ(getErrorOfVersions("[" + last + ", " + last + "]"),
            "malformed manifest: expected 'when' in version 0 of function 'f'");
  EXPECT_EQ(getErrorOfVersions("[7, " + last + "]"),
            "malformed manifest: expected 'when' in version 0 of function 'f'");
  EXPECT_EQ(getErrorOfVersions("[" + versionText("1", a) + ", " +
                               versionText("1", a) + "]"),
            "malformed manifest: expected no 'when' in version 1 of function "
            "'f': the last version serves every launch");
  EXPECT_EQ(
      getErrorOfVersions("[" + versionText("null", a) + ", " + last + "]"),
      "malformed manifest: expected an integer, a name or a list that "
      "starts with an operator in version 0 of function 'f'");
  EXPECT_EQ(getErrorOfVersions("[" + versionText("1", "") + ", " + last + "]"),
            "malformed manifest: expected at least one kernel in 'kernels' of "
            "version 0 of function 'f'");
  EXPECT_EQ(getErrorOfBody("\"kernels\": []"),
            "malformed manifest: expected at least one kernel in 'kernels' of "
            "function 'f'");
}

TEST_F(VersionTest, MalformedReservedNames) {
  auto getErrorOfName = [](const std::string &name) {
    return getErrorOf(guardedText("\"" + name + "\""));
  };
  const std::string in = " in version 0 of function 'f'";
  for (const char *name : {"$address.x", "$address.x.y", "$address.out",
                           "$stride.x.0", "$stride.x.3", "$stride.out.1"})
    EXPECT_EQ(getErrorOfName(name), "no error") << name;
  for (const char *name : {"$address", "$addresses.x", "$stride", "$size.x.0"})
    EXPECT_EQ(getErrorOfName(name), "malformed manifest: unknown name '" +
                                        std::string(name) + "'" + in);
  for (auto [name, of] : {std::pair("$address.z", "z"),
                          {"$address.", ""},
                          {"$address.n", "n"},
                          {"$stride.n.0", "n"},
                          {"$stride.z.0", "z"},
                          {"$stride.", ""}})
    EXPECT_EQ(getErrorOfName(name), "malformed manifest: no tensor '" +
                                        std::string(of) + "' for '" + name +
                                        "'" + in);
  for (auto [name, dim] : {std::pair("$stride.x", ""),
                           {"$stride.x.", ""},
                           {"$stride.x.4", "4"},
                           {"$stride.x.-1", "-1"},
                           {"$stride.x.01", "01"},
                           {"$stride.x.a", "a"}})
    EXPECT_EQ(getErrorOfName(name),
              "malformed manifest: 'x' has no dimension '" + std::string(dim) +
                  "' for '" + name + "'" + in);
  EXPECT_EQ(getErrorOfName("$stride.x.y.3"),
            "malformed manifest: 'x.y' has no dimension '3' for "
            "'$stride.x.y.3'" +
                in);
}

TEST_F(VersionTest, TheFirstThatAppliesIsLaunched) {
  load(manifestText(
      "\"versions\": [" +
      versionText(R"(["le", "n", 3])", kernelText("small")) + ", " +
      versionText(R"(["mul", ["le", "n", 5], 2])",
                  kernelText("first") + ", " + kernelText("second")) +
      ", " + versionText("", kernelText("any")) + "]"));
  n = 3;
  EXPECT_EQ(launch(), "small");
  n = 4;
  EXPECT_EQ(launch(), "first, second");
  n = 6;
  EXPECT_EQ(launch(), "any");
  n = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(launch(), "small");
}

TEST_F(VersionTest, GuardsThatHaveNoValueRefuse) {
  load(guardedText(R"(["eq", ["mod", 64, "n"], 0])"));
  n = 8;
  EXPECT_EQ(launch(), "special");
  n = 0;
  EXPECT_EQ(launch(), "expected a positive divisor in 'mod', got 0");
}

TEST_F(VersionTest, GuardsOnAddresses) {
  load(guardedText(R"(["eq", ["mod", "$address.x", 32], 16])"));
  EXPECT_EQ(launch(), "special");
  x.data += 4;
  EXPECT_EQ(launch(), "general");
  EXPECT_EQ(log->launches[0].parameters, (std::vector<uint64_t>{0x20014}));
  load(guardedText(R"(["eq", "$address.out", 196612])"));
  EXPECT_EQ(launch(), "special");
  out.data += 4;
  EXPECT_EQ(launch(), "general");
}

TEST_F(VersionTest, GuardsOnStrides) {
  load(guardedText(R"(["eq", ["mod", "$stride.x.2", 4], 0])"));
  EXPECT_EQ(launch(), "special");
  x.strides[2] = 10;
  EXPECT_EQ(launch(), "general");
  load(guardedText(R"(["eq", "$stride.out.0", 5])"));
  EXPECT_EQ(launch(), "special");
  out.strides[0] = 6;
  EXPECT_EQ(launch(), "general");
  // The stride of a broadcast is 0.
  load(guardedText(R"(["eq", "$stride.x.y.0", 0])"));
  EXPECT_EQ(launch(), "general");
  y.strides[0] = 0;
  EXPECT_EQ(launch(), "special");
}

TEST_F(VersionTest, StridesOfSizeOneDimensionsAreZero) {
  load(guardedText(R"(["eq", ["mod", "$stride.x.1", 4], 0])"));
  x.strides[1] = 3;
  EXPECT_EQ(launch(), "general");
  x.shape[1] = 1;
  EXPECT_EQ(launch(), "special");
  x.shape[1] = 0;
  EXPECT_EQ(launch(), "special");
}

TEST_F(VersionTest, ReservedNamesInChecksGridsAndValues) {
  std::string text = guardedText("\"$stride.x.0\"");
  auto replace = [&](const std::string &from, const std::string &to) {
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
  };
  replace("\"checks\": []",
          R"("checks": [{"holds": ["le", "$stride.x.0", 120],
                         "message": "too far apart"}])");
  replace("\"grid\": [1,", R"("grid": ["$stride.x.1",)");
  replace(R"("kind": "pointer", "of": "x")",
          R"("kind": "value", "value": ["add", "$address.x", "$stride.x.0"])");
  load(text);
  // Each name is bound once, however often it stands.
  EXPECT_EQ(kernel->getFunction().tensorNames.size(), 3u);
  EXPECT_EQ(launch(), "special");
  EXPECT_EQ(log->launches[0].grid, (std::array<unsigned, 3>{40, 1, 1}));
  EXPECT_EQ(log->launches[0].parameters,
            (std::vector<uint64_t>{0x20010 + 120}));
  x.strides[0] = 121;
  EXPECT_EQ(launch(), "too far apart");
}

TEST_F(VersionTest, VersionsMayShareAKernel) {
  // The driver keeps one limit of dynamic shared memory for each kernel.
  std::string pointer = R"("kind": "pointer", "of": "x")";
  load(manifestText(
      "\"versions\": [" +
      versionText(R"(["le", "n", 3])", kernelText("a", pointer, 90000)) + ", " +
      versionText("", kernelText("a", pointer, 60000)) + "]"));
  EXPECT_EQ(log->attributes[8], 90000);
  n = 3;
  EXPECT_EQ(launch(), "a");
  EXPECT_EQ(log->launches[0].shared, 90000u);
  n = 4;
  EXPECT_EQ(launch(), "a");
  EXPECT_EQ(log->launches[0].shared, 60000u);
}

TEST_F(VersionTest, AllVersionsAreLoaded) {
  Result<Manifest> manifest = parseManifest(
      manifestText("\"versions\": [" + versionText("0", kernelText("missing")) +
                   ", " + versionText("", kernelText("a")) + "]"));
  ASSERT_TRUE(bool(manifest)) << manifest.error().message;
  EXPECT_EQ(Kernel::load(openDevice(), *manifest, "f", "ptx").error().message,
            "finding kernel 'missing' failed: CUDA error 500");
}

TEST_F(VersionTest, AGuardMayVouchForATensorMap) {
  const std::string map = R"("kind": "tensor_map", "of": "x", "box": [2, 64, 32])";
  const std::string guarded =
      versionText(R"(["eq", ["add", ["mod", "$address.x", 16],
                                    ["mod", "$stride.x.0", 4],
                                    ["mod", "$stride.x.1", 4],
                                    ["mod", "$stride.x.2", 4]], 0])",
                  kernelText("special", map));
  // In the last version only the tensor's own entry can.
  EXPECT_EQ(
      getErrorOf(manifestText("\"versions\": [" + guarded + ", " +
                              versionText("", kernelText("a", map)) + "]")),
      "malformed manifest: expected an 'alignment' of 16, "
      "'unit_inner_stride' and a 'stride_multiple' of 4, or multiples, "
      "for the tensor map of 'x' of kernel 'a'");
  load(manifestText("\"versions\": [" + guarded + ", " +
                    versionText("", kernelText("general")) + "]"));
  log->parameterSizes = {128};
  EXPECT_EQ(launch(), "special");
  ASSERT_EQ(log->tensorMaps.size(), 1u);
  EXPECT_EQ(log->tensorMaps[0].type, 7); // f32
  EXPECT_EQ(log->tensorMaps[0].box, (std::vector<uint32_t>{32, 64, 2, 1}));
  // The guard says nothing of the columns.
  x.strides[3] = 2;
  EXPECT_EQ(launch(), "argument 'x': expected stride 1 in the last dimension "
                      "for its tensor map, got 2; make the tensor contiguous");
  log->parameterSizes = {8};
  x.strides[2] = 18;
  EXPECT_EQ(launch(), "general");
  x.shape[2] = y.shape[1] = out.shape[1] = 1;
  log->parameterSizes = {128};
  x.strides[3] = 1;
  EXPECT_EQ(launch(), "special");
  EXPECT_EQ(log->tensorMaps.size(), 2u);
}
