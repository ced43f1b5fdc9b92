//===- Binding.cpp - Arguments against a manifest -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/Binding.h"
#include <algorithm>
#include <limits>

using namespace attnfuse;

namespace {
std::string getTypeName(ElementType type) {
  return std::string(getElementName(type));
}

std::string listNames(const std::vector<ManifestTensor> &tensors) {
  std::string names;
  for (const ManifestTensor &tensor : tensors)
    names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

/// One tensor against its entry; `what` is "argument 'q'" or the like.
Status bindDims(const ManifestTensor &expected, const TensorView &actual,
                const std::string &what, Environment &environment) {
  for (size_t i = 0; i < expected.shape.size(); ++i) {
    int64_t size = actual.shape[i];
    std::string dim = what + ": expected dimension " + std::to_string(i);
    if (size < 0)
      return Error{dim + " to be at least 0, got " + std::to_string(size)};
    if (const auto *fixed = std::get_if<int64_t>(&expected.shape[i])) {
      if (size != *fixed)
        return Error{dim + " to be " + std::to_string(*fixed) + ", got " +
                     std::to_string(size)};
      continue;
    }
    const std::string &name = std::get<std::string>(expected.shape[i]);
    auto [bound, isNew] = environment.try_emplace(name, size);
    if (!isNew && bound->second != size)
      return Error{dim + " to be " + name + " = " +
                   std::to_string(bound->second) + ", got " +
                   std::to_string(size)};
  }
  return {};
}

Status checkLayout(const ManifestTensor &expected, const TensorView &actual,
                   const std::string &what) {
  if (actual.isEmpty())
    return {};
  if (actual.data == 0)
    return Error{what + ": expected device memory, got a null pointer"};
  if (actual.data % uint64_t(expected.alignment) != 0)
    return Error{what + ": expected an address that is a multiple of " +
                 std::to_string(expected.alignment) +
                 " bytes; copy the tensor to an aligned one"};
  size_t rank = actual.shape.size();
  for (size_t i = 0; i < rank; ++i) {
    if (actual.shape[i] <= 1)
      continue;
    bool isInner = i + 1 == rank;
    int64_t stride = actual.strides[i];
    if (isInner && expected.unitInnerStride && stride != 1)
      return Error{what + ": expected stride 1 in the last dimension, got " +
                   std::to_string(stride) + "; make the tensor contiguous"};
    if (!isInner && stride % expected.strideMultiple != 0)
      return Error{what + ": expected the stride of dimension " +
                   std::to_string(i) + " to be a multiple of " +
                   std::to_string(expected.strideMultiple) + ", got " +
                   std::to_string(stride) + "; make the tensor contiguous"};
  }
  return {};
}

Status bindTensor(const ManifestTensor &expected, const TensorView &actual,
                  const std::string &what, Environment &environment) {
  if (actual.type != expected.type)
    return Error{what + ": expected " + getTypeName(expected.type) +
                 " elements, got " + getTypeName(actual.type)};
  if (actual.shape.size() != expected.shape.size())
    return Error{what + ": expected " + std::to_string(expected.shape.size()) +
                 " dimensions, got " + std::to_string(actual.shape.size())};
  if (actual.strides.size() != actual.shape.size())
    return Error{what + ": expected " + std::to_string(actual.shape.size()) +
                 " strides, got " + std::to_string(actual.strides.size())};
  if (Status status = bindDims(expected, actual, what, environment);
      !status.ok())
    return status;
  return checkLayout(expected, actual, what);
}
} // namespace

bool TensorView::isEmpty() const {
  return std::any_of(shape.begin(), shape.end(),
                     [](int64_t size) { return size == 0; });
}

Result<Environment>
attnfuse::bindArguments(const ManifestFunction &function,
                        const std::vector<ArgumentValue> &arguments) {
  if (arguments.size() != function.arguments.size())
    return Error{"expected " + std::to_string(function.arguments.size()) +
                 " arguments (" + listNames(function.arguments) + "), got " +
                 std::to_string(arguments.size())};
  Environment environment;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ManifestTensor &expected = function.arguments[i];
    std::string what = "argument '" + expected.name + "'";
    const auto *scalar = std::get_if<int64_t>(&arguments[i]);
    if (expected.isScalar() != bool(scalar))
      return Error{what + ": expected a " +
                   (scalar ? "tensor, got a scalar" : "scalar, got a tensor")};
    if (scalar) {
      environment[expected.name] = *scalar;
      continue;
    }
    if (Status status = bindTensor(expected, std::get<TensorView>(arguments[i]),
                                   what, environment);
        !status.ok())
      return status.error();
  }
  return environment;
}

