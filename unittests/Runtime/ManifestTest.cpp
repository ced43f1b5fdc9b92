//===- ManifestTest.cpp - Reading manifests, well formed and not ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestManifest.h"
#include <gtest/gtest.h>

using namespace attnfuse;

namespace {
/// The error after `from` was replaced by `to` in the test manifest.
std::string getErrorOf(const std::string &from, const std::string &to) {
  std::string text = kTestManifest;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos)
    text.replace(at, from.size(), to);
  return attnfuse::getErrorOf(text);
}
} // namespace

TEST(Manifest, Reads) {
  Result<Manifest> manifest = parseManifest(kTestManifest);
  ASSERT_TRUE(bool(manifest)) << manifest.error().message;
  EXPECT_EQ(manifest->chip, "sm_80");
  Result<const ManifestFunction *> found = manifest->getFunction("f");
  ASSERT_TRUE(bool(found));
  const ManifestFunction &function = **found;
  ASSERT_EQ(function.arguments.size(), 4u);
  EXPECT_EQ(function.arguments[0].role, "query");
  EXPECT_EQ(function.arguments[0].type, ElementType::BF16);
  EXPECT_EQ(std::get<std::string>(function.arguments[0].shape[1]), "Hq");
  EXPECT_EQ(std::get<int64_t>(function.arguments[0].shape[3]), 128);
  EXPECT_EQ(function.arguments[0].alignment, 16);
  EXPECT_TRUE(function.arguments[0].unitInnerStride);
  EXPECT_EQ(function.arguments[0].strideMultiple, 8);
  EXPECT_EQ(function.arguments[2].alignment, 1);
  EXPECT_FALSE(function.arguments[2].unitInnerStride);
  EXPECT_TRUE(function.arguments[3].isScalar());
  EXPECT_FALSE(function.arguments[2].isScalar());
  ASSERT_EQ(function.versions[0].kernels.size(), 1u);
  EXPECT_EQ(function.versions[0].kernels[0].block[0], 128);
  EXPECT_EQ(function.versions[0].kernels[0].sharedMemory, 65536);
  ASSERT_EQ(function.versions[0].kernels[0].parameters.size(), 5u);
  EXPECT_EQ(function.versions[0].kernels[0].parameters[3].kind,
            ManifestParameter::Kind::Stride);
  EXPECT_EQ(function.versions[0].kernels[0].parameters[3].tensor, 4u);
  EXPECT_EQ(function.versions[0].kernels[0].parameters[3].dim, 2u);
}

TEST(Manifest, UnknownFunctionsListTheKnownOnes) {
  Result<Manifest> manifest = parseManifest(kTestManifest);
  ASSERT_TRUE(bool(manifest));
  EXPECT_EQ(manifest->getFunction("g").error().message,
            "no function 'g' in the manifest; it has f");
}

TEST(Manifest, EveryTruncationIsRefused) {
  std::string text = kTestManifest;
  for (size_t size = 0; size < text.size(); size += 7)
    EXPECT_FALSE(bool(parseManifest(text.substr(0, size)))) << size;
}

TEST(Manifest, MalformedDocuments) {
  EXPECT_EQ(parseManifest("").error().message,
            "malformed manifest: it is not JSON");
  EXPECT_EQ(parseManifest("[]").error().message,
            "malformed manifest: expected 'version' in the manifest");
  EXPECT_EQ(getErrorOf("\"version\": 1", "\"version\": 2"),
            "malformed manifest: expected a manifest of version 1, got 2");
  EXPECT_EQ(getErrorOf("\"chip\": \"sm_80\"", "\"chip\": 80"),
            "malformed manifest: expected 'chip' in the manifest to be a "
            "string");
  EXPECT_EQ(getErrorOf("\"type\": \"bf16\"", "\"type\": \"f8\""),
            "malformed manifest: unknown type 'f8' of 'q' of the arguments of "
            "function 'f'");
  EXPECT_EQ(getErrorOf("\"Nq\", 128]", "\"Nq\", -1]"),
            "malformed manifest: expected a size or a name in the shape of 'q' "
            "of the arguments of function 'f'");
  EXPECT_EQ(getErrorOf("\"alignment\": 16", "\"alignment\": 0"),
            "malformed manifest: expected 'alignment' in 'q' of the arguments "
            "of function 'f' to be at least 1, got 0");
  EXPECT_EQ(getErrorOf("\"name\": \"k\"", "\"name\": \"q\""),
            "malformed manifest: the name 'q' stands twice in function 'f'");
  EXPECT_EQ(getErrorOf("\"name\": \"offset\"", "\"name\": \"B\""),
            "malformed manifest: the name 'B' stands twice in function 'f'");
  EXPECT_EQ(getErrorOf("\"name\": \"cos\"", "\"name\": \"$cos\""),
            "malformed manifest: expected names of tensors and dimensions that "
            "do not start with '$', got '$cos' in function 'f'");
  EXPECT_EQ(getErrorOf("[\"P\", 64]", "[\"$sm_count\", 64]"),
            "malformed manifest: expected names of tensors and dimensions that "
            "do not start with '$', got '$sm_count' in function 'f'");
  EXPECT_EQ(
      getErrorOf("\"unit_inner_stride\": true", "\"unit_inner_stride\": 1"),
      "malformed manifest: expected 'unit_inner_stride' in 'q' of the "
      "arguments of function 'f' to be true or false");
}

