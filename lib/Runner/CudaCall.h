//===- CudaCall.h - The tensors of a call on a GPU ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_CUDACALL_H
#define ATTNFUSE_LIB_RUNNER_CUDACALL_H

#include "DeviceImage.h"
#include "attnfuse/Runtime/Binding.h"
#include "attnfuse/Runtime/CudaDevice.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace mlir::attnfuse {

inline llvm::Error toError(const ::attnfuse::Error &error) {
  return llvm::createStringError(error.message);
}
inline llvm::Error toError(const ::attnfuse::Status &status) {
  return status.ok() ? llvm::Error::success() : toError(status.error());
}

/// A tensor on the device, and what its buffer held when it was filled.
struct DeviceTensor {
  ::attnfuse::DeviceImage image;
  std::vector<std::byte> contents;
  ::attnfuse::DeviceBuffer buffer;
  ::attnfuse::TensorView view;

  static llvm::Expected<DeviceTensor>
  create(::attnfuse::CudaDeviceRef device, const ::attnfuse::HostTensor &tensor,
         const ::attnfuse::ImageLayout &layout, bool isPoison);

  llvm::Error upload();
  /// To `bytes`, of which a large one is best used again.
  llvm::Error download(std::vector<std::byte> &bytes) const;
};

/// The operands of launches of one call, for every function of one signature.
struct CudaCall {
  std::vector<DeviceTensor> arguments, results;
  /// Names of `arguments`, which leave out the scalars.
  std::vector<std::string> names;
  std::vector<::attnfuse::ArgumentValue> values;
  std::vector<::attnfuse::TensorView> resultViews;
  /// Poisoned as results are.
  std::optional<DeviceTensor> workspace;
  /// What was downloaded last.
  std::vector<std::byte> downloaded;

  static llvm::Expected<CudaCall>
  create(::attnfuse::CudaDeviceRef device,
         const ::attnfuse::ManifestFunction &function,
         ::attnfuse::MemoryLayout layout,
         llvm::ArrayRef<::attnfuse::HostTensor> arguments,
         llvm::ArrayRef<::attnfuse::HostTensor> results);

  ::attnfuse::CUdeviceptr getWorkspace() const {
    return workspace ? workspace->view.data : 0;
  }
  /// Makes the workspace hold at least `bytes`.
  llvm::Error growWorkspace(::attnfuse::CudaDeviceRef device, int64_t bytes);
  /// Fills results and workspace with poison.
  llvm::Error poison();
  llvm::Error checkArguments();
  llvm::Error checkWorkspace();
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_CUDACALL_H
