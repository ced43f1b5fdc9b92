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

/// A tensor of the function. Describing one takes longer than checking it, and
/// is left to errors.
struct TensorRef {
  const ManifestFunction &function;
  size_t index;

  const ManifestTensor &get() const { return function.getTensor(index); }
  Error makeError(const std::string &message) const {
    return {function.describeTensor(index) + ": " + message};
  }
};

Status bindDims(const TensorRef &tensor, const TensorView &actual,
                Environment &environment) {
  const ManifestTensor &expected = tensor.get();
  auto makeError = [&](size_t dim, const std::string &wanted) {
    return tensor.makeError("expected dimension " + std::to_string(dim) +
                            " to be " + wanted + ", got " +
                            std::to_string(actual.shape[dim]));
  };
  for (size_t i = 0; i < expected.shape.size(); ++i) {
    int64_t size = actual.shape[i];
    if (size < 0)
      return makeError(i, "at least 0");
    if (const auto *fixed = std::get_if<int64_t>(&expected.shape[i])) {
      if (size != *fixed)
        return makeError(i, std::to_string(*fixed));
      continue;
    }
    const std::string &name = std::get<std::string>(expected.shape[i]);
    int64_t bound = environment.bind(name, size);
    if (bound != size)
      return makeError(i, name + " = " + std::to_string(bound));
  }
  return {};
}

/// Whether the bytes from the first element to the last fit 63 bits, as kernels
/// compute with them.
bool fitsAddresses(const TensorView &tensor) {
  int64_t reach[2] = {0, 0}; // Below and above the first element.
  bool overflows = false;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t bytes = 0, stride = tensor.strides[i];
    overflows |=
        __builtin_mul_overflow(tensor.shape[i] - 1, stride, &bytes) ||
        __builtin_mul_overflow(bytes, getElementSize(tensor.type), &bytes) ||
        __builtin_add_overflow(reach[stride > 0], bytes, &reach[stride > 0]);
  }
  return !overflows;
}

Status checkLayout(const TensorRef &tensor, const TensorView &actual) {
  const ManifestTensor &expected = tensor.get();
  if (actual.isEmpty())
    return {};
  if (actual.data == 0)
    return tensor.makeError("expected device memory, got a null pointer");
  if (actual.data % uint64_t(expected.alignment) != 0)
    return tensor.makeError("expected an address that is a multiple of " +
                            std::to_string(expected.alignment) +
                            " bytes; copy the tensor to an aligned one");
  size_t rank = actual.shape.size();
  for (size_t i = 0; i < rank; ++i) {
    if (actual.shape[i] <= 1)
      continue;
    bool isInner = i + 1 == rank;
    int64_t stride = actual.strides[i];
    if (isInner && expected.unitInnerStride && stride != 1)
      return tensor.makeError("expected stride 1 in the last dimension, got " +
                              std::to_string(stride) +
                              "; make the tensor contiguous");
    if (!isInner && stride % expected.strideMultiple != 0)
      return tensor.makeError(
          "expected the stride of dimension " + std::to_string(i) +
          " to be a multiple of " + std::to_string(expected.strideMultiple) +
          ", got " + std::to_string(stride) + "; make the tensor contiguous");
  }
  if (!fitsAddresses(actual))
    return tensor.makeError("expected strides whose last element has an "
                            "address; make the tensor contiguous");
  return {};
}

Status bindTensor(const TensorRef &tensor, const TensorView &actual,
                  Environment &environment) {
  const ManifestTensor &expected = tensor.get();
  if (actual.type != expected.type)
    return tensor.makeError("expected " + getTypeName(expected.type) +
                            " elements, got " + getTypeName(actual.type));
  if (actual.shape.size() != expected.shape.size())
    return tensor.makeError(
        "expected " + std::to_string(expected.shape.size()) +
        " dimensions, got " + std::to_string(actual.shape.size()));
  if (actual.strides.size() != actual.shape.size())
    return tensor.makeError("expected " + std::to_string(actual.shape.size()) +
                            " strides, got " +
                            std::to_string(actual.strides.size()));
  if (Status status = bindDims(tensor, actual, environment); !status.ok())
    return status;
  return checkLayout(tensor, actual);
}

/// Binds the reserved name of an address or a stride of `tensor`.
void bindTensorName(const ManifestTensorName &entry, const TensorView &tensor,
                    Environment &environment) {
  int64_t value = int64_t(tensor.data);
  if (entry.dim)
    value = tensor.shape[*entry.dim] <= 1 ? 0 : tensor.strides[*entry.dim];
  environment.set(entry.name, value);
}

