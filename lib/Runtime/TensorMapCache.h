//===- TensorMapCache.h - Encoded tensor maps -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_TENSORMAPCACHE_H
#define ATTNFUSE_LIB_RUNTIME_TENSORMAPCACHE_H

#include "attnfuse/Runtime/Binding.h"
#include "attnfuse/Runtime/CudaDevice.h"
#include <mutex>

namespace attnfuse {

/// Encodes tensor maps and keeps the last used of them, so that launches on the
/// same tensors encode nothing. A map depends on nothing but its request: it
/// never becomes stale. Any number of threads may use a cache.
class TensorMapCache {
public:
  /// How many maps are kept: those of several launches.
  static constexpr size_t kCapacity = 64;

  /// The driver must have `tensorMapEncodeTiled`.
  explicit TensorMapCache(CudaDeviceRef device) : device(std::move(device)) {}

  /// Sets `map`. Errors leave it to the caller to name the tensor.
  Status get(const TensorMapRequest &request, CUtensorMap &map);

private:
  Status encode(const TensorMapRequest &request, CUtensorMap &map) const;

  struct Entry {
    TensorMapRequest request;
    CUtensorMap map;
    /// The value of `numUses` at the last use.
    uint64_t lastUse;
  };

  CudaDeviceRef device;
  std::mutex mutex;
  std::vector<Entry> entries;
  uint64_t numUses = 0;
};

} // namespace attnfuse

#endif // ATTNFUSE_LIB_RUNTIME_TENSORMAPCACHE_H
