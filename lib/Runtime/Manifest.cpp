//===- Manifest.cpp - Reads a manifest ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The JSON library throws on every wrong access, and this project is built
// without exceptions: values are only taken out after their kind was checked.
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/Manifest.h"
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

using namespace attnfuse;
using Json = nlohmann::json;

namespace {
/// Expressions nested deeper than this are not written by any compiler.
constexpr int kMaxDepth = 100;

/// Reads one document; the first problem sticks and ends the reading.
class Reader {
public:
  Result<Manifest> read(const Json &root) {
    Manifest manifest;
    int64_t version = getInteger(root, "version", "the manifest");
    if (!failed && version != 1)
      fail("expected a manifest of version 1, got " + std::to_string(version));
    manifest.chip = getString(root, "chip", "the manifest");
    for (const Json &item : getArray(root, "functions", "the manifest"))
      manifest.functions.push_back(readFunction(item));
    if (failed)
      return *failed;
    return manifest;
  }

private:
  void fail(const std::string &message) {
    if (!failed)
      failed = Error{"malformed manifest: " + message};
  }

  /// The member `key`, or null after a failure.
  const Json &getMember(const Json &object, const char *key,
                        const std::string &where) {
    static const Json null;
    if (object.is_object())
      if (auto found = object.find(key); found != object.end())
        return *found;
    fail("expected '" + std::string(key) + "' in " + where);
    return null;
  }

  std::string getString(const Json &object, const char *key,
                        const std::string &where) {
    const Json &member = getMember(object, key, where);
    if (member.is_string())
      return member.get_ref<const std::string &>();
    fail("expected '" + std::string(key) + "' in " + where + " to be a string");
    return "";
  }

  static bool isInt64(const Json &value) {
    if (value.is_number_unsigned())
      return value.get<uint64_t>() <=
             uint64_t(std::numeric_limits<int64_t>::max());
    return value.is_number_integer();
  }

  int64_t getInteger(const Json &object, const char *key,
                     const std::string &where) {
    const Json &member = getMember(object, key, where);
    if (isInt64(member))
      return member.get<int64_t>();
    fail("expected '" + std::string(key) + "' in " + where +
         " to be a 64-bit integer");
    return 0;
  }

  /// An optional member of at least 1.
  int64_t getPositive(const Json &object, const char *key, int64_t otherwise,
                      const std::string &where) {
    if (!object.is_object() || !object.contains(key))
      return otherwise;
    int64_t value = getInteger(object, key, where);
    if (value < 1)
      fail("expected '" + std::string(key) + "' in " + where +
           " to be at least 1, got " + std::to_string(value));
    return value;
  }

  /// An optional member that is false where it is absent.
  bool getFlag(const Json &object, const char *key, const std::string &where) {
    if (!object.is_object() || !object.contains(key))
      return false;
    const Json &flag = getMember(object, key, where);
    if (!flag.is_boolean())
      fail("expected '" + std::string(key) + "' in " + where +
           " to be true or false");
    return flag.is_boolean() && flag.get<bool>();
  }

  const Json &getArray(const Json &object, const char *key,
                       const std::string &where) {
    static const Json empty = Json::array();
    const Json &member = getMember(object, key, where);
    if (member.is_array())
      return member;
    fail("expected '" + std::string(key) + "' in " + where + " to be a list");
    return empty;
  }

  ManifestTensor readTensor(const Json &item, const std::string &where,
                            bool takesExpressions = false) {
    ManifestTensor tensor;
    tensor.name = getString(item, "name", where);
    std::string here = "'" + tensor.name + "' of " + where;
    tensor.role = getString(item, "role", here);
    std::string type = getString(item, "type", here);
    if (auto parsed = parseElementType(type))
      tensor.type = *parsed;
    else
      fail("unknown type '" + type + "' of " + here);
    for (const Json &dim : getArray(item, "shape", here)) {
      if (dim.is_string())
        tensor.shape.push_back(dim.get_ref<const std::string &>());
      else if (isInt64(dim) && dim.get<int64_t>() >= 0)
        tensor.shape.push_back(dim.get<int64_t>());
      else if (takesExpressions && dim.is_array())
        tensor.shape.push_back(readExpression(dim, here));
      else
        fail("expected a size or a name in the shape of " + here);
    }
    tensor.alignment = getPositive(item, "alignment", 1, here);
    tensor.strideMultiple = getPositive(item, "stride_multiple", 1, here);
    tensor.unitInnerStride = getFlag(item, "unit_inner_stride", here);
    return tensor;
  }

  bool isScalar(std::string_view name) const {
    return std::any_of(function.arguments.begin(), function.arguments.end(),
                       [&](const ManifestTensor &argument) {
                         return argument.isScalar() && argument.name == name;
                       });
  }

