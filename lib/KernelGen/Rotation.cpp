//===- Rotation.cpp - Rotary embedding of a tile in shared memory
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

RotationOperands RotationOperands::getQuery(AttentionOp op) {
  return {op.getQRotationAttr(), op.getQCos(), op.getQSin(), op.getQOffset(),
          op.getQPositions()};
}
RotationOperands RotationOperands::getKey(AttentionOp op) {
  return {op.getKRotationAttr(), op.getKCos(), op.getKSin(), op.getKOffset(),
          op.getKPositions()};
}
int64_t RotationOperands::getWidth() const {
  return 2 * cast<RankedTensorType>(cos.getType()).getShape()[1];
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

Value TileRotation::getTableRow(KernelBuilder &b, Value row, Value numRows,
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

Values TileRotation::loadTable(KernelBuilder &b, Value table, Value row,
                               Value column, int64_t size) const {
  Type type = cast<RankedTensorType>(table.getType()).getElementType();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  Value element =
      b.add(b.mul(row, abi.getStride(b, table, 0)), b.toI64(column));
  Value address = b.offsetPtr(abi.getPointer(b, table), b.mul(element, bytes));
  Type vectorType = size == 1 ? type : VectorType::get({size}, type);
  Value vector =
      b.load(vectorType, address, std::min<int64_t>(16, size * bytes));
  Values elements;
  for (int64_t index = 0; index < size; ++index)
    elements.push_back(b.toF32(b.extractElement(vector, index)));
  return elements;
}

void TileRotation::emit(KernelBuilder &b, const SharedLayout &layout,
                        Value tile, int64_t rows, Value firstRow, Value numRows,
                        Value batch, Value thread) const {
  Part part(b, "rotate");
  bool half = operands.attr.getPairing() == Pairing::Half;
  int64_t size = getFeatureVectorSize(operands);
  int64_t unitsPerRow =
      (half ? operands.getWidth() / 2 : operands.getWidth()) / size;
  Type vectorType =
      size == 1 ? elementType : VectorType::get({size}, elementType);

  // Pointer to `size` features of a row from feature `feature` on.
  auto getAddress = [&](Value row, Value feature) {
    Value chunk = b.divU(feature, SharedLayout::kChunkElements);
    Value inChunk = b.remU(feature, SharedLayout::kChunkElements);
    return b.offsetPtr(
        tile, b.add(layout.getOffset(b, row, chunk), b.mul(inChunk, 2)));
  };
  auto loadFeatures = [&](Value address) {
    Value vector = b.load(vectorType, address, 2 * size);
    Values features;
    for (int64_t index = 0; index < size; ++index)
      features.push_back(b.toF32(b.extractElement(vector, index)));
    return features;
  };
  auto storeFeatures = [&](Values &features, Value address) {
    for (Value &feature : features)
      feature = b.fromF32(feature, elementType);
    b.store(b.makeVector(features), address, 2 * size);
  };
  auto rotate = [&](Value &x, Value &y, Value cos, Value sin) {
    Value rotatedX = b.fma(x, cos, b.negF(b.mulF(y, sin)));
    y = b.fma(y, cos, b.mulF(x, sin));
    x = rotatedX;
  };

  b.forLoop(thread, b.i32(rows * unitsPerRow), threads, [&](Value unit) {
    Value row = b.divU(unit, unitsPerRow);
    Value feature = b.mul(b.remU(unit, unitsPerRow), size);
    Value tableRow = getTableRow(b, b.add(firstRow, row), numRows, batch);
    Value column = half ? feature : b.divU(feature, 2);
    int64_t columns = operands.getTableVectorSize();
    Values cos = loadTable(b, operands.cos, tableRow, column, columns);
    Values sin = loadTable(b, operands.sin, tableRow, column, columns);
    Value address = getAddress(row, feature);
    Values x = loadFeatures(address);
    if (half) {
      Value partner = getAddress(row, b.add(feature, operands.getWidth() / 2));
      Values y = loadFeatures(partner);
      for (int64_t index = 0; index < columns; ++index)
        rotate(x[index], y[index], cos[index], sin[index]);
      storeFeatures(y, partner);
    } else {
      for (int64_t index = 0; index < columns; ++index)
        rotate(x[2 * index], x[2 * index + 1], cos[index], sin[index]);
    }
    storeFeatures(x, address);
  });
}