TEST(Manifest, MalformedKernels) {
  EXPECT_EQ(getErrorOf("\"block\": [128, 1, 1]", "\"block\": [128, 1]"),
            "malformed manifest: expected 3 sizes in 'block' and 'grid' of "
            "kernel 'f_kernel'");
  EXPECT_EQ(getErrorOf("\"block\": [128, 1, 1]", "\"block\": [2048, 1, 1]"),
            "malformed manifest: expected sizes of 1 to 1024 in 'block' of "
            "kernel 'f_kernel'");
  EXPECT_EQ(getErrorOf("65536", "9223372036854775808"),
            "malformed manifest: expected 'shared_memory' in kernel 'f_kernel' "
            "to be a 64-bit integer");
  EXPECT_EQ(getErrorOf("65536", "-1"),
            "malformed manifest: expected 'shared_memory' of kernel 'f_kernel' "
            "to be a 32-bit size, got -1");
  EXPECT_EQ(getErrorOf("\"kind\": \"pointer\"", "\"kind\": \"texture\""),
            "malformed manifest: unknown kind 'texture' of a parameter of "
            "kernel 'f_kernel'");
  EXPECT_EQ(getErrorOf("\"of\": \"q\"", "\"of\": \"x\""),
            "malformed manifest: no tensor 'x' for a parameter of kernel "
            "'f_kernel'");
  EXPECT_EQ(getErrorOf("\"of\": \"q\"", "\"of\": \"offset\""),
            "malformed manifest: no tensor 'offset' for a parameter of kernel "
            "'f_kernel'");
  EXPECT_EQ(getErrorOf("\"dim\": 1", "\"dim\": 4"),
            "malformed manifest: 'q' has no dimension 4 for a parameter of "
            "kernel 'f_kernel'");
}

TEST(Manifest, TensorMaps) {
  std::string text = kTestManifest;
  std::string pointer = "\"pointer\", \"of\": \"q\"";
  std::string map = "\"tensor_map\", \"of\": \"q\", \"box\": [4, 256, 64]";
  text.replace(text.find(pointer), pointer.size(), map);
  Result<Manifest> manifest = parseManifest(text);
  ASSERT_TRUE(bool(manifest)) << manifest.error().message;
  const ManifestParameter &parameter =
      manifest->functions[0].versions[0].kernels[0].parameters[0];
  EXPECT_EQ(parameter.kind, ManifestParameter::Kind::TensorMap);
  EXPECT_EQ(parameter.tensor, 0u);
  EXPECT_EQ(parameter.box.heads, 4u);
  EXPECT_EQ(parameter.box.rows, 256u);

  auto getErrorOfMap = [&](const std::string &of, const std::string &box) {
    return getErrorOf(pointer, "\"tensor_map\", \"of\": \"" + of + "\"" + box);
  };
  const std::string kWhere = "of kernel 'f_kernel'";
  EXPECT_EQ(getErrorOfMap("x", ""),
            "malformed manifest: no tensor 'x' for a parameter " + kWhere);
  EXPECT_EQ(getErrorOfMap("offset", ""),
            "malformed manifest: no tensor 'offset' for a parameter " + kWhere);
  EXPECT_EQ(getErrorOfMap("cos", ", \"box\": [1, 64, 64]"),
            "malformed manifest: expected 4 dimensions for the tensor map of "
            "'cos' " +
                kWhere + ", got 2");
  EXPECT_EQ(getErrorOfMap("q", ""),
            "malformed manifest: expected 'box' in the tensor map of 'q' " +
                kWhere);
  EXPECT_EQ(getErrorOfMap("q", ", \"box\": 64"),
            "malformed manifest: expected 'box' in the tensor map of 'q' " +
                kWhere + " to be a list");
  for (const char *box : {"[64]", "[64, 64]", "[1, 64, 64, 1]", "[1, 64.5, 64]",
                          "[1, \"Nq\", 64]"})
    EXPECT_EQ(getErrorOfMap("q", std::string(", \"box\": ") + box),
              "malformed manifest: expected 'box' in the tensor map of 'q' " +
                  kWhere + " to be heads, rows and columns");
  for (const char *size : {"0", "257", "-1", "4294967297"}) {
    auto getErrorOfSize = [&](const std::string &box) {
      return getErrorOfMap("q", ", \"box\": " + box);
    };
    auto getExpected = [&](const std::string &what) {
      return "malformed manifest: expected 1 to 256 " + what +
             " in 'box' of the tensor map of 'q' " + kWhere + ", got " + size;
    };
    EXPECT_EQ(getErrorOfSize(std::string("[1, ") + size + ", 64]"),
              getExpected("rows"));
    EXPECT_EQ(getErrorOfSize(std::string("[") + size + ", 64, 64]"),
              getExpected("heads"));
  }
  EXPECT_EQ(getErrorOfMap("q", ", \"box\": [1, 64, 128]"),
            "malformed manifest: expected 64 columns, 128 bytes, in 'box' of "
            "the tensor map of 'q' " +
                kWhere + ", got 128");
}

