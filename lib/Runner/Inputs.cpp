//===- Inputs.cpp - Arguments of a function, given or made up -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Inputs.h"
#include "AttentionUses.h"
#include "RandomInputs.h"
#include "attnfuse/Execution/HostTypes.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <unistd.h>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

namespace {
class InputValidator {
public:
  InputValidator(const DimensionClasses &classes, const DimensionSizes &sizes,
                 ArrayRef<HostTensor> arguments)
      : classes(classes), sizes(sizes), arguments(arguments) {}

  llvm::Error validate() {
    for (const RotationUse &use : getRotations(classes.getFunction()))
      if (llvm::Error error = checkTableRows(use))
        return error;
    for (const BlockUse &use : getBlockUses(classes.getFunction()))
      if (llvm::Error error = checkBlocks(use))
        return error;
    return llvm::Error::success();
  }

private:
  /// The tensor of an argument or of a constant of integers; null for other
  /// values.
  const HostTensor *find(Value value) {
    if (!value)
      return nullptr;
    value = skipCasts(value);
    if (auto argument = dyn_cast<BlockArgument>(value))
      return &arguments[argument.getArgNumber()];
    auto known = constants.find(value.getAsOpaquePointer());
    if (known != constants.end())
      return &known->second;
    std::optional<HostTensor> tensor = readConstant(value);
    return tensor
               ? &constants
                      .emplace(value.getAsOpaquePointer(), std::move(*tensor))
                      .first->second
               : nullptr;
  }

  static std::optional<HostTensor> readConstant(Value value) {
    APInt scalar;
    DenseIntElementsAttr elements;
    if (matchPattern(value, m_ConstantInt(&scalar))) {
      HostTensor tensor(ElementType::I64, {});
      tensor.setInt(0, scalar.getSExtValue());
      return tensor;
    }
    if (!matchPattern(value, m_Constant(&elements)))
      return std::nullopt;
    HostTensor tensor(ElementType::I64, elements.getType().getShape());
    for (auto [index, entry] : llvm::enumerate(elements.getValues<APInt>()))
      tensor.setInt(index, entry.getSExtValue());
    return tensor;
  }

  /// What find() has found, with the name of an argument.
  std::string describe(Value value) const {
    auto argument = dyn_cast<BlockArgument>(skipCasts(value));
    if (!argument)
      return "a constant";
    return "argument '" + classes.getArguments()[argument.getArgNumber()].name +
           "'";
  }

  llvm::Error checkTableRows(const RotationUse &use) {
    int64_t rows = *sizes.get(classes.getClass(use.cos, 0));
    int64_t length = *sizes.get(classes.getClass(use.input, 2));
    const HostTensor *offset = find(use.offset);
    // What positions and computed offsets hold is clamped.
    if (use.positions || (use.offset && !offset))
      return llvm::Error::success();
    __int128 start = use.staticOffset;
    if (offset)
      start += offset->getInt(0);
    if (start < 0)
      return makeError(describe(use.offset) +
                       ": expected an offset of at least " +
                       Twine(-use.staticOffset) +
                       ", which is the first row of the rotary table, got " +
                       Twine(offset->getInt(0)));
    __int128 needed = start + length;
    if (needed <= rows)
      return llvm::Error::success();
    auto argument = dyn_cast<BlockArgument>(skipCasts(use.cos));
    std::string table =
        argument
            ? "'" + classes.getArguments()[argument.getArgNumber()].name + "'"
            : "of the function";
    return makeError("the rotary table " + table +
                     " is too short: expected at least " +
                     Twine(int64_t(std::min<__int128>(needed, INT64_MAX))) +
                     " rows for " + Twine(length) + " positions from " +
                     Twine(int64_t(std::min<__int128>(start, INT64_MAX))) +
                     ", got " + Twine(rows));
  }

  llvm::Error checkBlocks(const BlockUse &use) {
    const HostTensor *offsets = find(use.rowOffsets);
    const HostTensor *columns = find(use.colIndices);
    if (!offsets || !columns)
      return llvm::Error::success();
    int64_t perPattern = offsets->getShape().back();
    int64_t keys = *sizes.get(classes.getClass(use.keys, use.keysDim));
    int64_t numKeyBlocks = llvm::divideCeil(keys, use.keyBlock);
    for (int64_t i = 0, end = offsets->getNumElements(); i < end; ++i) {
      int64_t first = offsets->getInt(i);
      if (first < 0 || first > columns->getNumElements())
        return makeError(describe(use.rowOffsets) + " has entry " + Twine(i) +
                         " = " + Twine(first) + ": expected a number in [0, " +
                         Twine(columns->getNumElements()) + "]");
      if (i % perPattern == perPattern - 1)
        continue;
      int64_t last = offsets->getInt(i + 1);
      if (last < first)
        return makeError(describe(use.rowOffsets) + " has entry " +
                         Twine(i + 1) + " = " + Twine(last) +
                         ": expected at least the entry before, " +
                         Twine(first));
      if (llvm::Error error =
              checkColumns(use, *columns, first, last, numKeyBlocks))
        return error;
    }
    return llvm::Error::success();
  }

