//===- CudaDriver.h - The CUDA driver, loaded at run time -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here needs the CUDA toolkit, and nothing but a call of load() needs
// a driver. The types are those of cuda.h by layout.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNTIME_CUDADRIVER_H
#define ATTNFUSE_RUNTIME_CUDADRIVER_H

#include "attnfuse/Support/Result.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace attnfuse {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CudaContextHandle *;
using CUmodule = struct CudaModuleHandle *;
using CUfunction = struct CudaFunctionHandle *;
using CUstream = struct CudaStreamHandle *;
using CUevent = struct CudaEventHandle *;
using CUmemoryPool = struct CudaMemoryPoolHandle *;
/// A TMA descriptor; only the driver knows what the words are.
struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};

/// How cuLaunchKernelEx launches. Value and padding of an attribute take 64 and
/// 4 bytes whatever it is.
struct CUlaunchAttribute {
  int id;
  alignas(8) int value[16];
};
struct CUlaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedMemory;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned numAttributes;
};
/// Where the memory of a pool lies.
struct CUmemPoolProps {
  int allocationType;
  int handleTypes;
  int locationType;
  int locationId;
  void *securityAttributes;
  unsigned char reserved[64];
};

/// The functions of the driver, resolved and initialized.
class CudaDriver {
public:
  /// Loads the library and initializes the driver. Errors say whether the
  /// library is missing, lacks a function, or finds no usable driver.
  static Result<std::shared_ptr<const CudaDriver>>
  load(const std::string &library = "libcuda.so.1");
  ~CudaDriver();

  CudaDriver(const CudaDriver &) = delete;
  CudaDriver &operator=(const CudaDriver &) = delete;

  // Optional functions are null where the driver has none.
#define ATTNFUSE_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                       \
  CUresult(*MEMBER) PARAMETERS = nullptr;
#include "attnfuse/Runtime/CudaSymbols.def"

  /// Success, or "WHAT failed: NAME (description)".
  Status check(CUresult code, std::string_view what) const;

  /// The number of devices; an error if there is none.
  Result<int> getDeviceCount() const;

private:
  CudaDriver() = default;
  void *handle = nullptr;
};

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_CUDADRIVER_H
