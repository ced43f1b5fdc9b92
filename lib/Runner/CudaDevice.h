//===- CudaDevice.h - Runs functions on an NVIDIA GPU --------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_CUDADEVICE_H
#define ATTNFUSE_LIB_RUNNER_CUDADEVICE_H

#include "CudaFunction.h"
#include "attnfuse/Compiler/Compiler.h"

namespace mlir::attnfuse {

class CudaDevice : public Device {
public:
  /// Opens a device. `chip` names the machine to compile for; if it is empty,
  /// the device's own. `rotation` and `keySplits` are those of CompileOptions.
  /// Functions get their tensors in `layout`.
  static llvm::Expected<std::unique_ptr<CudaDevice>>
  open(int ordinal, StringRef chip, RotationChoice rotation, int64_t keySplits,
       ::attnfuse::MemoryLayout layout);

  std::string getName() const override;
  llvm::Expected<std::unique_ptr<DeviceFunction>>
  compile(ModuleOp module, StringRef function) override;

  /// The same. Threads may compile at once, each in a context of its own.
  llvm::Expected<std::unique_ptr<CudaFunction>>
  compileFunction(ModuleOp module, StringRef function) const;
  /// For PTX.
  const CompileOptions &getOptions() const { return options; }

private:
  CudaDevice(::attnfuse::CudaDeviceRef device, CompileOptions options,
             ::attnfuse::MemoryLayout layout)
      : device(std::move(device)), options(std::move(options)), layout(layout) {
  }

  ::attnfuse::CudaDeviceRef device;
  CompileOptions options;
  ::attnfuse::MemoryLayout layout;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_CUDADEVICE_H