  /// The index of the tensor `name`, which is no scalar.
  std::optional<size_t> findTensor(std::string_view name) const {
    for (size_t i = 0; i < function.getNumTensors(); ++i)
      if (function.getTensor(i).name == name &&
          !function.getTensor(i).isScalar())
        return i;
    return std::nullopt;
  }

  /// Makes the reserved name of an address or a stride usable in expressions.
  void addTensorName(const std::string &name, const std::string &where) {
    std::string_view rest = name;
    bool isStride = rest.substr(0, kStridePrefix.size()) == kStridePrefix;
    if (!isStride && rest.substr(0, kAddressPrefix.size()) != kAddressPrefix)
      return fail("unknown name '" + name + "' in " + where);
    rest.remove_prefix(isStride ? kStridePrefix.size() : kAddressPrefix.size());
    // Names of tensors may have dots, too.
    std::string_view of = isStride ? rest.substr(0, rest.rfind('.')) : rest;
    std::optional<size_t> tensor = findTensor(of);
    // The workspace has no address before the version is chosen.
    if (!tensor ||
        *tensor >= function.arguments.size() + function.results.size())
      return fail("no tensor '" + std::string(of) + "' for '" + name + "' in " +
                  where);
    ManifestTensorName entry{name, *tensor, std::nullopt};
    if (isStride) {
      std::string dim(rest.substr(std::min(of.size() + 1, rest.size())));
      size_t rank = function.getTensor(*tensor).shape.size();
      for (size_t i = 0; i < rank; ++i)
        if (dim == std::to_string(i))
          entry.dim = i;
      if (!entry.dim)
        return fail("'" + std::string(of) + "' has no dimension '" + dim +
                    "' for '" + name + "' in " + where);
    }
    names.insert(name);
    function.tensorNames.push_back(std::move(entry));
  }

  Expression readExpression(const Json &item, const std::string &where,
                            int depth = 0) {
    Expression expression;
    if (isInt64(item)) {
      expression.integer = item.get<int64_t>();
      return expression;
    }
    if (item.is_string()) {
      expression.kind = Expression::Kind::Name;
      expression.name = item.get_ref<const std::string &>();
      if (!names.count(expression.name))
        addTensorName(expression.name, where);
      return expression;
    }
    if (!item.is_array() || item.empty() || !item[0].is_string()) {
      fail("expected an integer, a name or a list that starts with an "
           "operator in " +
           where);
      return expression;
    }
    if (depth == kMaxDepth) {
      fail("an expression in " + where + " is nested too deeply");
      return expression;
    }
    Result<Expression::Operator> op =
        parseOperator(item[0].get_ref<const std::string &>());
    if (!op) {
      fail(op.error().message + " in " + where);
      return expression;
    }
    if (!takesOperands(*op, item.size() - 1)) {
      fail("wrong number of operands of '" + std::string(getOperatorName(*op)) +
           "' in " + where);
      return expression;
    }
    expression.kind = Expression::Kind::Operation;
    expression.op = *op;
    for (size_t i = 1; i < item.size(); ++i)
      expression.operands.push_back(readExpression(item[i], where, depth + 1));
    return expression;
  }

  /// The box, after checks that there can be a tensor map.
  TensorMapBox readTensorMapBox(const Json &item, size_t index,
                                const std::string &where) {
    const ManifestTensor &tensor = function.getTensor(index);
    bool isWorkspace =
        index >= function.arguments.size() + function.results.size();
    std::string here = "the tensor map of '" + tensor.name + "' of " + where;
    if (tensor.shape.size() != 4)
      fail("expected 4 dimensions for " + here + ", got " +
           std::to_string(tensor.shape.size()));
    if (tensor.type != ElementType::F16 && tensor.type != ElementType::BF16 &&
        tensor.type != ElementType::F32)
      fail("expected f16, bf16 or f32 elements for " + here + ", got " +
           std::string(getElementName(tensor.type)));
    // The driver demands it; a guard may see to it instead.
    int64_t multiple = kTensorMapAlignment / getElementSize(tensor.type);
    if ((!isGuarded || isWorkspace) &&
        (tensor.alignment % kTensorMapAlignment != 0 ||
         !tensor.unitInnerStride || tensor.strideMultiple % multiple != 0))
      fail("expected an 'alignment' of 16, 'unit_inner_stride' and a "
           "'stride_multiple' of " +
           std::to_string(multiple) + ", or multiples, for " + here);
    const Json &box = getArray(item, "box", here);
    if (box.size() != 3 || !isInt64(box[0]) || !isInt64(box[1]) ||
        !isInt64(box[2])) {
      fail("expected 'box' in " + here + " to be heads, rows and columns");
      return {};
    }
    int64_t heads = box[0].get<int64_t>(), rows = box[1].get<int64_t>(),
            columns = box[2].get<int64_t>();
    for (auto [what, size] : {std::pair("heads", heads), {"rows", rows}})
      if (size < 1 || size > 256)
        fail("expected 1 to 256 " + std::string(what) + " in 'box' of " + here +
             ", got " + std::to_string(size));
    int64_t expected = getTensorMapColumns(tensor.type);
    if (columns != expected)
      fail("expected " + std::to_string(expected) +
           " columns, 128 bytes, in 'box' of " + here + ", got " +
           std::to_string(columns));
    if (failed)
      return {};
    return {uint32_t(heads), uint32_t(rows)};
  }

