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

/// A size, or the name of a dimension; of a workspace, an expression, too.
using ManifestDim = std::variant<int64_t, std::string, Expression>;

/// An argument, result or workspace of a function and what is demanded of it.
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

/// What one copy by a tensor map moves: `rows` rows of getTensorMapColumns()
/// columns of each of `heads` neighbouring heads; 1 to 256 of both.
struct TensorMapBox {
  uint32_t heads = 1, rows = 0;

  bool operator==(const TensorMapBox &other) const {
    return heads == other.heads && rows == other.rows;
  }
};

/// One parameter of a kernel: 8 bytes, or a tensor map of 128.
struct ManifestParameter {
  enum class Kind { Pointer, Stride, Value, TensorMap };
  Kind kind = Kind::Value;
  /// Index into the arguments, the results and the workspace, in this order.
  size_t tensor = 0;
  size_t dim = 0;
  Expression value;
  /// What one copy by the tensor map moves.
  TensorMapBox box;
};

/// Columns of the box of a tensor map of elements of `type`: the 128 bytes over
/// which it swizzles.
inline uint32_t getTensorMapColumns(ElementType type) {
  return 128 / getElementSize(type);
}

/// What tensor maps want of the address and of strides, in bytes.
constexpr int64_t kTensorMapAlignment = 16;

/// Bytes that divide the address of each tensor of the workspace.
constexpr int64_t kWorkspaceAlignment = 256;

struct ManifestKernel {
  std::string name;
  std::array<int64_t, 3> block = {1, 1, 1};
  std::array<Expression, 3> grid;
  int64_t sharedMemory = 0;
  /// May start while the kernel before it in the list still runs; it waits by
  /// itself where it must.
  bool startsEarly = false;
  std::vector<ManifestParameter> parameters;
};

/// One way to run a function.
struct ManifestVersion {
  /// Non-zero where the version applies; absent where it always does.
  std::optional<Expression> when;
  std::vector<ManifestKernel> kernels;
};

/// A reserved name that stands for a tensor's address or one of its strides.
struct ManifestTensorName {
  std::string name;
  /// Index into the arguments, followed by the results.
  size_t tensor = 0;
  /// The stride's dimension; absent for the address.
  std::optional<size_t> dim;
};

struct ManifestFunction {
  std::string name;
  std::vector<ManifestTensor> arguments;
  std::vector<ManifestTensor> results;
  /// Contiguous tensors that one kernel of a launch writes for the next.
  std::vector<ManifestTensor> workspace;
  std::vector<ManifestCheck> checks;
  /// A launch takes the first that applies. The last always does, no other.
  std::vector<ManifestVersion> versions;
  /// Those that expressions of the function use, each once.
  std::vector<ManifestTensorName> tensorNames;

  size_t getNumTensors() const {
    return arguments.size() + results.size() + workspace.size();
  }
  /// Argument, result or workspace by the index that parameters use.
  const ManifestTensor &getTensor(size_t index) const {
    if (index < arguments.size())
      return arguments[index];
    index -= arguments.size();
    return index < results.size() ? results[index]
                                  : workspace[index - results.size()];
  }
  /// "argument 'q'", "result 'output'" or "workspace 'k.rotated'", for
  /// messages.
  std::string describeTensor(size_t index) const {
    const char *kind = index < arguments.size() ? "argument"
                       : index < arguments.size() + results.size()
                           ? "result"
                           : "workspace";
    return std::string(kind) + " '" + getTensor(index).name + "'";
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