  llvm::Error checkColumns(const BlockUse &use, const HostTensor &columns,
                           int64_t first, int64_t last, int64_t numKeyBlocks) {
    last = std::min(last, columns.getNumElements());
    for (int64_t entry = first; entry < last; ++entry) {
      int64_t column = columns.getInt(entry);
      int64_t before = entry == first ? -1 : columns.getInt(entry - 1);
      if (column <= before || column >= numKeyBlocks)
        return makeError(describe(use.colIndices) + " has entry " +
                         Twine(entry) + " = " + Twine(column) +
                         ": expected strictly increasing columns below " +
                         Twine(numKeyBlocks));
    }
    return llvm::Error::success();
  }

  const DimensionClasses &classes;
  const DimensionSizes &sizes;
  ArrayRef<HostTensor> arguments;
  /// By value; find() returns pointers into it.
  std::map<void *, HostTensor> constants;
};
} // namespace

llvm::Error mlir::attnfuse::validateInputs(const DimensionClasses &classes,
                                           const DimensionSizes &sizes,
                                           ArrayRef<HostTensor> arguments) {
  return InputValidator(classes, sizes, arguments).validate();
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

bool mlir::attnfuse::hasDimension(const DimensionClasses &classes,
                                  StringRef key) {
  return classes.lookup(key) || !classes.lookupAlias(key).empty();
}

static SmallVector<StringRef> splitDims(StringRef dims) {
  SmallVector<StringRef> entries;
  dims.split(entries, ',', -1, /*KeepEmpty=*/false);
  return entries;
}

SmallVector<StringRef> mlir::attnfuse::getDimsKeys(StringRef dims) {
  SmallVector<StringRef> keys;
  for (StringRef entry : splitDims(dims))
    keys.push_back(entry.split('=').first);
  return keys;
}

/// "B=2,N=64". Aliases come last: they fill in what is left.
static llvm::Error applyDims(const DimensionClasses &classes,
                             const InputSpec &spec, DimensionSizes &sizes) {
  SmallVector<std::pair<StringRef, int64_t>> plain, aliases;
  for (StringRef entry : splitDims(spec.dims)) {
    auto [key, value] = entry.split('=');
    int64_t size;
    if (key.empty() || value.getAsInteger(10, size))
      return makeError("expected --dims NAME=SIZE,..., got '" + entry + "'");
    if (!hasDimension(classes, key) && spec.foreignDims.count(key.str()))
      continue;
    bool isAlias = !classes.lookup(key) && !classes.lookupAlias(key).empty();
    (isAlias ? aliases : plain).push_back({key, size});
  }
  plain.append(aliases);
  for (auto [key, size] : plain)
    if (llvm::Error error = sizes.set(key, size, "--dims"))
      return error;
  return llvm::Error::success();
}

/// Bytes of a tensor, or an error if it is larger than this machine's memory.
static llvm::Expected<uint64_t> countBytes(StringRef name, ElementType type,
                                           ArrayRef<int64_t> shape,
                                           uint64_t limit) {
  uint64_t bytes = getElementSize(type);
  if (llvm::is_contained(shape, 0))
    return 0;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, uint64_t(size), &bytes) || bytes > limit)
      return makeError("'" + name +
                       "' is too large: expected tensors that fit in this "
                       "machine's memory of " +
                       Twine(limit >> 20) + " MiB");
  return bytes;
}

static uint64_t getMemoryLimit() {
  long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size)
                               : uint64_t(1) << 40;
}

