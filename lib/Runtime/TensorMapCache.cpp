//===- TensorMapCache.cpp - Encoded tensor maps ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMapCache.h"
#include <algorithm>

using namespace attnfuse;

// Numbers of cuda.h's enumerations.
namespace {
constexpr int kDataTypeFloat16 = 6;
constexpr int kDataTypeFloat32 = 7;
constexpr int kDataTypeBFloat16 = 9;
constexpr int kInterleaveNone = 0;
constexpr int kSwizzle128B = 3;
constexpr int kPromotionL2256B = 3;
constexpr int kFillZero = 0;
} // namespace

Status TensorMapCache::encode(const TensorMapRequest &request,
                              CUtensorMap &map) const {
  constexpr unsigned kRank = 4;
  const uint32_t box[kRank] = {request.boxColumns, request.box.rows,
                               request.box.heads, 1};
  const uint32_t elementStrides[kRank] = {1, 1, 1, 1};
  int type = request.type == ElementType::F32    ? kDataTypeFloat32
             : request.type == ElementType::BF16 ? kDataTypeBFloat16
                                                 : kDataTypeFloat16;
  // The driver refuses to encode without a current context.
  Status status = device->call("encoding the tensor map", [&] {
    return device->getDriver().tensorMapEncodeTiled(
        &map, type, kRank, reinterpret_cast<void *>(request.address),
        request.sizes.data(), request.byteStrides.data(), box, elementStrides,
        kInterleaveNone, kSwizzle128B, kPromotionL2256B, kFillZero);
  });
  if (status.ok())
    return status;
  // Drivers may refuse a stride of 0, and no other stride says the same.
  for (size_t i = 0; i < request.byteStrides.size(); ++i)
    if (request.byteStrides[i] == 0)
      return Error{"the driver cannot describe the stride 0 of dimension " +
                   std::to_string(2 - i) + "; make the tensor contiguous (" +
                   status.error().message + ")"};
  return status;
}

Status TensorMapCache::get(const TensorMapRequest &request, CUtensorMap &map) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry &entry) {
        return entry.request == request;
      });
  if (found != entries.end()) {
    found->lastUse = ++numUses;
    map = found->map;
    return {};
  }
  if (Status status = encode(request, map); !status.ok())
    return status;
  Entry entry{request, map, ++numUses};
  if (entries.size() < kCapacity) {
    entries.push_back(entry);
    return {};
  }
  *std::min_element(entries.begin(), entries.end(),
                    [](const Entry &a, const Entry &b) {
                      return a.lastUse < b.lastUse;
                    }) = entry;
  return {};
}
