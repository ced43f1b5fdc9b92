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

struct PreparedLaunch;
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

  /// The version that a launch on these takes.
  Result<const ManifestVersion *>
  getVersion(const std::vector<ArgumentValue> &arguments,
             const std::vector<TensorView> &results) const;

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

  friend class BoundLaunch;
  Kernel() = default;
  Status launchKernels(CUstream stream, size_t version,
                       std::vector<PreparedLaunch> &launches) const;
  ManifestFunction function;
  std::shared_ptr<const CudaModule> module;
  /// Of each version, in the order of its kernels.
  std::vector<std::vector<LoadedKernel>> kernels;
  /// Null if no kernel takes tensor maps.
  std::shared_ptr<TensorMapCache> tensorMaps;
};

/// Launches of one kernel on tensors of one kind: their types, sizes and
/// strides and the values of scalars are given once and for all, and a launch
/// only says where the tensors are. It costs a fraction of Kernel::launch. One
/// thread at a time may use it.
class BoundLaunch {
public:
  /// Does all of Kernel::launch but the launch.
  static Result<std::unique_ptr<BoundLaunch>>
  create(const Kernel &kernel, std::vector<ArgumentValue> arguments,
         std::vector<TensorView> results);
  ~BoundLaunch();
  BoundLaunch(const BoundLaunch &) = delete;
  BoundLaunch &operator=(const BoundLaunch &) = delete;

  /// The most that Kernel::getWorkspaceSize() may be on tensors of this kind.
  Result<int64_t> getWorkspaceSize() const;

  /// Launches as Kernel::launch does, on tensors at `addresses`: those of the
  /// arguments, then of the results. That of a scalar is not looked at.
  Status launch(CUstream stream, const uint64_t *addresses,
                CUdeviceptr workspace = 0);

private:
  struct Version;

  explicit BoundLaunch(const Kernel &kernel);
  Status setAddresses(const uint64_t *addresses);
  /// The version for the addresses that are set.
  Result<Version *> getVersion();
  /// Writes its parameters for these addresses and that of the workspace.
  Status prepareVersion(Version &version, CUdeviceptr workspace);
  /// Argument or result by the index that parameters use; null for a scalar.
  TensorView *getTensor(size_t index);

  Kernel kernel;
  std::vector<ArgumentValue> arguments;
  std::vector<TensorView> results;
  /// Refers to names of `kernel`.
  Environment environment;
  /// Whether the choice of the version depends on addresses.
  bool usesAddresses = false;
  bool isEmpty = false;
  /// By the function's versions; null until one is needed.
  std::vector<std::unique_ptr<Version>> versions;
  size_t version = 0;
};

/// Success if code for `chip` runs on a device of this compute capability.
Status checkChip(std::string_view chip, int capability);

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_KERNEL_H
