//===- Rotation.cpp - Rotary embedding of rows ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Rotation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

/// Prefetches are in units of these bytes.
static constexpr int64_t kPrefetchUnit = 16;
/// Ranges whose rows are farther apart than so many of their sizes are left
/// out, as most of the bytes between them would be prefetched in vain.
static constexpr int64_t kMostSpread = 4;

RotationOperands RotationOperands::getQuery(AttentionOp op) {
  return {op.getQRotationAttr(), op.getQCos(), op.getQSin(), op.getQOffset(),
          op.getQPositions()};
}
RotationOperands RotationOperands::getKey(AttentionOp op) {
  return {op.getKRotationAttr(), op.getKCos(), op.getKSin(), op.getKOffset(),
          op.getKPositions()};
}
RotationOperands RotationOperands::get(RopeOp op) {
  return {
      RotationAttr::get(op.getContext(), op.getPairing(), op.getStaticOffset()),
      op.getCos(), op.getSin(), op.getOffset(), op.getPositions()};
}
int64_t RotationOperands::getWidth() const {
  return 2 * cast<RankedTensorType>(cos.getType()).getShape()[1];
}

int64_t RotationOperands::getTableElementBytes() const {
  return cast<RankedTensorType>(cos.getType()).getElementTypeBitWidth() / 8;
}

/// Features that a thread moves at once: the largest power of two that divides
/// what lies together, at most a chunk.
static int64_t getFeatureVectorSize(const RotationOperands &operands) {
  int64_t together = operands.attr.getPairing() == Pairing::Half
                         ? operands.getWidth() / 2
                         : operands.getWidth();
  return std::min<int64_t>(SharedLayout::kChunkElements, together & -together);
}

int64_t RotationOperands::getTableVectorSize() const {
  int64_t features = getFeatureVectorSize(*this);
  return attr.getPairing() == Pairing::Half ? features : features / 2;
}

