//===- DeviceImage.h - A tensor among guard bytes ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_DEVICEIMAGE_H
#define ATTNFUSE_LIB_RUNNER_DEVICEIMAGE_H

#include "attnfuse/Runtime/Manifest.h"
#include "attnfuse/Support/HostTensor.h"

namespace attnfuse {

/// How q, k, v and the output are stored.
enum class MemoryLayout {
  /// [B, H, N, D].
  BHND,
  /// [B, N, H, D].
  BNHD,
  /// [B, N, H, D] with guards after each row. Here all other tensors are as
  /// scattered and as badly aligned as the manifest allows, too.
  Strided
};

/// "bhnd", "bnhd" or "strided".
std::optional<MemoryLayout> parseMemoryLayout(std::string_view name);

/// How far the elements of a tensor lie apart; by default there is nothing but
/// guard rows between matrices. Numbers are in elements.
struct ImageLayout {
  /// [B, H, N, D] is stored as [B, N, H, D]: the rows of all heads side by
  /// side.
  bool interleavesHeads = false;
  /// Guards after each row, and after the rows of all heads of one position.
  int64_t rowPadding = 0;
  /// From one column to the next.
  int64_t columnStride = 1;
  /// Where the first element lies after the leading guard bytes.
  int64_t shift = 0;
};

/// A layout that the manifest's entry of the tensor allows.
ImageLayout getImageLayout(MemoryLayout layout, const ManifestTensor &tensor);

/// How a tensor lies in a buffer of device memory:
///
///   guard | rows of the first matrix | guard rows | ... | guard
///
/// Guard bytes are 0xff, so that whoever reads them reads NaN (or -1). Every
/// matrix of the last two dimensions, or the matrices of all heads where they
/// are interleaved, is followed by guard rows: what lies beyond the last key of
/// a head is not the next head.
class DeviceImage {
public:
  DeviceImage(ElementType type, std::vector<int64_t> shape,
              ImageLayout layout = {});

  /// Bytes of the whole buffer, all of them guards and poison.
  std::vector<std::byte> makePoison() const;
  /// The buffer with the tensor in it.
  std::vector<std::byte> pack(const HostTensor &tensor) const;
  HostTensor unpack(const std::vector<std::byte> &buffer) const;
  /// True if all guard bytes are still as they were.
  bool hasIntactGuards(const std::vector<std::byte> &buffer) const;

  /// Where the first element lies, in bytes from the start of the buffer.
  size_t getOffset() const { return offset; }
  size_t getNumBytes() const { return numBytes; }
  /// In elements.
  const std::vector<int64_t> &getStrides() const { return strides; }

private:
  /// A multiple of every alignment that a kernel asks for.
  static constexpr size_t kGuardBytes = 512;

  /// Calls `body` with the byte of every run of elements that lie together, in
  /// the tensor and in the buffer, in the tensor's order.
  template <typename Body>
  void forEachRun(Body body) const;

  ElementType type;
  std::vector<int64_t> shape, strides;
  /// The dimensions from this one on lie together, as they do in the tensor,
  /// in runs of so many bytes.
  size_t runRank, runBytes;
  size_t offset, numBytes;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_RUNNER_DEVICEIMAGE_H