/// The map, without its box, of a tensor [B, H, N, D] that has elements.
Result<TensorMapRequest> makeTensorMap(const TensorRef &tensor,
                                       const TensorView &view) {
  constexpr int64_t kMaxSize = std::numeric_limits<uint32_t>::max();
  constexpr int64_t kStrideLimit = int64_t(1) << 40;
  const int64_t width = getElementSize(view.type);
  TensorMapRequest request;
  request.address = view.data;
  request.type = view.type;
  if (view.data % kTensorMapAlignment != 0)
    return tensor.makeError(
        "expected an address that is a multiple of 16 bytes for its "
        "tensor map; copy the tensor to an aligned one");
  if (view.shape.back() > 1 && view.strides.back() != 1)
    return tensor.makeError("expected stride 1 in the last dimension for its "
                            "tensor map, got " +
                            std::to_string(view.strides.back()) +
                            "; make the tensor contiguous");
  size_t rank = request.sizes.size();
  for (size_t i = 0; i < rank; ++i) {
    size_t dim = rank - 1 - i;
    if (view.shape[dim] > kMaxSize)
      return tensor.makeError("expected dimension " + std::to_string(dim) +
                              " to be at most " + std::to_string(kMaxSize) +
                              " for its tensor map, got " +
                              std::to_string(view.shape[dim]));
    request.sizes[i] = view.shape[dim];
  }
  for (size_t i = 0; i + 1 < rank; ++i) {
    size_t dim = rank - 2 - i;
    int64_t stride = view.strides[dim];
    if (view.shape[dim] == 1) {
      // Nothing is ever a stride away, but the driver checks the number.
      request.byteStrides[i] = kTensorMapAlignment;
      continue;
    }
    if (stride < 0 || stride >= kStrideLimit / width)
      return tensor.makeError(
          "expected the stride of dimension " + std::to_string(dim) +
          " to be 0 to " + std::to_string(kStrideLimit / width - 1) +
          " for its tensor map, got " + std::to_string(stride) +
          "; make the tensor contiguous");
    if (stride * width % kTensorMapAlignment != 0)
      return tensor.makeError("expected the stride of dimension " +
                              std::to_string(dim) + " to be a multiple of " +
                              std::to_string(kTensorMapAlignment / width) +
                              " for its tensor map, got " +
                              std::to_string(stride) +
                              "; make the tensor contiguous");
    request.byteStrides[i] = stride * width;
  }
  return request;
}

/// The map of a tensor without elements: of one element, as no size can be 0,
/// at an address that exists. Kernels read nothing through it.
TensorMapRequest makeEmptyTensorMap(ElementType type,
                                    const std::vector<TensorView> &results) {
  TensorMapRequest request;
  request.type = type;
  request.sizes.fill(1);
  request.byteStrides.fill(kTensorMapAlignment);
  auto found =
      std::find_if(results.begin(), results.end(),
                   [](const TensorView &result) { return !result.isEmpty(); });
  if (found != results.end())
    request.address = found->data - found->data % kTensorMapAlignment;
  return request;
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
    const TensorRef tensor{function, i};
    const auto *scalar = std::get_if<int64_t>(&arguments[i]);
    if (expected.isScalar() != bool(scalar))
      return tensor.makeError(scalar ? "expected a tensor, got a scalar"
                                     : "expected a scalar, got a tensor");
    if (scalar) {
      environment.set(expected.name, *scalar);
      continue;
    }
    if (Status status =
            bindTensor(tensor, std::get<TensorView>(arguments[i]), environment);
        !status.ok())
      return status.error();
  }
  for (const ManifestTensorName &entry : function.tensorNames)
    if (entry.tensor < arguments.size())
      bindTensorName(entry, std::get<TensorView>(arguments[entry.tensor]),
                     environment);
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
    const TensorRef tensor{function, function.arguments.size() + i};
    if (Status status = bindTensor(tensor, results[i], environment);
        !status.ok())
      return status;
    for (size_t dim = 0; !results[i].isEmpty() && dim < results[i].shape.size();
         ++dim)
      if (results[i].shape[dim] > 1 && results[i].strides[dim] == 0)
        return tensor.makeError(
            "expected dimension " + std::to_string(dim) +
            " not to have stride 0, which would write its elements "
            "over each other");
  }
  for (const ManifestTensorName &entry : function.tensorNames)
    if (entry.tensor >= function.arguments.size())
      bindTensorName(entry, results[entry.tensor - function.arguments.size()],
                     environment);
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
    if (const auto *expression = std::get_if<Expression>(&dim)) {
      Result<int64_t> size = evaluate(*expression, environment);
      if (!size)
        return size.error();
      if (*size < 0)
        return Error{"a dimension of '" + tensor.name + "' is negative"};
      shape.push_back(*size);
      continue;
    }
    const int64_t *value = environment.find(std::get<std::string>(dim));
    if (!value)
      return Error{"the dimension " + std::get<std::string>(dim) + " of '" +
                   tensor.name + "' has no value"};
    shape.push_back(*value);
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

