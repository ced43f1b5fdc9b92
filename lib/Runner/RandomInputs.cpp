//===- RandomInputs.cpp - Arguments by role and seed ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomInputs.h"
#include "attnfuse/Execution/HostTypes.h"
#include "attnfuse/Runner/Inputs.h"
#include "attnfuse/Support/MakeError.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

//===----------------------------------------------------------------------===//
// RandomStream
//===----------------------------------------------------------------------===//

/// The finaliser of splitmix64: a bijection that mixes all bits.
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;

RandomStream::RandomStream(uint64_t seed, uint64_t stream)
    : state(mix(seed + kGoldenGamma) ^ mix(~stream * kGoldenGamma)) {}

uint64_t RandomStream::next() { return mix(state += kGoldenGamma); }

double RandomStream::uniform() { return double(next() >> 11) * 0x1p-53; }

int64_t RandomStream::between(int64_t low, int64_t high) {
  return low + int64_t(next() % (uint64_t(high) - uint64_t(low) + 1));
}

double RandomStream::normal() {
  // Eight uniform numbers of 16 bits: their sum has variance 8 / 12.
  int64_t sum = 0;
  for (int draw = 0; draw < 2; ++draw) {
    uint64_t bits = next();
    for (int part = 0; part < 4; ++part, bits >>= 16)
      sum += int64_t(bits & 0xffff);
  }
  return (double(sum) * 0x1p-16 - 4) * 1.2247448713915889;
}

//===----------------------------------------------------------------------===//
// RandomInputs
//===----------------------------------------------------------------------===//

RandomInputs::RandomInputs(const DimensionClasses &classes, uint64_t seed)
    : classes(classes), function(classes.getFunction()), seed(seed),
      rotations(getRotations(function)), blockUses(getBlockUses(function)) {}

RandomStream RandomInputs::getStream(Value argument) const {
  return RandomStream(seed, cast<BlockArgument>(argument).getArgNumber());
}

namespace {
/// The blocks of one pattern set, as decided by the argument of the columns.
struct BlockLists {
  /// Patterns times query blocks, each with ascending columns.
  std::vector<std::vector<int32_t>> rows;
  int64_t numEntries = 0;
};
} // namespace

/// Lists of about 40 % of the blocks, with some rows empty; of exactly
/// `numEntries` blocks if that is given (and is not more than there are).
static BlockLists makeLists(RandomStream random, int64_t numRows,
                            int64_t numKeyBlocks,
                            std::optional<int64_t> numEntries) {
  BlockLists lists;
  lists.rows.resize(numRows);
  int64_t cells = numRows * numKeyBlocks, wanted = numEntries.value_or(0);
  for (std::vector<int32_t> &row : lists.rows) {
    // A row that is not empty has one block for sure, whatever the others.
    bool isEmpty = random.uniform() < 0.1;
    int64_t first = numKeyBlocks ? random.between(0, numKeyBlocks - 1) : 0;
    for (int64_t block = 0; block < numKeyBlocks; ++block, --cells) {
      // Selection sampling: of the cells that are left, so many are wanted.
      bool isListed =
          numEntries ? random.uniform() * double(cells) < wanted
                     : !isEmpty && (block == first || random.uniform() < 0.4);
      if (!isListed)
        continue;
      row.push_back(block);
      --wanted;
      ++lists.numEntries;
    }
  }
  return lists;
}

/// Rows over all patterns, and blocks of keys.
static std::pair<int64_t, int64_t> getBlockGrid(const BlockUse &use,
                                                const DimensionClasses &classes,
                                                const DimensionSizes &sizes) {
  std::vector<int64_t> offsets = sizes.getShape(use.rowOffsets);
  int64_t numRows = std::max<int64_t>(offsets.back() - 1, 0);
  if (offsets.size() == 3)
    numRows *= offsets[0] * offsets[1];
  int64_t keys = sizes.get(classes.getClass(use.keys, use.keysDim)).value_or(0);
  return {numRows, llvm::divideCeil(keys, use.keyBlock)};
}

static const BlockUse *findBlockUse(ArrayRef<BlockUse> uses, Value argument) {
  for (const BlockUse &use : uses)
    if (skipCasts(use.rowOffsets) == argument ||
        skipCasts(use.colIndices) == argument)
      return &use;
  return nullptr;
}