llvm::Error mlir::attnfuse::checkMemory(const DimensionClasses &classes,
                                        const DimensionSizes &sizes) {
  func::FuncOp function = classes.getFunction();
  uint64_t limit = getMemoryLimit(), total = 0;
  auto add = [&](StringRef name, Type type,
                 ArrayRef<int64_t> shape) -> llvm::Error {
    std::optional<ElementType> element = getHostElementType(type);
    if (!element)
      return makeError("'" + name +
                       "' has a type that cannot be passed: expected a tensor "
                       "or scalar of f16, bf16, f32, f64, i32, i64 or index");
    llvm::Expected<uint64_t> bytes = countBytes(name, *element, shape, limit);
    if (!bytes)
      return bytes.takeError();
    total += *bytes;
    if (total > limit)
      return makeError("arguments and results need more than this machine's "
                       "memory of " +
                       Twine(limit >> 20) + " MiB: expected smaller sizes");
    return llvm::Error::success();
  };
  for (auto [role, argument] :
       llvm::zip(classes.getArguments(), function.getArguments()))
    if (llvm::Error error =
            add(role.name, argument.getType(), sizes.getShape(argument)))
      return error;
  for (auto [index, role] : llvm::enumerate(classes.getResults()))
    if (llvm::Error error = add(role.name, function.getResultTypes()[index],
                                sizes.getResultShape(index)))
      return error;
  return llvm::Error::success();
}

static llvm::Error setGivenShapes(const DimensionClasses &classes,
                                  const InputSpec &spec,
                                  DimensionSizes &sizes) {
  func::FuncOp function = classes.getFunction();
  for (const auto &[name, tensor] : spec.given) {
    const auto *role = llvm::find_if(classes.getArguments(),
                                     [name = &name](const ArgumentRole &role) {
                                       return role.name == *name;
                                     });
    if (role == classes.getArguments().end()) {
      if (spec.foreignArguments.count(name))
        continue;
      SmallVector<StringRef> known;
      for (const ArgumentRole &role : classes.getArguments())
        known.push_back(role.name);
      return makeError("unknown argument '" + name + "': function '" +
                       function.getName() + "' has " + llvm::join(known, ", "));
    }
    unsigned index = role - classes.getArguments().begin();
    std::optional<ElementType> expected =
        getHostElementType(function.getArgumentTypes()[index]);
    if (expected && *expected != tensor.getType())
      return makeError("argument '" + name + "': expected elements of type " +
                       Twine(getElementName(*expected)) + ", got " +
                       getElementName(tensor.getType()));
    if (llvm::Error error = sizes.setShape(index, tensor.getShape()))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<Call>
mlir::attnfuse::prepareCall(const DimensionClasses &classes,
                            const InputSpec &spec) {
  Call call{{}, {}, DimensionSizes(classes)};
  if (llvm::Error error = setGivenShapes(classes, spec, call.sizes))
    return std::move(error);
  if (llvm::Error error = applyDims(classes, spec, call.sizes))
    return std::move(error);
  for (const ArgumentRole &role : classes.getArguments())
    if (!spec.seed && !spec.given.count(role.name))
      return makeError("argument '" + role.name +
                       "' has no value: expected --input " + role.name +
                       "=FILE or --random=SEED");

  RandomInputs random(classes, spec.seed.value_or(0));
  // The random inputs' own sizes come after all others are known.
  SmallVector<unsigned> later;
  for (Value table :
       llvm::map_range(getRotations(classes.getFunction()),
                       [](const RotationUse &use) { return use.cos; }))
    later.push_back(classes.getClass(table, 0));
  for (const BlockUse &use : getBlockUses(classes.getFunction()))
    later.push_back(classes.getClass(use.colIndices, 0));
  if (spec.seed)
    if (llvm::Error error = random.chooseSizes(call.sizes, later))
      return std::move(error);
  if (llvm::Error error = call.sizes.finish(later))
    return std::move(error);
  if (llvm::Error error = checkMemory(classes, call.sizes))
    return std::move(error);
  if (llvm::Error error = random.completeSizes(call.sizes))
    return std::move(error);
  if (llvm::Error error = call.sizes.finish())
    return std::move(error);
  if (llvm::Error error = checkMemory(classes, call.sizes))
    return std::move(error);

  for (auto [index, role] : llvm::enumerate(classes.getArguments())) {
    auto given = spec.given.find(role.name);
    if (given != spec.given.end()) {
      call.arguments.push_back(given->second);
      continue;
    }
    llvm::Expected<HostTensor> tensor = random.make(index, call.sizes);
    if (!tensor)
      return tensor.takeError();
    call.arguments.push_back(std::move(*tensor));
  }
  if (llvm::Error error = validateInputs(classes, call.sizes, call.arguments))
    return std::move(error);

  func::FuncOp function = classes.getFunction();
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    HostTensor result(*getHostElementType(type),
                      call.sizes.getResultShape(index));
    std::memset(static_cast<void *>(result.data()), 0xff, result.getNumBytes());
    call.results.push_back(std::move(result));
  }
  return call;
}
