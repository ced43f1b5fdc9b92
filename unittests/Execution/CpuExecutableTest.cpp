//===- CpuExecutableTest.cpp - Executing functions on the host ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Execution/CpuExecutable.h"

#include "../../lib/Execution/RuntimeFunctions.h"
#include "../TestModule.h"
#include "gtest/gtest.h"
#include <cmath>
#include <map>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

using namespace mlir;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;
using mlir::attnfuse::CpuExecutable;
using mlir::attnfuse::getValues;
using mlir::attnfuse::makeTensor;
using mlir::attnfuse::TestModule;

namespace {

std::unique_ptr<CpuExecutable> compile(TestModule &module,
                                       StringRef function = "f") {
  auto executable = CpuExecutable::compile(*module.module, function);
  if (executable)
    return std::move(*executable);
  ADD_FAILURE() << llvm::toString(executable.takeError());
  return nullptr;
}

std::string getCompileError(StringRef text, StringRef function = "f") {
  TestModule module(text);
  auto executable = CpuExecutable::compile(*module.module, function);
  return executable ? "" : llvm::toString(executable.takeError());
}

std::string run(CpuExecutable &executable,
                const std::vector<HostTensor> &arguments,
                std::vector<HostTensor> &results) {
  return llvm::toString(executable.run(arguments, results));
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

constexpr const char *kRelu = R"(
  func.func @f(%s: tensor<1x1x?x?xf32> {attnfuse.name = "scores"}) -> tensor<1x1x?x?xf32> {
    %p = attnfuse.relu_attention %s none : tensor<1x1x?x?xf32>
    return %p : tensor<1x1x?x?xf32>
  })";

TEST(CpuExecutable, LeavesModuleAndArgumentsAlone) {
  TestModule module(kRelu);
  std::string before = print(*module.module);
  auto executable = compile(module);
  EXPECT_EQ(print(*module.module), before);

  // The lowering updates scores in place; an argument is not its to update.
  std::vector<double> values{-1, 2, -3, 4, 5, -6};
  std::vector<HostTensor> arguments{
      makeTensor(ElementType::F32, {1, 1, 2, 3}, values)};
  std::vector<HostTensor> results{HostTensor(ElementType::F32, {1, 1, 2, 3})};
  EXPECT_EQ(run(*executable, arguments, results), "");
  EXPECT_EQ(getValues(results[0]), (std::vector<double>{0, 2, 0, 4, 5, 0}));
  EXPECT_EQ(getValues(arguments[0]), values);
}

TEST(CpuExecutable, RunsWithOtherSizes) {
  TestModule module(kRelu);
  auto executable = compile(module);
  for (int64_t size : {0, 1, 7}) {
    std::vector<double> values(size * 2, 0.5);
    std::vector<HostTensor> arguments{
        makeTensor(ElementType::F32, {1, 1, size, 2}, values)};
    std::vector<HostTensor> results{
        HostTensor(ElementType::F32, {1, 1, size, 2})};
    EXPECT_EQ(run(*executable, arguments, results), "");
    EXPECT_EQ(getValues(results[0]), values);
  }
}

TEST(CpuExecutable, ReturnsArgumentsAndConstants) {
  TestModule module(R"(
    func.func @f(%a: tensor<2xf32>, %n: i64) -> (tensor<2xf32>, tensor<2xf32>, tensor<3xi64>, tensor<1xi64>) {
      %c = arith.constant dense<[4, 5, 6]> : tensor<3xi64>
      %t = tensor.from_elements %n : tensor<1xi64>
      return %a, %a, %c, %t : tensor<2xf32>, tensor<2xf32>, tensor<3xi64>, tensor<1xi64>
    })");
  auto executable = compile(module);
  HostTensor n(ElementType::I64, {});
  n.setInt(0, 42);
  std::vector<HostTensor> arguments{
      makeTensor(ElementType::F32, {2}, {1.5, -2}), n};
  std::vector<HostTensor> results{
      HostTensor(ElementType::F32, {2}), HostTensor(ElementType::F32, {2}),
      HostTensor(ElementType::I64, {3}), HostTensor(ElementType::I64, {1})};
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(run(*executable, arguments, results), "");
    EXPECT_EQ(getValues(results[0]), (std::vector<double>{1.5, -2}));
    EXPECT_EQ(getValues(results[1]), (std::vector<double>{1.5, -2}));
    EXPECT_EQ(results[2].getInt(2), 6);
    EXPECT_EQ(results[3].getInt(0), 42);
  }
}

