//===- Device.h - Something that runs a function ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_DEVICE_H
#define ATTNFUSE_LIB_RUNNER_DEVICE_H

#include "DeviceImage.h"
#include "attnfuse/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <vector>

namespace mlir::attnfuse {

/// A function, compiled for a device. One serves calls of all sizes.
class DeviceFunction {
public:
  virtual ~DeviceFunction() = default;

  /// Runs once, or `numRuns` times with results that must not differ in one
  /// bit. The results come shaped and poisoned. What is written outside of
  /// them is an error.
  virtual llvm::Error run(ArrayRef<::attnfuse::HostTensor> arguments,
                          MutableArrayRef<::attnfuse::HostTensor> results,
                          int numRuns) = 0;

  struct Timing {
    /// Seconds that each of many runs took, unordered. On a GPU each starts
    /// with a cold L2 cache.
    std::vector<double> runs;
    /// Seconds a run where runs follow each other without a gap, as in a CUDA
    /// graph; only on a GPU.
    std::optional<double> backToBack;
  };
  virtual llvm::Expected<Timing>
  time(ArrayRef<::attnfuse::HostTensor> arguments,
       ArrayRef<::attnfuse::HostTensor> results) = 0;
};

class Device {
public:
  virtual ~Device() = default;
  /// For readers: "cpu", "cuda:0 (NVIDIA H200)".
  virtual std::string getName() const = 0;
  /// Compiles `function`, the only one in `module`.
  virtual llvm::Expected<std::unique_ptr<DeviceFunction>>
  compile(ModuleOp module, StringRef function) = 0;
};

std::unique_ptr<Device> makeCpuDevice();

/// Opens a CUDA device. `chip` names the machine to compile for; if it is
/// empty, the device's own. `rotation` and `keySplits` are those of
/// CompileOptions. Functions get their tensors in `layout`.
llvm::Expected<std::unique_ptr<Device>>
makeCudaDevice(int ordinal, StringRef chip, StringRef rotation,
               int64_t keySplits, ::attnfuse::MemoryLayout layout);

/// Bitwise equality.
bool isSame(const ::attnfuse::HostTensor &a, const ::attnfuse::HostTensor &b);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_DEVICE_H
