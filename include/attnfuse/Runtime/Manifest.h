//===- Manifest.h - The ABI of compiled kernels -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contents of docs/manifest.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNTIME_MANIFEST_H
#define ATTNFUSE_RUNTIME_MANIFEST_H

#include "attnfuse/Runtime/Expression.h"
#include "attnfuse/Support/HostTensor.h"
#include <array>
#include <variant>

namespace attnfuse {

/// A size, or the name of a dimension.
using ManifestDim = std::variant<int64_t, std::string>;

/// An argument or result of a function and what is demanded of it.
struct ManifestTensor {
  std::string name;
  std::string role;
  ElementType type = ElementType::F32;
  std::vector<ManifestDim> shape;
  /// Bytes that divide the address of the first element.
  int64_t alignment = 1;
  bool unitInnerStride = false;
  /// Elements that divide every stride but the last.
  int64_t strideMultiple = 1;

  /// An i64 without dimensions is passed by value.
  bool isScalar() const { return shape.empty() && type == ElementType::I64; }
};

struct ManifestCheck {
  Expression holds;
  std::string message;
};

/// One parameter of a kernel: 8 bytes, or a tensor map of 128.
struct ManifestParameter {
  enum class Kind { Pointer, Stride, Value, TensorMap };
  Kind kind = Kind::Value;
  /// Index into the arguments, followed by the results.
  size_t tensor = 0;
  size_t dim = 0;
  Expression value;
  /// What one copy by the tensor map moves: 1 to 256 rows of
  /// kTensorMapColumns.
  uint32_t boxRows = 0;
};

/// Columns of a tensor map's box: the 128 bytes over which it swizzles.
constexpr uint32_t kTensorMapColumns = 64;

struct ManifestKernel {
  std::string name;
  std::array<int64_t, 3> block = {1, 1, 1};
  std::array<Expression, 3> grid;
  int64_t sharedMemory = 0;
  std::vector<ManifestParameter> parameters;
};

struct ManifestFunction {
  std::string name;
  std::vector<ManifestTensor> arguments;
  std::vector<ManifestTensor> results;
  std::vector<ManifestCheck> checks;
  std::vector<ManifestKernel> kernels;

  /// Argument or result by the index that parameters use.
  const ManifestTensor &getTensor(size_t index) const {
    return index < arguments.size() ? arguments[index]
                                    : results[index - arguments.size()];
  }
  /// "argument 'q'" or "result 'output'", for messages.
  std::string describeTensor(size_t index) const {
    return (index < arguments.size() ? "argument '" : "result '") +
           getTensor(index).name + "'";
  }
};

struct Manifest {
  std::string chip;
  std::vector<ManifestFunction> functions;

  /// The function `name`, or an error that lists the functions.
  Result<const ManifestFunction *> getFunction(std::string_view name) const;
};

/// Reads a manifest. Errors say where in the document what was expected.
Result<Manifest> parseManifest(std::string_view json);

} // namespace attnfuse

#endif // ATTNFUSE_RUNTIME_MANIFEST_H
