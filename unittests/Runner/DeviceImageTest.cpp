//===- DeviceImageTest.cpp - A tensor among guard bytes -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runner/DeviceImage.h"
#include <gtest/gtest.h>

using namespace attnfuse;

namespace {
ManifestTensor makeTensor(const std::string &role, std::vector<int64_t> shape) {
  ManifestTensor tensor;
  tensor.role = role;
  tensor.type = ElementType::I32;
  tensor.shape.assign(shape.begin(), shape.end());
  if (role == "query") {
    tensor.alignment = 16;
    tensor.unitInnerStride = true;
    tensor.strideMultiple = 4;
  }
  return tensor;
}

class DeviceImageTest
    : public ::testing::TestWithParam<
          std::tuple<std::vector<int64_t>, MemoryLayout, std::string>> {};

TEST_P(DeviceImageTest, StridesReachEveryElementAndNoGuard) {
  const auto &[shape, layout, role] = GetParam();
  HostTensor tensor(ElementType::I32, shape);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    tensor.setInt(i, 1000 + i);
  DeviceImage image(ElementType::I32, shape,
                    getImageLayout(layout, makeTensor(role, shape)));
  std::vector<std::byte> buffer = image.pack(tensor);
  ASSERT_EQ(buffer.size(), image.getNumBytes());
  EXPECT_TRUE(image.hasIntactGuards(buffer));
  EXPECT_TRUE(image.hasIntactGuards(image.makePoison()));

  // Through strides, as a kernel reads it.
  std::vector<int64_t> dense = tensor.getStrides();
  std::vector<bool> isElement(buffer.size(), false);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
    int64_t offset = 0, rest = i;
    for (size_t dim = 0; dim < shape.size(); rest %= dense[dim++])
      offset += rest / dense[dim] * image.getStrides()[dim];
    size_t byte = image.getOffset() + 4 * offset;
    ASSERT_LE(byte + 4, buffer.size());
    int32_t value;
    std::memcpy(&value, buffer.data() + byte, 4);
    EXPECT_EQ(value, 1000 + i);
    for (size_t k = 0; k < 4; ++k)
      isElement[byte + k] = true;
  }
  // Any other byte is a guard that is seen to be overwritten.
  for (size_t byte = 0; byte < buffer.size(); byte += 23) {
    buffer[byte] ^= std::byte{1};
    EXPECT_EQ(image.hasIntactGuards(buffer), isElement[byte]) << byte;
    buffer[byte] ^= std::byte{1};
  }
  HostTensor back = image.unpack(buffer);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    EXPECT_EQ(back.getInt(i), 1000 + i);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DeviceImageTest,
    ::testing::Combine(::testing::Values(std::vector<int64_t>{},
                                         std::vector<int64_t>{5},
                                         std::vector<int64_t>{3, 2},
                                         std::vector<int64_t>{2, 3, 4},
                                         std::vector<int64_t>{2, 2, 3, 8},
                                         std::vector<int64_t>{1, 1, 3, 8},
                                         std::vector<int64_t>{2, 0, 3, 8},
                                         std::vector<int64_t>{2, 2, 0, 8}),
                       ::testing::Values(MemoryLayout::BHND, MemoryLayout::BNHD,
                                         MemoryLayout::Strided),
                       ::testing::Values("query", "bias")));

TEST(DeviceImageTest, ARowBeyondTheLastKeyIsNotTheNextHead) {
  DeviceImage image(ElementType::F16, {2, 3, 17, 16});
  EXPECT_GE(image.getStrides()[1], (17 + 128) * 16);
  EXPECT_EQ(image.getStrides()[0], 3 * image.getStrides()[1]);
  EXPECT_EQ(image.getStrides()[2], 16);
}

TEST(DeviceImageTest, BNHDHasTheHeadsSideBySide) {
  std::vector<int64_t> shape = {2, 3, 17, 16};
  ManifestTensor tensor = makeTensor("query", shape);
  tensor.type = ElementType::F16;
  DeviceImage image(tensor.type, shape,
                    getImageLayout(MemoryLayout::BNHD, tensor));
  EXPECT_EQ(image.getStrides()[3], 1);
  EXPECT_EQ(image.getStrides()[2], 3 * 16);
  EXPECT_EQ(image.getStrides()[1], 16);
  // The token beyond the last key is not the next batch entry's.
  EXPECT_GE(image.getStrides()[0], (17 + 128) * 3 * 16);
  // Other tensors stay as they are.
  tensor.role = "bias";
  DeviceImage bias(tensor.type, shape,
                   getImageLayout(MemoryLayout::BNHD, tensor));
  EXPECT_EQ(bias.getStrides(), DeviceImage(tensor.type, shape).getStrides());
}

TEST(DeviceImageTest, StridedHoldsWhatTheManifestDemandsAndNoMore) {
  std::vector<int64_t> shape = {2, 3, 17, 16};
  ManifestTensor tensor = makeTensor("query", shape);
  tensor.type = ElementType::F16;
  tensor.strideMultiple = 8;
  DeviceImage image(tensor.type, shape,
                    getImageLayout(MemoryLayout::Strided, tensor));
  std::vector<int64_t> strides = image.getStrides();
  EXPECT_EQ(strides[3], 1);
  EXPECT_EQ(strides[1], 16 + 24);
  EXPECT_EQ(strides[2], 3 * (16 + 24) + 24);
  EXPECT_EQ(image.getOffset() % 32, 16u);
  for (size_t dim = 0; dim < 3; ++dim)
    EXPECT_EQ(strides[dim] % 8, 0) << dim;

  tensor = makeTensor("bias", shape);
  tensor.type = ElementType::F16;
  DeviceImage bias(tensor.type, shape,
                   getImageLayout(MemoryLayout::Strided, tensor));
  EXPECT_EQ(bias.getStrides()[3], 2);
  EXPECT_EQ(bias.getStrides()[2], 2 * 16 + 3);
  EXPECT_EQ(bias.getOffset() % 4, 2u);
}

TEST(DeviceImageTest, LayoutNames) {
  EXPECT_EQ(parseMemoryLayout("bhnd"), MemoryLayout::BHND);
  EXPECT_EQ(parseMemoryLayout("bnhd"), MemoryLayout::BNHD);
  EXPECT_EQ(parseMemoryLayout("strided"), MemoryLayout::Strided);
  EXPECT_FALSE(parseMemoryLayout("BHND"));
}
} // namespace
