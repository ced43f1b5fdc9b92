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
#include <vector>

struct FakeLaunch {
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  unsigned shared;
  attnfuse::CUstream stream;
  std::vector<uint64_t> parameters;
};

struct FakeCudaLog {
  /// Objects alive, by kind.
  int retained = 0, pushed = 0, modules = 0, streams = 0, events = 0,
      allocations = 0;
  std::string image;
  std::map<int, int> attributes;
  /// The driver knows it from the PTX; here the test says it.
  int parametersPerLaunch = 0;
  std::vector<FakeLaunch> launches;
};

/// The library exports `FakeCudaLog *fakeCudaLog()`.
using FakeCudaLogFunction = FakeCudaLog *();

#endif // ATTNFUSE_UNITTESTS_RUNTIME_FAKECUDA_H
