//===- DeviceImage.h - A tensor among guard bytes ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_DEVICEIMAGE_H
#define ATTNFUSE_LIB_RUNNER_DEVICEIMAGE_H

#include "attnfuse/Support/HostTensor.h"

namespace attnfuse {

/// How a tensor lies in a buffer of device memory:
///
///   guard | rows of the first matrix | guard rows | ... | guard
///
/// Guard bytes are 0xff, so that whoever reads them reads NaN (or -1). Every
/// matrix of the last two dimensions is followed by guard rows: what lies
/// beyond the last key of a head is not the next head.
class DeviceImage {
public:
  DeviceImage(ElementType type, std::vector<int64_t> shape);

  /// Bytes of the whole buffer, all of them guards and poison.
  std::vector<std::byte> makePoison() const;
  /// The buffer with the tensor in it.
  std::vector<std::byte> pack(const HostTensor &tensor) const;
  HostTensor unpack(const std::vector<std::byte> &buffer) const;
  /// True if all guard bytes are still as they were.
  bool hasIntactGuards(const std::vector<std::byte> &buffer) const;

  /// Where the first element lies, in bytes from the start of the buffer.
  size_t getOffset() const { return kGuardBytes; }
  size_t getNumBytes() const { return numBytes; }
  /// In elements.
  const std::vector<int64_t> &getStrides() const { return strides; }

private:
  /// A multiple of every alignment that a kernel asks for.
  static constexpr size_t kGuardBytes = 512;

  ElementType type;
  std::vector<int64_t> shape, strides;
  /// Bytes of a matrix, from one matrix to the next, and how many there are.
  size_t matrixBytes, matrixStride, numMatrices;
  size_t numBytes;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_RUNNER_DEVICEIMAGE_H