TEST(CpuExecutable, ConvertsSixteenBitFloats) {
  // One key, so that each head's weight is rounded to the type: ties to even,
  // the carry into the exponent, overflow to infinity and NaN.
  for (ElementType type : {ElementType::F16, ElementType::BF16}) {
    std::string name(getElementName(type));
    std::string tensor = "tensor<1x6x1x1x" + name + ">";
    TestModule module("func.func @f(%p: tensor<1x6x1x1xf32>, %v: " + tensor +
                      ") -> " + tensor +
                      " {\n  %o = attnfuse.weighted_sum %p, %v : "
                      "tensor<1x6x1x1xf32>, " +
                      tensor + " -> " + tensor + "\n  return %o : " + tensor +
                      "\n}");
    auto executable = compile(module);
    std::vector<int64_t> shape{1, 6, 1, 1};
    std::vector<double> values{1.00390625, 1.01171875, 1.9999999,
                               3.4e38,     -7e-8,      NAN};
    std::vector<HostTensor> arguments{
        makeTensor(ElementType::F32, shape, values),
        makeTensor(type, shape, {1, 1, 1, 1, 1, 1})};
    std::vector<HostTensor> results{HostTensor(type, shape)};
    EXPECT_EQ(run(*executable, arguments, results), "");
    HostTensor expected = makeTensor(type, shape, values);
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(results[0].getFloat(i), expected.getFloat(i)) << name << i;
    EXPECT_TRUE(std::isnan(results[0].getFloat(5)));
  }
}

TEST(CpuExecutable, RefusesWrongArguments) {
  TestModule module(kRelu);
  auto executable = compile(module);
  std::vector<HostTensor> results{HostTensor(ElementType::F32, {1, 1, 2, 3})};
  EXPECT_EQ(run(*executable, {}, results), "'f': expected 1 arguments, got 0");
  EXPECT_EQ(
      run(*executable, {HostTensor(ElementType::F16, {1, 1, 2, 3})}, results),
      "argument 0 of 'f': expected f32, got f16");
  EXPECT_EQ(
      run(*executable, {HostTensor(ElementType::F32, {1, 2, 2, 3})}, results),
      "argument 0 of 'f': expected shape [1, 1, ?, ?], got [1, 2, 2, 3]");
  EXPECT_EQ(
      run(*executable, {HostTensor(ElementType::F32, {1, 2, 3})}, results),
      "argument 0 of 'f': expected shape [1, 1, ?, ?], got [1, 2, 3]");
}

TEST(CpuExecutable, RefusesWrongResults) {
  TestModule module(kRelu);
  auto executable = compile(module);
  std::vector<HostTensor> arguments{HostTensor(ElementType::F32, {1, 1, 2, 3})};
  std::vector<HostTensor> none;
  EXPECT_EQ(run(*executable, arguments, none),
            "'f': expected 1 results, got 0");
  std::vector<HostTensor> other{HostTensor(ElementType::F32, {1, 1, 3, 2})};
  EXPECT_EQ(run(*executable, arguments, other),
            "result 0 of 'f' has shape [1, 1, 2, 3], expected [1, 1, 3, 2]");
}