  ManifestParameter readParameter(const Json &item, const std::string &where) {
    ManifestParameter parameter;
    std::string kind = getString(item, "kind", "a parameter of " + where);
    if (kind == "value") {
      parameter.value = readExpression(
          getMember(item, "value", "a parameter of " + where), where);
      return parameter;
    }
    if (kind != "pointer" && kind != "stride" && kind != "tensor_map") {
      fail("unknown kind '" + kind + "' of a parameter of " + where);
      return parameter;
    }
    std::string of = getString(item, "of", "a parameter of " + where);
    std::optional<size_t> tensor = findTensor(of);
    if (!tensor) {
      fail("no tensor '" + of + "' for a parameter of " + where);
      return parameter;
    }
    parameter.tensor = *tensor;
    if (kind == "pointer") {
      parameter.kind = ManifestParameter::Kind::Pointer;
      return parameter;
    }
    if (kind == "tensor_map") {
      parameter.kind = ManifestParameter::Kind::TensorMap;
      parameter.box = readTensorMapBox(item, parameter.tensor, where);
      return parameter;
    }
    parameter.kind = ManifestParameter::Kind::Stride;
    int64_t dim = getInteger(item, "dim", "a parameter of " + where);
    if (dim < 0 ||
        dim >= int64_t(function.getTensor(parameter.tensor).shape.size()))
      fail("'" + of + "' has no dimension " + std::to_string(dim) +
           " for a parameter of " + where);
    parameter.dim = dim;
    return parameter;
  }

  ManifestKernel readKernel(const Json &item) {
    ManifestKernel kernel;
    kernel.name =
        getString(item, "name", "a kernel of '" + function.name + "'");
    std::string where = "kernel '" + kernel.name + "'";
    const Json &block = getArray(item, "block", where);
    const Json &grid = getArray(item, "grid", where);
    if (block.size() != 3 || grid.size() != 3)
      fail("expected 3 sizes in 'block' and 'grid' of " + where);
    for (size_t i = 0; !failed && i < 3; ++i) {
      if (!isInt64(block[i]) || block[i].get<int64_t>() < 1 ||
          block[i].get<int64_t>() > 1024)
        fail("expected sizes of 1 to 1024 in 'block' of " + where);
      else
        kernel.block[i] = block[i].get<int64_t>();
      kernel.grid[i] = readExpression(grid[i], where);
    }
    kernel.sharedMemory = getInteger(item, "shared_memory", where);
    if (kernel.sharedMemory < 0 ||
        kernel.sharedMemory > std::numeric_limits<int32_t>::max())
      fail("expected 'shared_memory' of " + where +
           " to be a 32-bit size, got " + std::to_string(kernel.sharedMemory));
    kernel.startsEarly = getFlag(item, "starts_early", where);
    for (const Json &parameter : getArray(item, "parameters", where))
      kernel.parameters.push_back(readParameter(parameter, where));
    return kernel;
  }

  std::vector<ManifestKernel> readKernels(const Json &object,
                                          const std::string &where) {
    std::vector<ManifestKernel> kernels;
    for (const Json &kernel : getArray(object, "kernels", where))
      kernels.push_back(readKernel(kernel));
    if (kernels.empty())
      fail("expected at least one kernel in 'kernels' of " + where);
    return kernels;
  }

  std::vector<ManifestVersion> readVersions(const Json &item,
                                            const std::string &where) {
    std::vector<ManifestVersion> versions;
    bool hasKernels = item.is_object() && item.contains("kernels");
    bool hasVersions = item.is_object() && item.contains("versions");
    if (hasKernels == hasVersions) {
      fail("expected either 'kernels' or 'versions' in " + where + ", got " +
           (hasKernels ? "both" : "neither"));
      return versions;
    }
    if (hasKernels)
      return {{std::nullopt, readKernels(item, where)}};
    const Json &list = getArray(item, "versions", where);
    if (list.empty())
      fail("expected at least one version in 'versions' of " + where);
    for (size_t i = 0; i < list.size(); ++i) {
      std::string here = "version " + std::to_string(i) + " of " + where;
      ManifestVersion &version = versions.emplace_back();
      bool isLast = i + 1 == list.size();
      if (!isLast)
        version.when = readExpression(getMember(list[i], "when", here), here);
      else if (list[i].is_object() && list[i].contains("when"))
        fail("expected no 'when' in " + here +
             ": the last version serves every launch");
      isGuarded = !isLast;
      version.kernels = readKernels(list[i], here);
    }
    return versions;
  }

