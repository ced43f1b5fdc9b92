//===- RotateTensor.cpp - The kernel of a rotation ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/RotateTensor.h"
#include "attnfuse/KernelGen/ProgrammaticLaunch.h"
#include "attnfuse/KernelGen/Rotation.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

/// The most heads of a thread, which share what it loads of the tables and are
/// all on their way at once; and as many where it is not known how many there
/// are: those past the last are copied in vain.
static constexpr int64_t kMostHeads = 8, kHeadsIfUnknown = 2;

RotationGrid::RotationGrid(RopeOp op) {
  RotationOperands operands = RotationOperands::get(op);
  ArrayRef<int64_t> shape = op.getInput().getType().getShape();
  int64_t width = operands.getWidth(), copied = shape[3] - width;
  rotatedUnits = width / 2 / operands.getTableVectorSize();
  copiedVectorSize = std::min(SharedLayout::kChunkElements,
                              (width | copied) & -(width | copied));
  copiedUnits = copied / copiedVectorSize;
  rows = kThreads / getUnits();
  heads = kHeadsIfUnknown;
  if (!ShapedType::isDynamic(shape[1])) {
    int64_t count = std::max<int64_t>(1, shape[1]);
    heads = llvm::divideCeil(count, llvm::divideCeil(count, kMostHeads));
  }
}

namespace {
class RotateTensor {
public:
  RotateTensor(RopeOp op, LLVM::LLVMFuncOp kernel, KernelAbi &abi)
      : b(op.getLoc(), OpBuilder::atBlockEnd(&kernel.getBody().front())),
        op(op), abi(abi), grid(op),
        rotation(RotationOperands::get(op), getElementType(), abi) {}

  void build(bool releasesDependents);

private:
  Type getElementType() { return op.getInput().getType().getElementType(); }
  Value getSize(int64_t dim) {
    return b.toI32(abi.getDim(b, op.getInput(), dim));
  }
  /// Address of row `row` of each of the block's heads.
  Values getRows(Value tensor, Value batch, ArrayRef<Value> heads, Value row);
  void rotate(Value unit);
  void copy(Value unit);
  Value getAddress(Value row, Value feature) {
    return b.offsetPtr(row, b.toI64(b.shl(feature, 1)));
  }

  KernelBuilder b;
  RopeOp op;
  KernelAbi &abi;
  RotationGrid grid;
  RowRotation rotation;
  Value batch, row, numRows;
  Values inputRows, outputRows;
};
} // namespace

Values RotateTensor::getRows(Value tensor, Value batch, ArrayRef<Value> heads,
                             Value row) {
  auto offset = [&](Value index, int64_t dim) {
    return b.mul(b.toI64(index), abi.getStride(b, tensor, dim));
  };
  Value start = b.add(offset(batch, 0), offset(row, 2));
  return llvm::map_to_vector(heads, [&](Value head) -> Value {
    return b.offsetPtr(abi.getPointer(b, tensor),
                       b.shl(b.add(start, offset(head, 1)), 1));
  });
}

void RotateTensor::rotate(Value unit) {
  RowRotation::Tables tables = rotation.loadTables(
      b, unit, rotation.getTableRow(b, row, numRows, batch));
  SmallVector<RowRotation::Features> features;
  for (Value from : inputRows)
    features.push_back(rotation.loadFeatures(
        b, unit, [&](Value feature) { return getAddress(from, feature); }));
  for (auto [index, to] : llvm::enumerate(outputRows))
    rotation.store(
        b, unit, features[index], tables,
        [&, to = to](Value feature) { return getAddress(to, feature); });
}

void RotateTensor::copy(Value unit) {
  int64_t size = grid.copiedVectorSize;
  Type type = VectorType::get({size}, getElementType());
  Value feature = b.add(b.mul(b.sub(unit, grid.rotatedUnits), size),
                        RotationOperands::get(op).getWidth());
  Values vectors = llvm::map_to_vector(inputRows, [&](Value from) -> Value {
    return b.load(type, getAddress(from, feature), 2 * size);
  });
  for (auto [vector, to] : llvm::zip_equal(vectors, outputRows))
    b.store(vector, getAddress(to, feature), 2 * size);
}

void RotateTensor::build(bool releasesDependents) {
  if (releasesDependents)
    releaseDependents(b);
  Value numHeads = getSize(1);
  numRows = getSize(2);
  Value rowBlocks = b.max(b.ceilDiv(numRows, grid.rows), 1);
  Value headBlocks = b.max(b.ceilDiv(numHeads, grid.heads), 1);
  Value block = b.blockId(), thread = b.threadId();
  Value headBlock = b.remU(b.divU(block, rowBlocks), headBlocks);
  batch = b.divU(b.divU(block, rowBlocks), headBlocks);
  Value rowOfBlock = b.divU(thread, grid.getUnits());
  Value unit = b.remU(thread, grid.getUnits());
  row = b.add(b.mul(b.remU(block, rowBlocks), grid.rows), rowOfBlock);

  Value isInside = b.andI(b.lt(rowOfBlock, grid.rows), b.lt(row, numRows));
  b.ifThen(isInside, [&] {
    // Past the last head, that one again.
    Values heads;
    for (int64_t index = 0; index < grid.heads; ++index)
      heads.push_back(b.min(b.add(b.mul(headBlock, grid.heads), index),
                            b.sub(numHeads, 1)));
    inputRows = getRows(op.getInput(), batch, heads, row);
    outputRows = getRows(op.getResult(), batch, heads, row);
    if (grid.copiedUnits == 0)
      return rotate(unit);
    Value isRotated = b.lt(unit, grid.rotatedUnits);
    b.ifElse(
        isRotated, TypeRange(),
        [&]() -> Values {
          rotate(unit);
          return {};
        },
        [&]() -> Values {
          copy(unit);
          return {};
        });
  });
  b.create<LLVM::ReturnOp>(ValueRange());
}

void mlir::attnfuse::kernelgen::buildRotateTensor(RopeOp op,
                                                  LLVM::LLVMFuncOp kernel,
                                                  KernelAbi &abi,
                                                  bool releasesDependents) {
  RotateTensor(op, kernel, abi).build(releasesDependents);
}
