//===- Kernel.h - Compiled functions on a device ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNTIME_KERNEL_H
#define ATTNFUSE_RUNTIME_KERNEL_H

#include "attnfuse/Runtime/Binding.h"
#include "attnfuse/Runtime/CudaDevice.h"

namespace attnfuse {

class TensorMapCache;

/// A function of a manifest with its kernels loaded. Any number of threads may
/// launch it; copies share what is loaded.
class Kernel {
public:
  /// Loads `image` (PTX or cubin) on the device and resolves `function`.
  /// Errors tell what does not match: the chip, the function, the limits.
  static Result<Kernel> load(CudaDeviceRef device, const Manifest &manifest,
                             std::string_view function,
                             const std::string &image);

  const ManifestFunction &getFunction() const { return function; }

  /// Bytes of device memory that a launch on these needs beside them, from an
  /// address that is a multiple of kWorkspaceAlignment; often 0.
  Result<int64_t>
  getWorkspaceSize(const std::vector<ArgumentValue> &arguments,
                   const std::vector<TensorView> &results) const;

  /// Launches on `stream`, in its order and without waiting for it. All is
  /// checked before the first launch, tensor maps included; those of tensors
  /// that were launched on lately are not encoded again. Results without
  /// elements need no launch.
  ///
  /// `workspace` is what getWorkspaceSize() asks for; launches that overlap
  /// must not share it. Where it is 0 and needed, the launch takes memory from
  /// the device's pool in the order of the stream. Either can be captured into
  /// a graph.
  Status launch(CUstream stream, const std::vector<ArgumentValue> &arguments,
                const std::vector<TensorView> &results,
                CUdeviceptr workspace = 0) const;

private:
  struct LoadedKernel {
    CUfunction handle;
    /// What a launch does, for errors.
    std::string launching;
  };

  /// What is known of a launch before its parameters are.
  struct Binding {
    Environment environment;
    size_t version = 0;
    WorkspaceLayout workspace;
    /// No result has an element.
    bool isEmpty = false;
  };

  Kernel() = default;
  Result<Binding> bind(const std::vector<ArgumentValue> &arguments,
                       const std::vector<TensorView> &results) const;
  Status launchBound(CUstream stream,
                     const std::vector<ArgumentValue> &arguments,
                     const std::vector<TensorView> &results, Binding &binding,
                     CUdeviceptr workspace) const;

  ManifestFunction function;
  std::shared_ptr<const CudaModule> module;
  /// Of each version, in the order of its kernels.
  std::vector<std::vector<LoadedKernel>> kernels;
  /// Null if no kernel takes tensor maps.
  std::shared_ptr<TensorMapCache> tensorMaps;
};

/// Success if code for `chip` runs on a device of this compute capability.
Status checkChip(std::string_view chip, int capability);

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_KERNEL_H