  void checkNotReserved(const std::string &name, const std::string &where) {
    if (!name.empty() && name.front() == kReservedPrefix)
      fail("expected names of tensors and dimensions that do not start with "
           "'$', got '" +
           name + "' in " + where);
  }

  /// Makes the names that `tensor` binds usable in expressions. Tensors have
  /// distinct names, and no scalar has the name of a dimension.
  void addNames(const ManifestTensor &tensor, const std::string &where) {
    bool isUnique = tensorNames.insert(tensor.name).second;
    checkNotReserved(tensor.name, where);
    for (const ManifestDim &dim : tensor.shape)
      if (const auto *name = std::get_if<std::string>(&dim)) {
        checkNotReserved(*name, where);
        names.insert(*name);
      }
    if (tensor.isScalar())
      isUnique &= names.insert(tensor.name).second;
    if (!isUnique)
      fail("the name '" + tensor.name + "' stands twice in " + where);
  }

  /// A tensor that is contiguous and aligned, whose sizes arguments or results
  /// bind.
  ManifestTensor readWorkspace(const Json &item, const std::string &where) {
    ManifestTensor tensor = readTensor(item, "the workspace of " + where,
                                       /*takesExpressions=*/true);
    tensor.alignment = kWorkspaceAlignment;
    tensor.unitInnerStride = true;
    if (tensor.shape.empty())
      fail("expected dimensions of workspace '" + tensor.name + "' of " +
           where);
    for (const ManifestDim &dim : tensor.shape)
      if (const auto *name = std::get_if<std::string>(&dim))
        if (!names.count(*name) || isScalar(*name))
          fail("the dimension '" + *name + "' of workspace '" + tensor.name +
               "' is none of " + where);
    // Rows are whole 16 bytes where a tensor map can be made at all.
    int64_t vector = kTensorMapAlignment / getElementSize(tensor.type);
    if (!failed)
      if (const auto *inner = std::get_if<int64_t>(&tensor.shape.back()))
        tensor.strideMultiple = *inner > 0 && *inner % vector == 0 ? vector : 1;
    addNames(tensor, where);
    return tensor;
  }

  ManifestFunction readFunction(const Json &item) {
    function = {};
    isGuarded = false;
    names = {std::string(kSmCountName)};
    tensorNames.clear();
    function.name = getString(item, "name", "a function");
    std::string where = "function '" + function.name + "'";
    for (const Json &argument : getArray(item, "arguments", where)) {
      function.arguments.push_back(
          readTensor(argument, "the arguments of " + where));
      addNames(function.arguments.back(), where);
    }
    for (const Json &result : getArray(item, "results", where)) {
      function.results.push_back(readTensor(result, "the results of " + where));
      addNames(function.results.back(), where);
    }
    if (item.is_object() && item.contains("workspace"))
      for (const Json &tensor : getArray(item, "workspace", where))
        function.workspace.push_back(readWorkspace(tensor, where));
    for (const Json &check : getArray(item, "checks", where)) {
      std::string here = "a check of " + where;
      Expression holds = readExpression(getMember(check, "holds", here), here);
      function.checks.push_back(
          {std::move(holds), getString(check, "message", here)});
    }
    function.versions = readVersions(item, where);
    return std::move(function);
  }

  std::optional<Error> failed;
  /// The one being read: the tensors are there before the first expression.
  ManifestFunction function;
  /// Whether the kernels being read are those of a version with 'when'.
  bool isGuarded = false;
  /// Names that its expressions may use without further ado.
  std::set<std::string> names;
  std::set<std::string> tensorNames;
};
} // namespace

Result<Manifest> attnfuse::parseManifest(std::string_view json) {
  Json root = Json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                          /*allow_exceptions=*/false);
  if (root.is_discarded())
    return Error{"malformed manifest: it is not JSON"};
  return Reader().read(root);
}

Result<const ManifestFunction *>
Manifest::getFunction(std::string_view name) const {
  std::string known;
  for (const ManifestFunction &function : functions) {
    if (function.name == name)
      return &function;
    known += (known.empty() ? "" : ", ") + function.name;
  }
  return Error{"no function '" + std::string(name) +
               "' in the manifest; it has " + (known.empty() ? "none" : known)};
}
