//===- DeviceImage.cpp - A tensor among guard bytes -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceImage.h"
#include <algorithm>

using namespace attnfuse;

static constexpr std::byte kGuard{0xff};

DeviceImage::DeviceImage(ElementType type, std::vector<int64_t> tensorShape)
    : type(type), shape(std::move(tensorShape)), strides(shape.size(), 1) {
  size_t rank = shape.size(), width = getElementSize(type);
  int64_t columns = rank >= 1 ? shape[rank - 1] : 1;
  int64_t rows = rank >= 2 ? shape[rank - 2] : 1;
  numMatrices = 1;
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    numMatrices *= shape[dim];
  // More rows than any key tile has, unless that makes the buffer huge.
  int64_t guardRows =
      double(numMatrices) * double(columns) * 128 * width < 0x1p28 ? 128 : 8;
  matrixBytes = rows * columns * width;
  matrixStride = (rows + guardRows) * columns * width;
  numBytes = 2 * kGuardBytes + numMatrices * matrixStride;

  if (rank >= 2)
    strides[rank - 2] = columns;
  for (size_t dim = rank; dim-- > 2;)
    strides[dim - 2] = dim == rank - 1 ? (rows + guardRows) * columns
                                       : strides[dim - 1] * shape[dim - 1];
}

std::vector<std::byte> DeviceImage::makePoison() const {
  return std::vector<std::byte>(numBytes, kGuard);
}

std::vector<std::byte> DeviceImage::pack(const HostTensor &tensor) const {
  std::vector<std::byte> buffer = makePoison();
  for (size_t matrix = 0; matrix < numMatrices && matrixBytes; ++matrix)
    std::memcpy(buffer.data() + kGuardBytes + matrix * matrixStride,
                tensor.data() + matrix * matrixBytes, matrixBytes);
  return buffer;
}

HostTensor DeviceImage::unpack(const std::vector<std::byte> &buffer) const {
  HostTensor tensor(type, shape);
  for (size_t matrix = 0; matrix < numMatrices && matrixBytes; ++matrix)
    std::memcpy(tensor.data() + matrix * matrixBytes,
                buffer.data() + kGuardBytes + matrix * matrixStride,
                matrixBytes);
  return tensor;
}

bool DeviceImage::hasIntactGuards(const std::vector<std::byte> &buffer) const {
  auto isGuard = [&](size_t begin, size_t end) {
    return std::all_of(buffer.begin() + begin, buffer.begin() + end,
                       [](std::byte byte) { return byte == kGuard; });
  };
  if (!isGuard(0, kGuardBytes))
    return false;
  for (size_t matrix = 0; matrix < numMatrices; ++matrix) {
    size_t begin = kGuardBytes + matrix * matrixStride;
    if (!isGuard(begin + matrixBytes, begin + matrixStride))
      return false;
  }
  return isGuard(kGuardBytes + numMatrices * matrixStride, numBytes);
}
