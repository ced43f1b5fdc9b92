//===- CudaDevice.cpp - Devices and what is allocated on them -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/CudaDevice.h"
#include <algorithm>
#include <cstring>

using namespace attnfuse;

// Numbers of cuda.h's enumerations.
namespace {
constexpr int kDeviceNumMultiprocessors = 16;
constexpr int kDeviceCapabilityMajor = 75;
constexpr int kDeviceCapabilityMinor = 76;
constexpr int kDeviceMaxSharedPerBlockOptin = 97;
constexpr int kFuncMaxDynamicShared = 8;
constexpr int kFuncPreferredSharedCarveout = 9;
constexpr int kFuncStaticShared = 1;
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferSize = 6;
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kAllocationPinned = 1;
constexpr int kLocationDevice = 1;
constexpr int kPoolReleaseThreshold = 4;

/// Dynamic shared memory that a kernel may use without asking.
constexpr int64_t kSharedWithoutOptin = 48 * 1024;
constexpr int kCarveoutMaxShared = 100;
} // namespace

//===----------------------------------------------------------------------===//
// CudaDevice
//===----------------------------------------------------------------------===//

Result<std::shared_ptr<const CudaDevice>>
CudaDevice::open(std::shared_ptr<const CudaDriver> driver, int ordinal) {
  Result<int> count = driver->getDeviceCount();
  if (!count)
    return count.error();
  if (ordinal < 0 || ordinal >= *count)
    return Error{"no CUDA device " + std::to_string(ordinal) +
                 "; expected 0 to " + std::to_string(*count - 1)};

  std::shared_ptr<CudaDevice> self(new CudaDevice(std::move(driver)));
  const CudaDriver &api = *self->driver;
  self->ordinal = ordinal;
  char name[256] = {};
  if (Status status = api.check(api.deviceGet(&self->device, ordinal),
                                "opening device " + std::to_string(ordinal));
      !status.ok())
    return status.error();
  if (Status status =
          api.check(api.deviceGetName(name, sizeof(name) - 1, self->device),
                    "reading the device's name");
      !status.ok())
    return status.error();
  self->name = name;

  int major = 0, minor = 0;
  for (auto [attribute, value] :
       {std::pair(kDeviceCapabilityMajor, &major),
        std::pair(kDeviceCapabilityMinor, &minor),
        std::pair(kDeviceMaxSharedPerBlockOptin, &self->maxSharedPerBlock),
        std::pair(kDeviceNumMultiprocessors, &self->numMultiprocessors)}) {
    Result<int> read = self->getAttribute(attribute);
    if (!read)
      return read.error();
    *value = *read;
  }
  self->capability = 10 * major + minor;

  if (Status status = api.check(
          api.primaryCtxRetain(&self->context, self->device),
          "creating the context of device " + std::to_string(ordinal));
      !status.ok()) {
    self->context = nullptr;
    return status.error();
  }
  return std::shared_ptr<const CudaDevice>(std::move(self));
}

CudaDevice::~CudaDevice() {
  if (pool)
    driver->memPoolDestroy(pool);
  if (context)
    driver->primaryCtxRelease(device);
}

Result<int> CudaDevice::getAttribute(int attribute) const {
  int value = 0;
  if (Status status = driver->check(
          driver->deviceGetAttribute(&value, attribute, device),
          "reading attribute " + std::to_string(attribute) + " of the device");
      !status.ok())
    return status.error();
  return value;
}

Result<CUmemoryPool> CudaDevice::getPool() const {
  std::lock_guard<std::mutex> lock(poolMutex);
  if (pool)
    return pool;
  CUmemPoolProps properties = {};
  properties.allocationType = kAllocationPinned;
  properties.locationType = kLocationDevice;
  properties.locationId = ordinal;
  CUmemoryPool created = nullptr;
  if (Status status =
          call("creating a memory pool",
               [&] { return driver->memPoolCreate(&created, &properties); });
      !status.ok())
    return status.error();
  // Otherwise every synchronization gives the memory back to the system.
  uint64_t keepAll = ~uint64_t(0);
  if (Status status = call("setting up a memory pool",
                           [&] {
                             return driver->memPoolSetAttribute(
                                 created, kPoolReleaseThreshold, &keepAll);
                           });
      !status.ok()) {
    driver->memPoolDestroy(created);
    return status.error();
  }
  pool = created;
  return pool;
}