Status attnfuse::bindResults(const ManifestFunction &function,
                             const std::vector<TensorView> &results,
                             Environment &environment) {
  if (results.size() != function.results.size())
    return Error{"expected " + std::to_string(function.results.size()) +
                 " results (" + listNames(function.results) + "), got " +
                 std::to_string(results.size())};
  for (size_t i = 0; i < results.size(); ++i) {
    const ManifestTensor &expected = function.results[i];
    std::string what = "result '" + expected.name + "'";
    if (Status status = bindTensor(expected, results[i], what, environment);
        !status.ok())
      return status;
    for (size_t dim = 0; !results[i].isEmpty() && dim < results[i].shape.size();
         ++dim)
      if (results[i].shape[dim] > 1 && results[i].strides[dim] == 0)
        return Error{what + ": expected dimension " + std::to_string(dim) +
                     " not to have stride 0, which would write its elements "
                     "over each other"};
  }
  return {};
}

Result<std::vector<int64_t>>
attnfuse::getShape(const ManifestTensor &tensor,
                   const Environment &environment) {
  std::vector<int64_t> shape;
  for (const ManifestDim &dim : tensor.shape) {
    if (const auto *fixed = std::get_if<int64_t>(&dim)) {
      shape.push_back(*fixed);
      continue;
    }
    auto found = environment.find(std::get<std::string>(dim));
    if (found == environment.end())
      return Error{"the dimension " + std::get<std::string>(dim) + " of '" +
                   tensor.name + "' has no value"};
    shape.push_back(found->second);
  }
  return shape;
}

Status attnfuse::evaluateChecks(const ManifestFunction &function,
                                const Environment &environment) {
  for (const ManifestCheck &check : function.checks) {
    Result<int64_t> holds = evaluate(check.holds, environment);
    if (!holds)
      return holds.error();
    if (*holds == 0)
      return Error{check.message};
  }
  return {};
}

Result<std::array<unsigned, 3>>
attnfuse::evaluateGrid(const ManifestKernel &kernel,
                       const Environment &environment) {
  constexpr int64_t kLimits[] = {std::numeric_limits<int32_t>::max(), 65535,
                                 65535};
  std::array<unsigned, 3> grid;
  for (size_t i = 0; i < 3; ++i) {
    Result<int64_t> size = evaluate(kernel.grid[i], environment);
    if (!size)
      return size.error();
    if (*size < 1 || *size > kLimits[i])
      return Error{"kernel '" + kernel.name + "' would need " +
                   std::to_string(*size) + " blocks in dimension " + "xyz"[i] +
                   ", expected 1 to " + std::to_string(kLimits[i]) +
                   "; split the batch"};
    grid[i] = unsigned(*size);
  }
  return grid;
}

Result<std::vector<uint64_t>> attnfuse::evaluateParameters(
    const ManifestKernel &kernel, const std::vector<ArgumentValue> &arguments,
    const std::vector<TensorView> &results, const Environment &environment) {
  std::vector<uint64_t> words;
  words.reserve(kernel.parameters.size());
  for (const ManifestParameter &parameter : kernel.parameters) {
    if (parameter.kind == ManifestParameter::Kind::Value) {
      Result<int64_t> value = evaluate(parameter.value, environment);
      if (!value)
        return value.error();
      words.push_back(uint64_t(*value));
      continue;
    }
    const TensorView &tensor =
        parameter.tensor < arguments.size()
            ? std::get<TensorView>(arguments[parameter.tensor])
            : results[parameter.tensor - arguments.size()];
    words.push_back(parameter.kind == ManifestParameter::Kind::Pointer
                        ? tensor.data
                        : uint64_t(tensor.strides[parameter.dim]));
  }
  return words;
}