Value RowRotation::getTableRow(KernelBuilder &b, Value row, Value numRows,
                               Value batch) const {
  Value position;
  if (operands.positions) {
    auto type = cast<RankedTensorType>(operands.positions.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    int64_t rank = type.getRank();
    Value index = b.toI64(b.min(row, b.sub(numRows, 1)));
    Value offset = b.mul(index, abi.getStride(b, operands.positions, rank - 1));
    if (rank == 2 && type.getShape()[0] != 1)
      offset = b.add(offset, b.mul(b.toI64(batch),
                                   abi.getStride(b, operands.positions, 0)));
    Value address = b.offsetPtr(abi.getPointer(b, operands.positions),
                                b.mul(offset, bytes));
    position = b.toI64(b.load(type.getElementType(), address, bytes));
  } else {
    position = b.toI64(row);
  }
  if (operands.offset)
    position = b.add(position, abi.getScalar(b, operands.offset));
  // Positions outside the table are clamped to it (docs/spec.md), before the
  // constant offset is added, so that no position can overflow.
  int64_t offset = operands.attr.getOffset();
  Value last = b.sub(abi.getDim(b, operands.cos, 0), 1 + offset);
  return b.add(b.max(b.min(position, last), -offset), offset);
}

Value RowRotation::getTablePtr(KernelBuilder &b, Value table, Value row,
                               Value column) const {
  Value element =
      b.add(b.mul(row, abi.getStride(b, table, 0)), b.toI64(column));
  return b.offsetPtr(abi.getPointer(b, table),
                     b.mul(element, operands.getTableElementBytes()));
}

Values RowRotation::loadTable(KernelBuilder &b, Value table, Value row,
                              Value column, int64_t size) const {
  Type type = cast<RankedTensorType>(table.getType()).getElementType();
  Value vector =
      b.load(size == 1 ? type : VectorType::get({size}, type),
             getTablePtr(b, table, row, column),
             std::min<int64_t>(16, size * operands.getTableElementBytes()));
  Values elements;
  for (int64_t index = 0; index < size; ++index)
    elements.push_back(b.toF32(b.extractElement(vector, index)));
  return elements;
}

void RowRotation::forEachTableRange(
    KernelBuilder &b, Value firstRow, int64_t count, Value numRows, Value batch,
    function_ref<void(Value, Value)> body) const {
  if (operands.positions)
    return;
  // Nothing of the tables is needed for rows past the end.
  Value lastRow = b.min(b.add(firstRow, count - 1), b.sub(numRows, 1));
  Value first = getTableRow(b, firstRow, numRows, batch);
  Value distance = b.sub(getTableRow(b, lastRow, numRows, batch), first);
  for (Value table : {operands.cos, operands.sin}) {
    int64_t elementBytes = operands.getTableElementBytes();
    int64_t rowBytes = operands.getWidth() / 2 * elementBytes;
    Value stride = b.mul(abi.getStride(b, table, 0), elementBytes);
    // The address may be in the midst of 16 bytes, and so may the end.
    Value begin = b.create<LLVM::PtrToIntOp>(
        b.getI64Type(), getTablePtr(b, table, first, b.i32(0)));
    Value end = b.add(b.add(begin, b.mul(distance, stride)), rowBytes);
    begin = b.andI(begin, -kPrefetchUnit);
    Value bytes =
        b.andI(b.add(b.sub(end, begin), kPrefetchUnit - 1), -kPrefetchUnit);
    // Strides may be negative, and an offset at the end of its type turns
    // positions around.
    Value isNear = b.andI(b.le(b.i64(0), stride),
                          b.le(stride, b.i64(kMostSpread * rowBytes)));
    b.ifThen(b.andI(isNear, b.le(b.i64(0), distance)),
             [&] { body(begin, b.toI32(bytes)); });
  }
}

static bool isHalf(const RotationOperands &operands) {
  return operands.attr.getPairing() == Pairing::Half;
}

int64_t RowRotation::getUnitsPerRow() const {
  int64_t pairs = operands.getWidth() / 2;
  return pairs / operands.getTableVectorSize();
}

RowRotation::Tables RowRotation::loadTables(KernelBuilder &b, Value unit,
                                            Value tableRow) const {
  int64_t size = operands.getTableVectorSize();
  Value column = b.mul(unit, size);
  return {loadTable(b, operands.cos, tableRow, column, size),
          loadTable(b, operands.sin, tableRow, column, size)};
}

Type RowRotation::getVectorType() const {
  int64_t size = getFeatureVectorSize(operands);
  return size == 1 ? elementType : VectorType::get({size}, elementType);
}

SmallVector<Value> RowRotation::getFeatureStarts(KernelBuilder &b,
                                                 Value unit) const {
  Value first = b.mul(unit, getFeatureVectorSize(operands));
  if (!isHalf(operands))
    return {first};
  return {first, b.add(first, operands.getWidth() / 2)};
}

RowRotation::Features RowRotation::loadFeatures(KernelBuilder &b, Value unit,
                                                GetAddress getAddress) const {
  Features features;
  for (Value start : getFeatureStarts(b, unit))
    features.push_back(b.load(getVectorType(), getAddress(start),
                              2 * getFeatureVectorSize(operands)));
  return features;
}

/// (x, y) to (x cos - y sin, y cos + x sin).
static void rotatePair(KernelBuilder &b, Value &x, Value &y, Value cos,
                       Value sin) {
  Value rotatedX = b.fma(x, cos, b.negF(b.mulF(y, sin)));
  y = b.fma(y, cos, b.mulF(x, sin));
  x = rotatedX;
}

void RowRotation::store(KernelBuilder &b, Value unit, const Features &features,
                        const Tables &tables, GetAddress getAddress) const {
  int64_t size = getFeatureVectorSize(operands);
  // x of every pair, and y.
  SmallVector<Values, 2> vectors;
  for (Value vector : features) {
    Values &elements = vectors.emplace_back();
    for (int64_t index = 0; index < size; ++index)
      elements.push_back(b.toF32(b.extractElement(vector, index)));
  }
  for (auto [pair, cosSin] :
       llvm::enumerate(llvm::zip_equal(tables.cos, tables.sin))) {
    auto [cos, sin] = cosSin;
    bool half = isHalf(operands);
    Value &x = half ? vectors[0][pair] : vectors[0][2 * pair];
    Value &y = half ? vectors[1][pair] : vectors[0][2 * pair + 1];
    rotatePair(b, x, y, cos, sin);
  }
  for (auto [start, elements] :
       llvm::zip_equal(getFeatureStarts(b, unit), vectors)) {
    for (Value &element : elements)
      element = b.fromF32(element, elementType);
    b.store(b.makeVector(elements), getAddress(start), 2 * size);
  }
}

void TileRotation::emit(KernelBuilder &b, const SharedLayout &layout,
                        Value tile, int64_t numTileRows, int64_t period,
                        Value firstRow, Value numRows, Value batch,
                        Value thread, function_ref<void()> awaitTile) const {
  Part part(b, "rotate");
  int64_t unitsPerRow = rows.getUnitsPerRow();
  int64_t numUnits = numTileRows * unitsPerRow;

  // A thread has units `first`, `first` + `threads`, ... Those that `distance`
  // units of the thread lie between are of the same place in every head, and
  // have tables in common.
  int64_t perThread = numUnits / threads;
  int64_t heads = numTileRows / std::min(period, numTileRows);
  if (numUnits % (threads * heads) != 0)
    heads = 1;
  int64_t distance = perThread / heads;
  bool waits = bool(awaitTile);
  struct Unit {
    Value row, inRow;
    RowRotation::Tables tables;
  };
  // Of each of `heads` heads, `count` units: all loads of a kind together.
  auto rotate = [&](Value first, int64_t count, int64_t heads) {
    SmallVector<Unit> units;
    for (int64_t index = 0; index < count; ++index) {
      Value unit = b.add(first, index * threads);
      Unit &entry = units.emplace_back();
      entry.row = b.divU(unit, unitsPerRow);
      entry.inRow = b.remU(unit, unitsPerRow);
      Value inHead = entry.row;
      if (heads == 1 && period < numTileRows)
        inHead = b.remU(inHead, period);
      entry.tables = rows.loadTables(
          b, entry.inRow,
          rows.getTableRow(b, b.add(firstRow, inHead), numRows, batch));
    }
    if (waits)
      awaitTile();
    auto rotateHeads = [&](int64_t begin, int64_t end) {
      SmallVector<RowRotation::Features> features;
      auto forEachUnit = [&](auto body) {
        for (int64_t head = begin; head < end; ++head)
          for (const Unit &unit : units)
            body(unit, [&](Value feature) {
              Value chunk = b.divU(feature, SharedLayout::kChunkElements);
              Value inChunk = b.remU(feature, SharedLayout::kChunkElements);
              Value offset =
                  layout.getOffset(b, unit.row, chunk, head * period);
              return b.offsetPtr(tile, b.add(offset, b.mul(inChunk, 2)));
            });
      };
      forEachUnit([&](const Unit &unit, RowRotation::GetAddress getAddress) {
        features.push_back(rows.loadFeatures(b, unit.inRow, getAddress));
      });
      auto next = features.begin();
      forEachUnit([&](const Unit &unit, RowRotation::GetAddress getAddress) {
        rows.store(b, unit.inRow, *next++, unit.tables, getAddress);
      });
    };
    int64_t headsAtOnce = std::max<int64_t>(1, unitsAtOnce / count);
    for (int64_t head = 0; head < heads; head += headsAtOnce)
      rotateHeads(head, std::min(head + headsAtOnce, heads));
  };

  int64_t atOnce = std::max<int64_t>(1, unitsAtOnce / heads);
  int64_t whole = distance / atOnce * atOnce;
  if (whole > atOnce)
    b.forLoop(thread, b.i32(whole * threads), atOnce * threads,
              [&](Value first) { rotate(first, atOnce, heads); });
  else if (whole)
    rotate(thread, whole, heads);
  if (distance > whole)
    rotate(b.add(thread, whole * threads), distance - whole, heads);
  if (perThread * threads < numUnits) {
    // All threads wait, also those that have nothing to rotate.
    if (waits && perThread == 0)
      awaitTile();
    waits = false;
    b.ifThen(b.lt(b.add(thread, perThread * threads), numUnits),
             [&] { rotate(b.add(thread, perThread * threads), 1, 1); });
  }
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Columns of which a lane has two, and rows of which it has one.
static constexpr int64_t kGroupColumns = 8, kFragmentRows = 2;
/// The most that a thread copies at once.
static constexpr int64_t kChunkBytes = 16;

/// The register of the lane's row `r` and of group `group` of columns.
static int64_t getRegister(int64_t group, int64_t r) { return 2 * group + r; }

int64_t FragmentRotation::getNumGroups() const {
  return operands.getWidth() / kGroupColumns / (isHalf(operands) ? 2 : 1);
}

void FragmentRotation::stageTables(KernelBuilder &b, const StagedTables &staged,
                                   Value firstRow, Value numRows, Value batch,
                                   Value thread, int64_t threads,
                                   Copy copy) const {
  int64_t elementBytes = operands.getTableElementBytes();
  int64_t size =
      std::min(operands.getTableVectorSize(), kChunkBytes / elementBytes);
  int64_t chunks = operands.getWidth() / 2 / size;
  std::array tables{operands.cos, operands.sin};
  b.forLoop(thread, b.i32(staged.rows * chunks), threads, [&](Value chunk) {
    Value row = b.divU(chunk, chunks);
    Value column = b.mul(b.remU(chunk, chunks), size);
    Value tableRow = rows.getTableRow(b, b.add(firstRow, row), numRows, batch);
    Value to = b.offsetPtr(staged.base, b.add(b.mul(row, staged.pitch),
                                              b.mul(column, elementBytes)));
    for (auto [index, table] : llvm::enumerate(tables))
      copy(b.offsetPtr(to, index * staged.rows * staged.pitch),
           rows.getTablePtr(b, table, tableRow, column), size * elementBytes);
  });
}

Values FragmentRotation::loadTables(KernelBuilder &b,
                                    const StagedTables &staged, Value row,
                                    Value lane) const {
  Type type = cast<RankedTensorType>(operands.cos.getType()).getElementType();
  int64_t elementBytes = operands.getTableElementBytes();
  // Of a group, a lane has two pairs of `half`, or one of `interleaved`.
  int64_t size = isHalf(operands) ? 2 : 1;
  Type vectorType = size == 1 ? type : VectorType::get({size}, type);
  Value base = b.offsetPtr(staged.base,
                           b.add(b.mul(row, staged.pitch),
                                 b.mul(b.andI(lane, 3), size * elementBytes)));
  Values tables;
  for (int64_t r = 0; r < kFragmentRows; ++r)
    for (int64_t group = 0; group < getNumGroups(); ++group)
      for (int64_t table : {0, 1})
        tables.push_back(b.load(
            vectorType,
            b.offsetPtr(base, (table * staged.rows + 8 * r) * staged.pitch +
                                  group * 4 * size * elementBytes),
            size * elementBytes));
  return tables;
}

void FragmentRotation::rotate(KernelBuilder &b,
                              MutableArrayRef<Value> fragments,
                              ArrayRef<Value> tables, int64_t group) const {
  for (int64_t r = 0; r < kFragmentRows; ++r) {
    ArrayRef<Value> entry = tables.slice(2 * (r * getNumGroups() + group), 2);
    Value cos = entry[0], sin = entry[1];
    auto at = [&](Value vector, int64_t index) {
      return b.toF32(b.extractElement(vector, index));
    };
    Value &word = fragments[getRegister(group, r)];
    auto [x, y] = b.unpack(word, elementType);
    if (!isHalf(operands)) {
      rotatePair(b, x, y, at(cos, 0), at(sin, 0));
      word = b.pack(x, y, elementType);
      continue;
    }
    Value &partner = fragments[getRegister(group + getNumGroups(), r)];
    auto [partnerX, partnerY] = b.unpack(partner, elementType);
    rotatePair(b, x, partnerX, at(cos, 0), at(sin, 0));
    rotatePair(b, y, partnerY, at(cos, 1), at(sin, 1));
    word = b.pack(x, y, elementType);
    partner = b.pack(partnerX, partnerY, elementType);
  }
}