//===----------------------------------------------------------------------===//
// PooledMemory
//===----------------------------------------------------------------------===//

Result<PooledMemory> PooledMemory::allocate(CudaDeviceRef device, size_t bytes,
                                            CUstream stream) {
  Result<CUmemoryPool> pool = device->getPool();
  if (!pool)
    return pool.error();
  PooledMemory memory;
  memory.device = std::move(device);
  memory.stream = stream;
  const CudaDriver &api = memory.device->getDriver();
  Status status = memory.device->call(
      "allocating a workspace of " + std::to_string(bytes) +
          " bytes of device memory",
      [&] {
        return api.memAllocFromPoolAsync(&memory.address, bytes, *pool, stream);
      });
  if (!status.ok()) {
    memory.address = 0;
    return status.error();
  }
  return memory;
}

PooledMemory::~PooledMemory() {
  if (!address)
    return;
  const CudaDriver &api = device->getDriver();
  (void)device->call("freeing a workspace",
                     [&] { return api.memFreeAsync(address, stream); });
}

//===----------------------------------------------------------------------===//
// DeviceBuffer
//===----------------------------------------------------------------------===//

Result<DeviceBuffer> DeviceBuffer::allocate(CudaDeviceRef device,
                                            size_t bytes) {
  DeviceBuffer buffer;
  buffer.device = std::move(device);
  if (bytes == 0)
    return buffer;
  const CudaDriver &api = buffer.device->getDriver();
  Status status = buffer.device->call(
      "allocating " + std::to_string(bytes) + " bytes of device memory",
      [&] { return api.memAlloc(&buffer.address, bytes); });
  if (!status.ok()) {
    buffer.address = 0;
    return status.error();
  }
  buffer.bytes = bytes;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (!address)
    return;
  const CudaDriver &api = device->getDriver();
  (void)device->call("freeing device memory",
                     [&] { return api.memFree(address); });
}

Status DeviceBuffer::checkRange(size_t count, size_t offset) const {
  if (offset > bytes || count > bytes - offset)
    return Error{"expected a range of a buffer of " + std::to_string(bytes) +
                 " bytes, got " + std::to_string(count) + " bytes at " +
                 std::to_string(offset)};
  return {};
}

Status DeviceBuffer::copyFromHost(const void *source, size_t count,
                                  size_t offset) {
  if (Status status = checkRange(count, offset); !status.ok() || count == 0)
    return status;
  const CudaDriver &api = device->getDriver();
  Status status = device->call("copying to the device", [&] {
    return api.memcpyHtoD(address + offset, source, count);
  });
  if (!status.ok())
    return status;
  // From pageable memory the call returns when the data is staged; the transfer
  // itself is on the default stream, which our streams do not wait for.
  return device->call("copying to the device",
                      [&] { return api.streamSynchronize(nullptr); });
}

Status DeviceBuffer::copyToHost(void *target, size_t count,
                                size_t offset) const {
  if (Status status = checkRange(count, offset); !status.ok() || count == 0)
    return status;
  const CudaDriver &api = device->getDriver();
  return device->call("copying from the device", [&] {
    return api.memcpyDtoH(target, address + offset, count);
  });
}

Status DeviceBuffer::fill(unsigned char value, CUstream stream) {
  if (bytes == 0)
    return {};
  const CudaDriver &api = device->getDriver();
  return device->call("filling device memory", [&] {
    return api.memsetD8Async(address, value, bytes, stream);
  });
}

//===----------------------------------------------------------------------===//
// CudaStream and CudaEvent
//===----------------------------------------------------------------------===//

Result<CudaStream> CudaStream::create(CudaDeviceRef device) {
  CudaStream self;
  self.device = std::move(device);
  const CudaDriver &api = self.device->getDriver();
  Status status = self.device->call("creating a stream", [&] {
    return api.streamCreate(&self.stream, kStreamNonBlocking);
  });
  if (!status.ok()) {
    self.stream = nullptr;
    return status.error();
  }
  return self;
}

CudaStream::~CudaStream() {
  if (!stream)
    return;
  const CudaDriver &api = device->getDriver();
  (void)device->call("destroying a stream",
                     [&] { return api.streamDestroy(stream); });
}