Result<size_t> attnfuse::chooseVersion(const ManifestFunction &function,
                                       const Environment &environment) {
  for (size_t i = 0; i < function.versions.size(); ++i) {
    const std::optional<Expression> &when = function.versions[i].when;
    if (!when)
      return i;
    Result<int64_t> applies = evaluate(*when, environment);
    if (!applies)
      return applies.error();
    if (*applies != 0)
      return i;
  }
  return Error{"no version of '" + function.name + "' applies"};
}

/// Whether a parameter of the version's kernels is the tensor `index`.
static bool usesTensor(const ManifestVersion &version, size_t index) {
  for (const ManifestKernel &kernel : version.kernels)
    for (const ManifestParameter &parameter : kernel.parameters)
      if (parameter.kind != ManifestParameter::Kind::Value &&
          parameter.tensor == index)
        return true;
  return false;
}

Result<WorkspaceLayout>
attnfuse::layOutWorkspace(const ManifestFunction &function,
                          const ManifestVersion &version,
                          const Environment &environment) {
  WorkspaceLayout layout;
  size_t first = function.getNumTensors() - function.workspace.size();
  for (size_t i = 0; i < function.workspace.size(); ++i) {
    const ManifestTensor &tensor = function.workspace[i];
    TensorView &view = layout.tensors.emplace_back();
    // Sizes of other versions' tensors may be none that a launch could have.
    if (!usesTensor(version, first + i))
      continue;
    Result<std::vector<int64_t>> shape = getShape(tensor, environment);
    if (!shape)
      return shape.error();
    view.data = uint64_t(layout.bytes);
    view.type = tensor.type;
    view.shape = *shape;
    view.strides.resize(shape->size());
    // Bytes from here on; no size is negative.
    int64_t bytes = getElementSize(tensor.type);
    bool overflows = false;
    for (size_t dim = shape->size(); dim-- > 0;) {
      view.strides[dim] = bytes / getElementSize(tensor.type);
      overflows |= __builtin_mul_overflow(
          bytes, std::max<int64_t>((*shape)[dim], 1), &bytes);
    }
    if (view.isEmpty())
      continue;
    overflows |= __builtin_add_overflow(bytes, kWorkspaceAlignment - 1, &bytes);
    bytes -= bytes % kWorkspaceAlignment;
    overflows |= __builtin_add_overflow(layout.bytes, bytes, &layout.bytes);
    if (overflows)
      return Error{"workspace '" + tensor.name +
                   "' has more bytes than an address; split the batch"};
  }
  return layout;
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

bool TensorMapRequest::operator==(const TensorMapRequest &other) const {
  return address == other.address && type == other.type &&
         sizes == other.sizes && byteStrides == other.byteStrides &&
         box == other.box && boxColumns == other.boxColumns;
}

Result<std::vector<ParameterValue>> attnfuse::evaluateParameters(
    const ManifestFunction &function, const ManifestKernel &kernel,
    const std::vector<ArgumentValue> &arguments,
    const std::vector<TensorView> &results,
    const std::vector<TensorView> &workspace, const Environment &environment) {
  auto getView = [&](size_t index) -> const TensorView & {
    if (index < arguments.size())
      return std::get<TensorView>(arguments[index]);
    index -= arguments.size();
    return index < results.size() ? results[index]
                                  : workspace[index - results.size()];
  };
  std::vector<ParameterValue> values;
  values.reserve(kernel.parameters.size());
  for (const ManifestParameter &parameter : kernel.parameters) {
    using Kind = ManifestParameter::Kind;
    if (parameter.kind == Kind::Value) {
      Result<int64_t> value = evaluate(parameter.value, environment);
      if (!value)
        return value.error();
      values.push_back(uint64_t(*value));
      continue;
    }
    const TensorView &tensor = getView(parameter.tensor);
    if (parameter.kind == Kind::TensorMap) {
      Result<TensorMapRequest> request =
          tensor.isEmpty()
              ? makeEmptyTensorMap(tensor.type, results)
              : makeTensorMap({function, parameter.tensor}, tensor);
      if (!request)
        return request.error();
      request->box = parameter.box;
      request->boxColumns = getTensorMapColumns(tensor.type);
      values.push_back(*request);
      continue;
    }
    values.push_back(parameter.kind == Kind::Pointer
                         ? tensor.data
                         : uint64_t(tensor.strides[parameter.dim]));
  }
  return values;
}
