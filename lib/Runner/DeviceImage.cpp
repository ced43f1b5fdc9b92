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

std::optional<MemoryLayout> attnfuse::parseMemoryLayout(std::string_view name) {
  if (name == "bhnd")
    return MemoryLayout::BHND;
  if (name == "bnhd")
    return MemoryLayout::BNHD;
  if (name == "strided")
    return MemoryLayout::Strided;
  return std::nullopt;
}

ImageLayout attnfuse::getImageLayout(MemoryLayout layout,
                                     const ManifestTensor &tensor) {
  ImageLayout image;
  if (layout == MemoryLayout::BHND)
    return image;
  bool isPerHead = tensor.role == "query" || tensor.role == "key" ||
                   tensor.role == "value" || tensor.role == "output";
  image.interleavesHeads = isPerHead && tensor.shape.size() == 4;
  if (layout == MemoryLayout::BNHD)
    return image;
  // Odd multiples, so that nothing but what is demanded holds.
  image.rowPadding = 3 * tensor.strideMultiple;
  image.columnStride = tensor.unitInnerStride ? 1 : 2;
  image.shift =
      std::max<int64_t>(1, tensor.alignment / getElementSize(tensor.type));
  return image;
}

DeviceImage::DeviceImage(ElementType type, std::vector<int64_t> tensorShape,
                         ImageLayout layout)
    : type(type), shape(std::move(tensorShape)),
      strides(shape.size(), layout.columnStride) {
  size_t rank = shape.size(), width = getElementSize(type);
  int64_t columns = rank >= 1 ? shape[rank - 1] : 1;
  int64_t rows = rank >= 2 ? shape[rank - 2] : 1;
  int64_t numMatrices = 1;
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    numMatrices *= shape[dim];
  int64_t pitch = columns * layout.columnStride + layout.rowPadding;
  // More rows than any key tile has, unless that makes the buffer huge.
  int64_t guardRows =
      double(numMatrices) * double(pitch) * 128 * width < 0x1p28 ? 128 : 8;

  int64_t numElements;
  if (layout.interleavesHeads && rank == 4) {
    strides[1] = pitch;
    strides[2] = shape[1] * pitch + layout.rowPadding;
    strides[0] = (rows + guardRows) * strides[2];
    numElements = shape[0] * strides[0];
  } else {
    int64_t matrixStride = (rows + guardRows) * pitch;
    if (rank >= 2)
      strides[rank - 2] = pitch;
    for (size_t dim = rank; dim-- > 2;)
      strides[dim - 2] =
          dim == rank - 1 ? matrixStride : strides[dim - 1] * shape[dim - 1];
    numElements = numMatrices * matrixStride;
  }
  offset = kGuardBytes + layout.shift * width;
  numBytes = offset + numElements * width + kGuardBytes;

  int64_t runElements = 1;
  runRank = rank;
  while (runRank > 0 && strides[runRank - 1] == runElements)
    runElements *= shape[--runRank];
  runBytes = runElements * width;
}

template <typename Body>
void DeviceImage::forEachRun(Body body) const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return;
  size_t width = getElementSize(type), inTensor = 0;
  std::vector<int64_t> index(runRank, 0);
  int64_t element = 0;
  for (;;) {
    body(inTensor, offset + element * width);
    inTensor += runBytes;
    size_t dim = runRank;
    for (; dim > 0; --dim) {
      element += strides[dim - 1];
      if (++index[dim - 1] < shape[dim - 1])
        break;
      element -= index[dim - 1] * strides[dim - 1];
      index[dim - 1] = 0;
    }
    if (dim == 0)
      return;
  }
}

std::vector<std::byte> DeviceImage::makePoison() const {
  return std::vector<std::byte>(numBytes, kGuard);
}

std::vector<std::byte> DeviceImage::pack(const HostTensor &tensor) const {
  std::vector<std::byte> buffer = makePoison();
  forEachRun([&](size_t inTensor, size_t inBuffer) {
    std::memcpy(buffer.data() + inBuffer, tensor.data() + inTensor, runBytes);
  });
  return buffer;
}

HostTensor DeviceImage::unpack(const std::vector<std::byte> &buffer) const {
  HostTensor tensor(type, shape);
  forEachRun([&](size_t inTensor, size_t inBuffer) {
    std::memcpy(tensor.data() + inTensor, buffer.data() + inBuffer, runBytes);
  });
  return tensor;
}

bool DeviceImage::hasIntactGuards(const std::vector<std::byte> &buffer) const {
  std::vector<std::byte> guards = buffer;
  forEachRun([&](size_t, size_t inBuffer) {
    std::fill_n(guards.begin() + inBuffer, runBytes, kGuard);
  });
  return std::all_of(guards.begin(), guards.end(),
                     [](std::byte byte) { return byte == kGuard; });
}