TEST(Manifest, TensorMapsDemandALayout) {
  std::string parameter =
      "{\"kind\": \"tensor_map\", \"of\": \"x\", \"box\": [1, 64, 64]}";
  auto getErrorWith = [&](const std::string &tensor) {
    return getErrorOf(
        "\"arguments\": [",
        "\"kernels\": [{\"name\": \"g\", \"block\": [128, 1, 1], \"grid\": [1, "
        "1, 1], \"shared_memory\": 0, \"parameters\": [" +
            parameter +
            "]}], \"results\": [], \"checks\": [], \"arguments\": [{\"name\": "
            "\"x\", \"role\": \"\", \"shape\": [1, 2, \"X\", 64], " +
            tensor + "}]}, {\"name\": \"f\", \"arguments\": [");
  };
  EXPECT_EQ(getErrorWith("\"type\": \"f16\", \"alignment\": 32, "
                         "\"unit_inner_stride\": true, "
                         "\"stride_multiple\": 16"),
            "no error");
  EXPECT_EQ(getErrorWith("\"type\": \"f64\", \"alignment\": 16, "
                         "\"unit_inner_stride\": true, "
                         "\"stride_multiple\": 8"),
            "malformed manifest: expected f16, bf16 or f32 elements for the "
            "tensor map of 'x' of kernel 'g', got f64");
  EXPECT_EQ(getErrorWith("\"type\": \"f32\", \"alignment\": 16, "
                         "\"unit_inner_stride\": true, "
                         "\"stride_multiple\": 4"),
            "malformed manifest: expected 32 columns, 128 bytes, in 'box' of "
            "the tensor map of 'x' of kernel 'g', got 64");
  parameter.replace(parameter.find("[1, 64, 64]"), 11, "[1, 64, 32]");
  EXPECT_EQ(getErrorWith("\"type\": \"f32\", \"alignment\": 16, "
                         "\"unit_inner_stride\": true, "
                         "\"stride_multiple\": 4"),
            "no error");
  EXPECT_EQ(getErrorWith("\"type\": \"f32\", \"alignment\": 16, "
                         "\"unit_inner_stride\": true, "
                         "\"stride_multiple\": 2"),
            "malformed manifest: expected an 'alignment' of 16, "
            "'unit_inner_stride' and a 'stride_multiple' of 4, or multiples, "
            "for the tensor map of 'x' of kernel 'g'");
  parameter.replace(parameter.find("[1, 64, 32]"), 11, "[1, 64, 64]");
  for (const char *layout : {"\"alignment\": 8, \"unit_inner_stride\": true, "
                             "\"stride_multiple\": 8",
                             "\"alignment\": 16, \"stride_multiple\": 8",
                             "\"alignment\": 16, \"unit_inner_stride\": true, "
                             "\"stride_multiple\": 4"})
    EXPECT_EQ(getErrorWith(std::string("\"type\": \"bf16\", ") + layout),
              "malformed manifest: expected an 'alignment' of 16, "
              "'unit_inner_stride' and a 'stride_multiple' of 8, or multiples, "
              "for the tensor map of 'x' of kernel 'g'");
}

TEST(Manifest, ExpressionsMayUseReservedNames) {
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]",
                       "[\"min\", \"$sm_count\", \"Nkv\"]"),
            "no error");
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]", "\"$sm\""),
            "malformed manifest: unknown name '$sm' in kernel 'f_kernel'");
}

TEST(Manifest, MalformedExpressions) {
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]", "\"M\""),
            "malformed manifest: unknown name 'M' in kernel 'f_kernel'");
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]", "[\"pow\", 2, 3]"),
            "malformed manifest: unknown operator 'pow' in kernel 'f_kernel'");
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]", "[\"sub\", 2]"),
            "malformed manifest: wrong number of operands of 'sub' in kernel "
            "'f_kernel'");
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]", "1.5"),
            "malformed manifest: expected an integer, a name or a list that "
            "starts with an operator in kernel 'f_kernel'");
  std::string deep = "1";
  for (int i = 0; i < 1000; ++i)
    deep = "[\"add\", 1, " + deep + "]";
  EXPECT_EQ(getErrorOf("[\"sub\", \"Nkv\", \"offset\"]", deep),
            "malformed manifest: an expression in kernel 'f_kernel' is nested "
            "too deeply");
}
