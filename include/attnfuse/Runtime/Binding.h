//===- Binding.h - Arguments against a manifest -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that decides whether and how a launch happens, apart from the
// launch itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNTIME_BINDING_H
#define ATTNFUSE_RUNTIME_BINDING_H

#include "attnfuse/Runtime/Manifest.h"

namespace attnfuse {

/// A tensor in device memory that someone else owns. Strides are in elements
/// and may be 0.
struct TensorView {
  uint64_t data = 0;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  bool isEmpty() const;
};

/// A tensor, or the value of a scalar argument.
using ArgumentValue = std::variant<TensorView, int64_t>;

/// Checks `arguments` against the function's, which must outlive what is
/// returned, and binds the names of dimensions
/// and scalars, and of the addresses and strides that expressions use. Errors
/// name the argument, what was expected and the remedy.
Result<Environment> bindArguments(const ManifestFunction &function,
                                  const std::vector<ArgumentValue> &arguments);

/// The same for the results, whose dimensions may bind further names.
Status bindResults(const ManifestFunction &function,
                   const std::vector<TensorView> &results,
                   Environment &environment);

/// The shape of `tensor`; an error if one of its names is not bound.
Result<std::vector<int64_t>> getShape(const ManifestTensor &tensor,
                                      const Environment &environment);

/// Evaluates the function's checks; the error of one that does not hold is its
/// message.
Status evaluateChecks(const ManifestFunction &function,
                      const Environment &environment);

/// The index of the version to launch: the first whose `when` is non-zero, or
/// that has none.
Result<size_t> chooseVersion(const ManifestFunction &function,
                             const Environment &environment);

/// Where the workspace of the kernels of one version lies.
struct WorkspaceLayout {
  /// One for each tensor of the function's workspace. `data` is the distance
  /// from the start, in bytes; tensors that no kernel of the version uses take
  /// no room.
  std::vector<TensorView> tensors;
  int64_t bytes = 0;
};

/// Lays out what the kernels of `version` use. Expects arguments and results
/// that were bound.
Result<WorkspaceLayout> layOutWorkspace(const ManifestFunction &function,
                                        const ManifestVersion &version,
                                        const Environment &environment);

/// A kernel's grid, checked against the limits of CUDA.
Result<std::array<unsigned, 3>> evaluateGrid(const ManifestKernel &kernel,
                                             const Environment &environment);

/// A tensor map to encode, innermost dimension first. The driver takes these
/// numbers as they are, except perhaps strides of 0.
struct TensorMapRequest {
  /// A multiple of 16.
  uint64_t address = 0;
  /// F16, BF16 or F32.
  ElementType type = ElementType::F16;
  /// Of D, N, H and B: 1 to 2^32 - 1.
  std::array<uint64_t, 4> sizes = {};
  /// Of N, H and B: multiples of 16 below 2^40.
  std::array<uint64_t, 3> byteStrides = {};
  TensorMapBox box;
  uint32_t boxColumns = 0;

  bool operator==(const TensorMapRequest &other) const;
};

/// What a kernel takes by value: 8 bytes, or the map of 128 bytes that the
/// request describes.
using ParameterValue = std::variant<uint64_t, TensorMapRequest>;

/// The values of the parameters of one of the function's kernels. Expects
/// arguments and results that were bound, and the workspace in place. Errors
/// name the tensor that cannot have a tensor map, and why.
Result<std::vector<ParameterValue>> evaluateParameters(
    const ManifestFunction &function, const ManifestKernel &kernel,
    const std::vector<ArgumentValue> &arguments,
    const std::vector<TensorView> &results,
    const std::vector<TensorView> &workspace, const Environment &environment);

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_BINDING_H