Status CudaStream::synchronize() const {
  const CudaDriver &api = device->getDriver();
  return device->call("waiting for the stream",
                      [&] { return api.streamSynchronize(stream); });
}

Result<CudaEvent> CudaEvent::create(CudaDeviceRef device) {
  CudaEvent self;
  self.device = std::move(device);
  const CudaDriver &api = self.device->getDriver();
  Status status = self.device->call(
      "creating an event", [&] { return api.eventCreate(&self.event, 0); });
  if (!status.ok()) {
    self.event = nullptr;
    return status.error();
  }
  return self;
}

CudaEvent::~CudaEvent() {
  if (!event)
    return;
  const CudaDriver &api = device->getDriver();
  (void)device->call("destroying an event",
                     [&] { return api.eventDestroy(event); });
}

Status CudaEvent::record(CUstream stream) {
  const CudaDriver &api = device->getDriver();
  return device->call("recording an event",
                      [&] { return api.eventRecord(event, stream); });
}

Status CudaEvent::synchronize() const {
  const CudaDriver &api = device->getDriver();
  return device->call("waiting for an event",
                      [&] { return api.eventSynchronize(event); });
}

Result<float> CudaEvent::getMillisecondsSince(const CudaEvent &start) const {
  float milliseconds = 0;
  const CudaDriver &api = device->getDriver();
  Status status = device->call("reading the time between events", [&] {
    return api.eventElapsedTime(&milliseconds, start.event, event);
  });
  if (!status.ok())
    return status.error();
  return milliseconds;
}

//===----------------------------------------------------------------------===//
// CudaModule
//===----------------------------------------------------------------------===//

Result<std::shared_ptr<const CudaModule>>
CudaModule::load(CudaDeviceRef device, const std::string &image) {
  std::shared_ptr<CudaModule> self(new CudaModule);
  self->device = std::move(device);
  const CudaDriver &api = self->device->getDriver();

  char log[8192] = {};
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSize};
  // Option values that are numbers are passed in the pointer itself.
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  Status status = self->device->call("loading the compiled module", [&] {
    return api.moduleLoadDataEx(&self->module, image.c_str(), 2, options,
                                values);
  });
  if (status.ok())
    return std::shared_ptr<const CudaModule>(std::move(self));
  self->module = nullptr;
  std::string message =
      status.error().message + " on " + self->device->getName() +
      " (compute capability " +
      std::to_string(self->device->getCapability() / 10) + "." +
      std::to_string(self->device->getCapability() % 10) + ")";
  if (std::strlen(log) > 0)
    message += "; the driver's assembler says:\n" + std::string(log);
  return Error{message};
}

CudaModule::~CudaModule() {
  if (!module)
    return;
  const CudaDriver &api = device->getDriver();
  (void)device->call("unloading a module",
                     [&] { return api.moduleUnload(module); });
}

Result<CUfunction> CudaModule::getKernel(const std::string &name,
                                         int64_t sharedMemory) const {
  const CudaDriver &api = device->getDriver();
  CUfunction kernel = nullptr;
  int staticShared = 0;
  Status status = device->call("finding kernel '" + name + "'", [&] {
    if (CUresult code = api.moduleGetFunction(&kernel, module, name.c_str()))
      return code;
    return api.funcGetAttribute(&staticShared, kFuncStaticShared, kernel);
  });
  if (!status.ok())
    return status.error();

  int64_t available = int64_t(device->getMaxSharedPerBlock()) - staticShared;
  if (sharedMemory > available)
    return Error{"kernel '" + name + "' needs " + std::to_string(sharedMemory) +
                 " bytes of dynamic shared memory, " + device->getName() +
                 " has " + std::to_string(available) +
                 "; compile for its own chip"};
  status = device->call("preparing kernel '" + name + "'", [&] {
    if (sharedMemory + staticShared > kSharedWithoutOptin)
      if (CUresult code = api.funcSetAttribute(kernel, kFuncMaxDynamicShared,
                                               int(sharedMemory)))
        return code;
    return api.funcSetAttribute(kernel, kFuncPreferredSharedCarveout,
                                kCarveoutMaxShared);
  });
  if (!status.ok())
    return status.error();
  return kernel;
}
