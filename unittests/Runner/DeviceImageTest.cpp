//===- DeviceImageTest.cpp ------------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runner/DeviceImage.h"
#include <gtest/gtest.h>

using namespace attnfuse;

namespace {
class DeviceImageTest : public ::testing::TestWithParam<std::vector<int64_t>> {
};

TEST_P(DeviceImageTest, StridesReachEveryElementAndNoGuard) {
  std::vector<int64_t> shape = GetParam();
  HostTensor tensor(ElementType::I32, shape);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    tensor.setInt(i, 1000 + i);
  DeviceImage image(ElementType::I32, shape);
  std::vector<std::byte> buffer = image.pack(tensor);
  EXPECT_TRUE(image.hasIntactGuards(buffer));

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
  for (size_t byte = 0; byte < buffer.size(); byte += 7) {
    std::vector<std::byte> changed = buffer;
    changed[byte] ^= std::byte{1};
    EXPECT_EQ(image.hasIntactGuards(changed), isElement[byte]) << byte;
  }
  HostTensor back = image.unpack(buffer);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    EXPECT_EQ(back.getInt(i), 1000 + i);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeviceImageTest,
                         ::testing::Values(std::vector<int64_t>{},
                                           std::vector<int64_t>{5},
                                           std::vector<int64_t>{3, 2},
                                           std::vector<int64_t>{2, 3, 4},
                                           std::vector<int64_t>{2, 2, 3, 8},
                                           std::vector<int64_t>{2, 0, 3, 8},
                                           std::vector<int64_t>{2, 2, 0, 8}));

TEST(DeviceImageTest, ARowBeyondTheLastKeyIsNotTheNextHead) {
  DeviceImage image(ElementType::F16, {2, 3, 17, 16});
  EXPECT_GE(image.getStrides()[1], (17 + 128) * 16);
  EXPECT_EQ(image.getStrides()[0], 3 * image.getStrides()[1]);
  EXPECT_EQ(image.getStrides()[2], 16);
}
} // namespace