TEST(CpuExecutable, ReportsExhaustedMemory) {
  TestModule module(R"(
    func.func @f(%q: tensor<1x1x?x1xf32>, %k: tensor<1x1x?x1xf32>) -> tensor<1x1x?x?xf32> {
      %s = attnfuse.scaled_dot_product %q, %k : tensor<1x1x?x1xf32>, tensor<1x1x?x1xf32> -> tensor<1x1x?x?xf32>
      return %s : tensor<1x1x?x?xf32>
    })");
  auto executable = compile(module);
  // 2^23 queries and as many keys: 2^48 bytes of scores, more than an address
  // space has.
  int64_t length = int64_t(1) << 23;
  std::vector<HostTensor> arguments(
      2, HostTensor(ElementType::F32, {1, 1, length, 1}));
  std::vector<HostTensor> results{HostTensor(ElementType::F32, {1, 1, 0, 0})};
  EXPECT_NE(run(*executable, arguments, results).find("not enough memory"),
            std::string::npos);
}

TEST(CpuExecutable, ReportsWhatDoesNotCompile) {
  EXPECT_EQ(getCompileError(kRelu, "g"),
            "expected a function 'g' with a body in the module");
  EXPECT_EQ(getCompileError("func.func private @f(tensor<1xf32>)"),
            "expected a function 'f' with a body in the module");
  EXPECT_EQ(getCompileError("func.func @f(%a: tensor<*xf32>) { return }"),
            "argument 0 of 'f': expected a ranked tensor or a scalar of f16, "
            "bf16, f32, f64, i32 or i64, got tensor<*xf32>");
  EXPECT_EQ(getCompileError("func.func @f(%a: i64) -> i64 { return %a : i64 }"),
            "result 0 of 'f': expected a ranked tensor of f16, bf16, f32, f64, "
            "i32 or i64, got i64");
  EXPECT_EQ(getCompileError(R"(
    func.func private @g(tensor<1xf32>) -> tensor<1xf32>
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %b = func.call @g(%a) : (tensor<1xf32>) -> tensor<1xf32>
      return %b : tensor<1xf32>
    })"),
            "function 'f' does not lower to host code: -:2:5: expected 'g' to "
            "have a body");
}

TEST(RuntimeFunctions, HalvesAreConvertedAsInRegisters) {
#ifdef __x86_64__
  std::map<std::string, void *> functions;
  mlir::attnfuse::forEachRuntimeFunction(
      [&](StringRef name, void *address) { functions[name.str()] = address; });
  auto extend =
      reinterpret_cast<float (*)(__m128i)>(functions["__extendhfsf2"]);
  auto truncate =
      reinterpret_cast<__m128i (*)(float)>(functions["__truncsfhf2"]);
  auto truncateDouble =
      reinterpret_cast<__m128i (*)(double)>(functions["__truncdfhf2"]);
  ASSERT_TRUE(extend && truncate && truncateDouble);
  for (int bits = 0; bits < 0x10000; ++bits) {
    // What is above the half in its register is no part of it.
    float value = extend(_mm_cvtsi32_si128(bits | 0x5a5a0000));
    float expected = ::attnfuse::fromF16(bits);
    ASSERT_TRUE(value == expected ||
                (std::isnan(value) && std::isnan(expected)))
        << bits;
    if (std::isnan(value))
      continue;
    ASSERT_EQ(_mm_cvtsi128_si32(truncate(value)), bits);
    ASSERT_EQ(_mm_cvtsi128_si32(truncateDouble(value)), bits);
  }
  // Just above the middle of two halves, which a float does not show.
  EXPECT_EQ(_mm_cvtsi128_si32(truncateDouble(1 + 0x1p-11 + 0x1p-40)), 0x3c01);
  EXPECT_EQ(_mm_cvtsi128_si32(truncate(1 + 0x1p-11)), 0x3c00);
  auto truncateToBF16 =
      reinterpret_cast<__m128i (*)(float)>(functions["__truncsfbf2"]);
  ASSERT_TRUE(truncateToBF16);
  EXPECT_EQ(_mm_cvtsi128_si32(truncateToBF16(1 + 0x1p-8)), 0x3f80);
  EXPECT_EQ(_mm_cvtsi128_si32(truncateToBF16(-1 - 0x1.8p-8)), 0xbf81);
#endif
}

} // namespace