llvm::Error RandomInputs::chooseSizes(DimensionSizes &sizes,
                                      ArrayRef<unsigned> later) {
  ArrayRef<DimensionClass> all = classes.getClasses();
  auto choose = [&](unsigned number, int64_t size) {
    return sizes.get(number) ? llvm::Error::success()
                             : sizes.set(number, size, "the random inputs");
  };
  // Groups of two query heads, unless one of the sizes is known.
  for (auto [queryHeads, keyHeads] : classes.getGroups()) {
    std::optional<int64_t> hq = sizes.get(queryHeads);
    if (llvm::Error error = choose(keyHeads, hq.value_or(2)))
      return error;
    if (llvm::Error error = choose(queryHeads, 2 * *sizes.get(keyHeads)))
      return error;
  }
  for (auto [number, entry] : llvm::enumerate(all)) {
    if (entry.derived)
      continue;
    // Lengths that are no multiple of any tile, and that fit the tables.
    int64_t length = 100;
    for (const RotationUse &use : rotations)
      if (std::optional<int64_t> rows = sizes.get(classes.getClass(use.cos, 0)))
        if (!use.positions && classes.getClass(use.input, 2) == number)
          length = std::clamp<int64_t>(*rows - use.staticOffset, 1, length);
    int64_t size = llvm::StringSwitch<int64_t>(entry.names.front())
                       .Cases({"Nq", "Nkv", "N"}, length)
                       .Cases({"B", "H"}, 2)
                       .Default(llvm::is_contained(later, number) ? 0 : 3);
    if (size)
      if (llvm::Error error = choose(number, size))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error RandomInputs::completeSizes(DimensionSizes &sizes) {
  llvm::DenseMap<unsigned, int64_t> tableRows;
  for (const RotationUse &use : rotations) {
    unsigned table = classes.getClass(use.cos, 0);
    std::optional<int64_t> length = sizes.get(classes.getClass(use.input, 2));
    if (sizes.get(table) || !length)
      continue;
    int64_t slack = use.positions ? 64 : use.offset ? 37 : 0;
    int64_t &rows = tableRows[table];
    rows = std::max({rows, int64_t(1), *length + use.staticOffset + slack});
  }
  for (auto [table, rows] : tableRows)
    if (llvm::Error error = sizes.set(table, rows, "the random inputs"))
      return error;

  for (const BlockUse &use : blockUses) {
    unsigned entries = classes.getClass(use.colIndices, 0);
    auto columns = dyn_cast<BlockArgument>(skipCasts(use.colIndices));
    if (sizes.get(entries) || !columns)
      continue;
    auto [numRows, numKeyBlocks] = getBlockGrid(use, classes, sizes);
    BlockLists lists =
        makeLists(getStream(columns), numRows, numKeyBlocks, std::nullopt);
    if (llvm::Error error =
            sizes.set(entries, lists.numEntries, "the random inputs"))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<int64_t>
RandomInputs::makeOffset(Value argument, const DimensionSizes &sizes) const {
  int64_t low = 0, high = 1 << 20;
  for (const RotationUse &use : rotations) {
    if (!use.offset || skipCasts(use.offset) != argument)
      continue;
    int64_t rows = *sizes.get(classes.getClass(use.cos, 0));
    int64_t length =
        use.positions ? 1 : *sizes.get(classes.getClass(use.input, 2));
    low = std::max(low, -use.staticOffset);
    high = std::min(high, rows - length - use.staticOffset);
  }
  if (low > high)
    return makeError("no offset keeps all positions inside the rotary tables: "
                     "expected longer tables");
  return getStream(argument).between(low, high);
}

/// Base 10000, as in the paper on rotary embeddings (arXiv 2104.09864).
void RandomInputs::fillTable(HostTensor &table, bool isSin) const {
  int64_t numPairs = table.getShape()[1];
  for (int64_t i = 0, end = table.getNumElements(); i < end; ++i) {
    double frequency =
        std::pow(10000.0, -double(i % numPairs) / double(numPairs));
    double angle = double(i / numPairs) * frequency;
    table.setFloat(i, isSin ? std::sin(angle) : std::cos(angle));
  }
}

llvm::Error RandomInputs::fillBlocks(HostTensor &tensor, Value argument,
                                     bool isOffsets,
                                     const DimensionSizes &sizes) const {
  const BlockUse &use = *findBlockUse(blockUses, argument);
  auto columns = dyn_cast<BlockArgument>(skipCasts(use.colIndices));
  if (!columns || !isa<BlockArgument>(skipCasts(use.rowOffsets)))
    return makeError("random block lists need both the row offsets and the "
                     "column indices as arguments of the function");
  auto [numRows, numKeyBlocks] = getBlockGrid(use, classes, sizes);
  int64_t numEntries = *sizes.get(classes.getClass(use.colIndices, 0));
  if (numEntries > numRows * numKeyBlocks)
    return makeError("expected at most " + Twine(numRows * numKeyBlocks) +
                     " listed blocks, got " + Twine(numEntries));
  RandomStream random = getStream(columns);
  BlockLists lists = makeLists(random, numRows, numKeyBlocks, std::nullopt);
  if (lists.numEntries != numEntries)
    lists = makeLists(random, numRows, numKeyBlocks, numEntries);
  if (!isOffsets) {
    int64_t index = 0;
    for (const std::vector<int32_t> &row : lists.rows)
      for (int32_t column : row)
        tensor.setInt(index++, column);
    return llvm::Error::success();
  }
  // Every pattern has one offset more than rows.
  int64_t perPattern = tensor.getShape().back() - 1, index = 0, entry = 0;
  for (int64_t row = 0; row < numRows; ++row) {
    if (row % perPattern == 0)
      tensor.setInt(index++, entry);
    entry += lists.rows[row].size();
    tensor.setInt(index++, entry);
  }
  return llvm::Error::success();
}

llvm::Expected<HostTensor> RandomInputs::make(unsigned index,
                                              const DimensionSizes &sizes) {
  BlockArgument argument = function.getArgument(index);
  const ArgumentRole &role = classes.getArguments()[index];
  HostTensor tensor(*getHostElementType(argument.getType()),
                    sizes.getShape(argument));
  RandomStream random = getStream(argument);
  auto fill = [&](auto next) {
    for (int64_t i = 0, end = tensor.getNumElements(); i < end; ++i)
      tensor.setFloat(i, next());
  };
  switch (role.kind) {
  case RoleKind::Cos:
  case RoleKind::Sin:
    fillTable(tensor, role.kind == RoleKind::Sin);
    return tensor;
  case RoleKind::Offset: {
    llvm::Expected<int64_t> offset = makeOffset(argument, sizes);
    if (!offset)
      return offset.takeError();
    tensor.setInt(0, *offset);
    return tensor;
  }
  case RoleKind::Positions: {
    int64_t high = INT64_MAX, low = 0;
    for (const RotationUse &use : rotations)
      if (use.positions && skipCasts(use.positions) == argument) {
        int64_t rows = *sizes.get(classes.getClass(use.cos, 0));
        low = std::max(low, -use.staticOffset);
        high = std::min(high, rows - 1 - use.staticOffset);
      }
    for (int64_t i = 0, end = tensor.getNumElements(); i < end; ++i)
      tensor.setInt(i, random.between(low, std::max(low, high)));
    return tensor;
  }
  case RoleKind::RowOffsets:
  case RoleKind::ColIndices:
    if (llvm::Error error = fillBlocks(
            tensor, argument, role.kind == RoleKind::RowOffsets, sizes))
      return std::move(error);
    return tensor;
  case RoleKind::Slopes:
    fill([&] { return std::exp2(-8 * random.uniform()); });
    return tensor;
  case RoleKind::Bias:
    // Some entries mask their keys.
    fill([&] { return random.uniform() < 0.03 ? -INFINITY : random.normal(); });
    return tensor;
  default:
    break;
  }
  if (!isa<FloatType>(getElementTypeOrSelf(argument.getType())))
    return makeError("no random values for argument '" + role.name +
                     "', whose role is not known: expected --input " +
                     role.name + "=FILE");
  fill([&] { return random.normal(); });
  return tensor;
}
