//===- FakeCuda.h - What the fake driver saw --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_UNITTESTS_RUNTIME_FAKECUDA_H
#define ATTNFUSE_UNITTESTS_RUNTIME_FAKECUDA_H

#include "attnfuse/Runtime/CudaDriver.h"
#include <array>
#include <map>
#include <string>
#include <vector>

struct FakeLaunch {
  std::string kernel;
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  unsigned shared;
  attnfuse::CUstream stream;
  /// All parameters' words, one after the other.
  std::vector<uint64_t> parameters;
  /// While the kernel before it runs.
  bool startsEarly;
};

/// The arguments of cuTensorMapEncodeTiled. Word 0 of the map is then the index
/// in the log, words 1 to 15 are multiples of 0x1001 more each.
struct FakeTensorMap {
  int type;
  uint64_t address;
  std::vector<uint64_t> sizes, byteStrides;
  std::vector<uint32_t> box, elementStrides;
  int interleave, swizzle, promotion, fill;
};

struct FakeCudaLog {
  /// Objects alive, by kind.
  int retained = 0, pushed = 0, modules = 0, streams = 0, events = 0,
      allocations = 0, pools = 0, pooled = 0;
  /// Of all allocations from pools.
  std::vector<size_t> pooledBytes;
  std::string image;
  std::map<int, int> attributes;
  /// Kernels that were looked up, each once.
  std::vector<std::string> kernels;
  /// The driver knows them from the PTX; here the test says them.
  std::vector<size_t> parameterSizes;
  /// Of kernels that have others.
  std::map<std::string, std::vector<size_t>> parameterSizesOf;
  std::vector<FakeTensorMap> tensorMaps;
  std::vector<FakeLaunch> launches;
};

/// The library exports `FakeCudaLog *fakeCudaLog()`.
using FakeCudaLogFunction = FakeCudaLog *();

#endif // ATTNFUSE_UNITTESTS_RUNTIME_FAKECUDA_H
