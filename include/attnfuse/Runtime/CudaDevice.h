//===- CudaDevice.h - Devices and what is allocated on them -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Owners of driver objects. Each makes its device's primary context current
// for the calls that need one and restores the caller's afterwards, so they
// mix with any other user of the device (PyTorch, the CUDA runtime).
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNTIME_CUDADEVICE_H
#define ATTNFUSE_RUNTIME_CUDADEVICE_H

#include "attnfuse/Runtime/CudaDriver.h"
#include <mutex>

namespace attnfuse {

/// A device with its primary context retained.
class CudaDevice {
public:
  /// Opens device `ordinal`; errors name how many there are.
  static Result<std::shared_ptr<const CudaDevice>>
  open(std::shared_ptr<const CudaDriver> driver, int ordinal = 0);
  ~CudaDevice();

  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  const CudaDriver &getDriver() const { return *driver; }
  int getOrdinal() const { return ordinal; }
  const std::string &getName() const { return name; }
  /// Ten times the major plus the minor compute capability.
  int getCapability() const { return capability; }
  int getMaxSharedPerBlock() const { return maxSharedPerBlock; }
  int getNumMultiprocessors() const { return numMultiprocessors; }
  /// The attribute with the driver's number `attribute`.
  Result<int> getAttribute(int attribute) const;
  /// Memory for PooledMemory, which is kept from one launch to the next.
  Result<CUmemoryPool> getPool() const;

  /// Calls `function`, which returns a CUresult, with the context current.
  template <typename Function>
  Status call(std::string_view what, Function &&function) const {
    if (Status status = driver->check(driver->ctxPushCurrent(context),
                                      "entering the device's context");
        !status.ok())
      return status;
    Status status = driver->check(function(), what);
    CUcontext popped;
    driver->ctxPopCurrent(&popped);
    return status;
  }

private:
  explicit CudaDevice(std::shared_ptr<const CudaDriver> driver)
      : driver(std::move(driver)) {}
  std::shared_ptr<const CudaDriver> driver;
  int ordinal = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::string name;
  int capability = 0;
  int maxSharedPerBlock = 0;
  int numMultiprocessors = 0;
  /// Created when it is first asked for.
  mutable std::mutex poolMutex;
  mutable CUmemoryPool pool = nullptr;
};

using CudaDeviceRef = std::shared_ptr<const CudaDevice>;

/// An allocation of device memory. Empty buffers hold no memory.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  static Result<DeviceBuffer> allocate(CudaDeviceRef device, size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer &&other) { swap(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) {
    swap(other);
    return *this;
  }

  CUdeviceptr get() const { return address; }
  size_t size() const { return bytes; }

  /// Copies between the host and byte `offset` of the buffer, and waits.
  Status copyFromHost(const void *source, size_t count, size_t offset = 0);
  Status copyToHost(void *target, size_t count, size_t offset = 0) const;
  /// Sets every byte, in the order of `stream`.
  Status fill(unsigned char value, CUstream stream = nullptr);

private:
  void swap(DeviceBuffer &other) {
    std::swap(device, other.device);
    std::swap(address, other.address);
    std::swap(bytes, other.bytes);
  }
  Status checkRange(size_t count, size_t offset) const;

  CudaDeviceRef device;
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

/// Device memory in the order of a stream: it is there for what is launched on
/// the stream while this lives, and goes back to the device's pool after that.
class PooledMemory {
public:
  static Result<PooledMemory> allocate(CudaDeviceRef device, size_t bytes,
                                       CUstream stream);
  ~PooledMemory();
  PooledMemory(PooledMemory &&other)
      : device(std::move(other.device)),
        address(std::exchange(other.address, 0)), stream(other.stream) {}

  CUdeviceptr get() const { return address; }

private:
  PooledMemory() = default;
  CudaDeviceRef device;
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
};

/// A stream that does not synchronize with the legacy default stream.
class CudaStream {
public:
  static Result<CudaStream> create(CudaDeviceRef device);
  ~CudaStream();
  CudaStream(CudaStream &&other)
      : device(std::move(other.device)),
        stream(std::exchange(other.stream, nullptr)) {}

  CUstream get() const { return stream; }
  Status synchronize() const;

private:
  CudaStream() = default;
  CudaDeviceRef device;
  CUstream stream = nullptr;
};

/// An event with timing.
class CudaEvent {
public:
  static Result<CudaEvent> create(CudaDeviceRef device);
  ~CudaEvent();
  CudaEvent(CudaEvent &&other)
      : device(std::move(other.device)),
        event(std::exchange(other.event, nullptr)) {}

  Status record(CUstream stream);
  Status synchronize() const;
  /// Milliseconds from `start` to this event, both recorded and reached.
  Result<float> getMillisecondsSince(const CudaEvent &start) const;

private:
  CudaEvent() = default;
  CudaDeviceRef device;
  CUevent event = nullptr;
};

/// A loaded module.
class CudaModule {
public:
  /// Loads PTX text or a cubin. An error carries the assembler's log.
  static Result<std::shared_ptr<const CudaModule>>
  load(CudaDeviceRef device, const std::string &image);
  ~CudaModule();

  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  const CudaDeviceRef &getDevice() const { return device; }
  /// The kernel `name`, allowed `sharedMemory` bytes of dynamic shared memory.
  Result<CUfunction> getKernel(const std::string &name,
                               int64_t sharedMemory) const;

private:
  CudaModule() = default;
  CudaDeviceRef device;
  CUmodule module = nullptr;
};

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_CUDADEVICE_H
