//===- FakeCuda.cpp - A driver library without a device -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exports the functions of CudaSymbols.def with host memory behind them and a
// log of what was asked for, so that the runtime is tested to the last call on
// a machine without a GPU. Behaviour is steered by environment variables:
//   FAKE_CUDA_INIT        code that cuInit returns
//   FAKE_CUDA_COUNT       number of devices
//   FAKE_CUDA_CAPABILITY  ten times the major plus the minor; else 86
//   FAKE_CUDA_JIT         the assembler's log; loading then fails
//   FAKE_CUDA_REFUSE      PTX that holds this text does not load
//   FAKE_CUDA_TRACE       file that each launch of a kernel in PTX adds a line
//     to: its name, grid, block, shared memory, stream and parameters
//   FAKE_CUDA_MAPS        "strict" refuses tensor maps with a stride of 0,
//     "none" all
//   FAKE_CUDA_CLOCK       "threads": a launch takes a microsecond for each
//     thread of a block; else events are 1.5 ms apart
//   FAKE_CUDA_FAULT       a launch of so many threads a block is the last that
//     succeeds
// Built with FAKE_CUDA_WITHOUT_TENSOR_MAPS it is a driver before CUDA 12.0.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {
FakeCudaLog callLog;

/// Handles of kernels and of events count from these.
constexpr uintptr_t kFirstKernel = 0x30, kFirstEvent = 0x50;

/// For the log and what is below: threads may call at once.
std::mutex mutex;
using Lock = std::lock_guard<std::mutex>;
/// Milliseconds of all launches, and when each event was recorded.
double clockTime = 0;
std::vector<double> eventTimes;
bool isBroken = false;

int readNumber(const char *variable, int otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

/// The sizes of what `kernel` of the PTX in the log takes, as the driver reads
/// them; empty if it is not PTX.
std::vector<size_t> readParameterSizes(const std::string &kernel) {
  std::vector<size_t> sizes;
  const std::string &ptx = callLog.image;
  size_t start = ptx.find(".entry " + kernel + "(");
  if (start == std::string::npos)
    return sizes;
  size_t end = ptx.find(')', start);
  while ((start = ptx.find(".param", start + 1)) < end) {
    size_t line = std::min(ptx.find('\n', start), end);
    size_t array = ptx.find('[', start);
    sizes.push_back(array < line ? std::atoi(&ptx[array + 1]) : 8);
  }
  return sizes;
}

void trace(const FakeLaunch &launch) {
  const char *path = std::getenv("FAKE_CUDA_TRACE");
  std::FILE *file = path ? std::fopen(path, "a") : nullptr;
  if (!file)
    return;
  std::fprintf(file, "%s grid %u %u %u block %u %u %u shared %u stream %zx:",
               launch.kernel.c_str(), launch.grid[0], launch.grid[1],
               launch.grid[2], launch.block[0], launch.block[1],
               launch.block[2], launch.shared,
               reinterpret_cast<uintptr_t>(launch.stream));
  for (uint64_t word : launch.parameters)
    std::fprintf(file, " %llx", static_cast<unsigned long long>(word));
  std::fputc('\n', file);
  std::fclose(file);
}

template <typename Handle>
Handle makeHandle(uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}
} // namespace

using namespace attnfuse;

