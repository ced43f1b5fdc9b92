//===- CudaFunction.h - A function on an NVIDIA GPU ----------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_CUDAFUNCTION_H
#define ATTNFUSE_LIB_RUNNER_CUDAFUNCTION_H

#include "CudaCall.h"
#include "Device.h"
#include "attnfuse/Runtime/Kernel.h"

namespace mlir::attnfuse {

class CudaFunction : public DeviceFunction {
public:
  CudaFunction(::attnfuse::CudaDeviceRef device, ::attnfuse::Kernel kernel,
               ::attnfuse::CudaStream stream, ::attnfuse::MemoryLayout layout)
      : device(std::move(device)), kernel(std::move(kernel)),
        stream(std::move(stream)), layout(layout) {}

  llvm::Error run(ArrayRef<::attnfuse::HostTensor> arguments,
                  MutableArrayRef<::attnfuse::HostTensor> results,
                  int numRuns) override;
  llvm::Expected<Timing>
  time(ArrayRef<::attnfuse::HostTensor> arguments,
       ArrayRef<::attnfuse::HostTensor> results) override;

  // The same in parts, for functions that share the tensors of a call.

  /// Puts the tensors on the device.
  llvm::Expected<CudaCall>
  createCall(ArrayRef<::attnfuse::HostTensor> arguments,
             ArrayRef<::attnfuse::HostTensor> results);
  /// As run(), on tensors that are there. The results may be empty.
  llvm::Error runCall(CudaCall &call,
                      MutableArrayRef<::attnfuse::HostTensor> results,
                      int numRuns);
  /// Seconds a run of `numRuns` without a gap, once `flush` has been written,
  /// which also gives the host time to launch them. runCall() comes first.
  llvm::Expected<double> sample(const CudaCall &call, int numRuns,
                                ::attnfuse::DeviceBuffer &flush);
  /// The kernel of the attention in the version that a call launches.
  llvm::Expected<std::string> getKernelName(const CudaCall &call) const;
  /// A buffer that is larger than every L2 cache.
  llvm::Expected<::attnfuse::DeviceBuffer> createFlush() const;

private:
  ::attnfuse::Status launch(const CudaCall &call);
  llvm::Error readResults(CudaCall &call,
                          MutableArrayRef<::attnfuse::HostTensor> results,
                          bool isFirst);
  llvm::Expected<std::vector<::attnfuse::CudaEvent>> createEvents(int count);
  llvm::Expected<std::vector<double>>
  timeRuns(const CudaCall &call, int numRuns, ::attnfuse::DeviceBuffer &flush);
  llvm::Expected<double>
  timeBackToBack(int numRuns,
                 llvm::function_ref<::attnfuse::Status()> launchOnce);

  ::attnfuse::CudaDeviceRef device;
  ::attnfuse::Kernel kernel;
  ::attnfuse::CudaStream stream;
  ::attnfuse::MemoryLayout layout;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_CUDAFUNCTION_H