extern "C" {
FakeCudaLog *fakeCudaLog() { return &callLog; }

CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == 1     ? "CUDA_ERROR_INVALID_VALUE"
          : code == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 218 ? "CUDA_ERROR_INVALID_PTX"
          : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                        : nullptr;
  return *name ? 0 : 1;
}
CUresult cuGetErrorString(CUresult code, const char **text) {
  *text = code == 1     ? "invalid argument"
          : code == 2   ? "out of memory"
          : code == 100 ? "no CUDA-capable device is detected"
          : code == 218 ? "a PTX JIT compilation failed"
          : code == 700 ? "an illegal memory access was encountered"
                        : nullptr;
  return *text ? 0 : 1;
}
CUresult cuInit(unsigned) { return readNumber("FAKE_CUDA_INIT", 0); }
CUresult cuDriverGetVersion(int *version) {
  *version = 12000;
  return 0;
}
CUresult cuDeviceGetCount(int *count) {
  *count = readNumber("FAKE_CUDA_COUNT", 1);
  return 0;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return 0;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  std::strncpy(name, "Fake GPU", size);
  return 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  switch (attribute) {
  case 16: // multiprocessors
    *value = 13;
    return 0;
  case 75: // compute capability
    *value = readNumber("FAKE_CUDA_CAPABILITY", 86) / 10;
    return 0;
  case 76:
    *value = readNumber("FAKE_CUDA_CAPABILITY", 86) % 10;
    return 0;
  case 97: // shared memory
    *value = (readNumber("FAKE_CUDA_CAPABILITY", 86) == 90 ? 227 : 99) * 1024;
    return 0;
  default:
    return 1;
  }
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  Lock lock(mutex);
  ++callLog.retained;
  *context = makeHandle<CUcontext>(0x10);
  return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  Lock lock(mutex);
  --callLog.retained;
  return 0;
}
CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return 0;
}
CUresult cuCtxPushCurrent_v2(CUcontext) {
  Lock lock(mutex);
  ++callLog.pushed;
  return 0;
}
CUresult cuCtxPopCurrent_v2(CUcontext *) {
  Lock lock(mutex);
  --callLog.pushed;
  return 0;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            int *options, void **values) {
  Lock lock(mutex);
  callLog.image = static_cast<const char *>(image);
  const char *refused = std::getenv("FAKE_CUDA_REFUSE");
  if (refused && callLog.image.find(refused) != std::string::npos)
    return 218;
  if (const char *text = std::getenv("FAKE_CUDA_JIT")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5)
        std::strcpy(static_cast<char *>(values[i]), text);
    return 218;
  }
  ++callLog.modules;
  *module = makeHandle<CUmodule>(0x20);
  return 0;
}
CUresult cuModuleUnload(CUmodule) {
  Lock lock(mutex);
  --callLog.modules;
  return 0;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  Lock lock(mutex);
  if (std::string(name).find("missing") != std::string::npos)
    return 500;
  auto &kernels = callLog.kernels;
  size_t index =
      std::find(kernels.begin(), kernels.end(), name) - kernels.begin();
  if (index == kernels.size())
    kernels.push_back(name);
  *function = makeHandle<CUfunction>(kFirstKernel + index);
  return 0;
}
CUresult cuFuncGetAttribute(int *value, int, CUfunction) {
  *value = 0;
  return 0;
}
CUresult cuFuncSetAttribute(CUfunction, int attribute, int value) {
  Lock lock(mutex);
  callLog.attributes[attribute] = value;
  return 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction kernel,
                          void **parameters, void **) {
  size_t index = reinterpret_cast<uintptr_t>(kernel) - kFirstKernel;
  if (index >= callLog.kernels.size())
    return 400;
  FakeLaunch launch{callLog.kernels[index],
                    {config->grid[0], config->grid[1], config->grid[2]},
                    {config->block[0], config->block[1], config->block[2]},
                    config->sharedMemory,
                    config->stream,
                    {},
                    false};
  for (unsigned i = 0; i < config->numAttributes; ++i)
    launch.startsEarly |=
        config->attributes[i].id == 6 && config->attributes[i].value[0] == 1;
  // Kernels of one launch may differ in their parameters.
  auto known = callLog.parameterSizesOf.find(launch.kernel);
  std::vector<size_t> sizes = known == callLog.parameterSizesOf.end()
                                  ? callLog.parameterSizes
                                  : known->second;
  if (std::getenv("FAKE_CUDA_TRACE"))
    sizes = readParameterSizes(launch.kernel);
  for (size_t size : sizes) {
    // Tensor maps keep their alignment; other parameters have that of a word.
    const void *parameter = *parameters++;
    size_t alignment = size == sizeof(CUtensorMap) ? 64 : 8;
    if (reinterpret_cast<uintptr_t>(parameter) % alignment != 0)
      return 1;
    auto *words = static_cast<const uint64_t *>(parameter);
    launch.parameters.insert(launch.parameters.end(), words, words + size / 8);
  }
  Lock lock(mutex);
  if (isBroken)
    return 700;
  isBroken = readNumber("FAKE_CUDA_FAULT", 0) == int(launch.block[0]);
  clockTime += launch.block[0] * 1e-3;
  callLog.launches.push_back(launch);
  trace(launch);
  return 0;
}
#ifndef FAKE_CUDA_WITHOUT_TENSOR_MAPS
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank,
                                void *address, const uint64_t *sizes,
                                const uint64_t *byteStrides,
                                const uint32_t *box,
                                const uint32_t *elementStrides, int interleave,
                                int swizzle, int promotion, int fill) {
  if (callLog.pushed == 0)
    return 201;
  if (rank < 3 || rank > 5 || reinterpret_cast<uintptr_t>(map) % 64 != 0 ||
      reinterpret_cast<uintptr_t>(address) % 16 != 0)
    return 1;
  const char *text = std::getenv("FAKE_CUDA_MAPS");
  std::string maps = text ? text : "";
  if (maps == "none")
    return 1;
  bool isStrict = maps == "strict";
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] < 1 || sizes[i] > uint64_t(1) << 32 || box[i] < 1 ||
        box[i] > 256 || elementStrides[i] != 1)
      return 1;
    if (i + 1 < rank &&
        (byteStrides[i] % 16 != 0 || byteStrides[i] >= uint64_t(1) << 40 ||
         (isStrict && byteStrides[i] == 0)))
      return 1;
  }
  // 128 bytes are all that this swizzle takes of a row.
  if (swizzle == 3 && box[0] * (type == 6 || type == 9 ? 2 : 4) > 128)
    return 1;
  for (int i = 0; i < 16; ++i)
    map->opaque[i] = callLog.tensorMaps.size() + 0x1001 * i;
  callLog.tensorMaps.push_back({type,
                                reinterpret_cast<uint64_t>(address),
                                {sizes, sizes + rank},
                                {byteStrides, byteStrides + rank - 1},
                                {box, box + rank},
                                {elementStrides, elementStrides + rank},
                                interleave,
                                swizzle,
                                promotion,
                                fill});
  return 0;
}
#endif
CUresult cuStreamCreate(CUstream *stream, unsigned) {
  Lock lock(mutex);
  ++callLog.streams;
  *stream = makeHandle<CUstream>(0x40);
  return 0;
}
CUresult cuStreamDestroy_v2(CUstream) {
  Lock lock(mutex);
  --callLog.streams;
  return 0;
}
CUresult cuStreamSynchronize(CUstream) {
  Lock lock(mutex);
  return isBroken ? 700 : 0;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
  Lock lock(mutex);
  ++callLog.events;
  *event = makeHandle<CUevent>(kFirstEvent + eventTimes.size());
  eventTimes.push_back(0);
  return 0;
}
CUresult cuEventDestroy_v2(CUevent) {
  Lock lock(mutex);
  --callLog.events;
  return 0;
}
CUresult cuEventRecord(CUevent event, CUstream) {
  Lock lock(mutex);
  eventTimes[reinterpret_cast<uintptr_t>(event) - kFirstEvent] = clockTime;
  return 0;
}
CUresult cuEventSynchronize(CUevent) { return 0; }
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  Lock lock(mutex);
  auto getTime = [](CUevent event) {
    return eventTimes[reinterpret_cast<uintptr_t>(event) - kFirstEvent];
  };
  const char *clock = std::getenv("FAKE_CUDA_CLOCK");
  *milliseconds = clock && std::string(clock) == "threads"
                      ? float(getTime(end) - getTime(start))
                      : 1.5f;
  return 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (bytes > (size_t(1) << 30))
    return 2;
  ++callLog.allocations;
  // As the driver aligns it.
  *address = reinterpret_cast<CUdeviceptr>(
      std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return 0;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  --callLog.allocations;
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  if (properties->allocationType != 1 || properties->locationType != 1)
    return 1;
  ++callLog.pools;
  *pool = makeHandle<CUmemoryPool>(0x60);
  return 0;
}
CUresult cuMemPoolDestroy(CUmemoryPool) {
  --callLog.pools;
  return 0;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool, int attribute, void *value) {
  return attribute == 4 && *static_cast<uint64_t *>(value) == ~uint64_t(0) ? 0
                                                                           : 1;
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes,
                                 CUmemoryPool, CUstream) {
  if (bytes > (size_t(1) << 30))
    return 2;
  ++callLog.pooled;
  callLog.pooledBytes.push_back(bytes);
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, bytes));
  return 0;
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
  --callLog.pooled;
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes) {
  std::memcpy(reinterpret_cast<void *>(target), source, bytes);
  return 0;
}
CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes) {
  std::memcpy(target, reinterpret_cast<const void *>(source), bytes);
  return 0;
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes,
                         CUstream) {
  // A fill of so much only empties caches, which takes long here.
  if (bytes < size_t(1) << 28)
    std::memset(reinterpret_cast<void *>(target), value, bytes);
  return 0;
}
}
