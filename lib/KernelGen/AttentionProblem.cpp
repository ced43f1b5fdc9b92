//===- AttentionProblem.cpp - What a kernel is to compute -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/AttentionProblem.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

AttentionProblem::AttentionProblem(KernelBuilder &b, AttentionOp op,
                                   KernelAbi &abi)
    : op(op), abi(abi), scale(float(op.getScale().convertToDouble())) {
  numHeads = b.toI32(abi.getDim(b, op.getQuery(), 1));
  numKeyHeads = b.toI32(abi.getDim(b, op.getKey(), 1));
  nq = b.toI32(abi.getDim(b, op.getQuery(), 2));
  nkv = b.toI32(abi.getDim(b, op.getKey(), 2));
  limits = BandLimits::get(b, op.getBands(), nq, nkv);
  if (splitsKeys())
    numParts = b.toI32(abi.getValue(b, abi.getPartials()->count));
}

Type AttentionProblem::getOutputType() const {
  if (splitsKeys())
    return Float32Type::get(op.getContext());
  return cast<RankedTensorType>(op.getOutput().getType()).getElementType();
}

Value AttentionProblem::getNumHeadGroups(KernelBuilder &b,
                                         const KernelTile &shape) const {
  Value batch = b.toI32(abi.getDim(b, op.getQuery(), 0));
  return b.mul(batch, b.divU(numHeads, shape.packedHeads));
}

Value AttentionProblem::getNumRowBlocks(KernelBuilder &b,
                                        const KernelTile &shape) const {
  return b.ceilDiv(nq, shape.getRowsPerHead());
}

QueryTile AttentionProblem::getQueryTile(KernelBuilder &b,
                                         const KernelTile &shape,
                                         Value headGroup, Value rowBlock,
                                         Value part) const {
  Value firstRow = b.mul(rowBlock, shape.getRowsPerHead());
  Value groups = b.divU(numHeads, shape.packedHeads);
  Value batch = b.divU(headGroup, groups);
  Value head = b.mul(b.remU(headGroup, groups), shape.packedHeads);
  return getQueryTileAt(b, batch, head, firstRow, part);
}

QueryTile AttentionProblem::getQueryTileAt(KernelBuilder &b, Value batch,
                                           Value head, Value firstRow,
                                           Value part) const {
  Value keyHead = b.divU(head, b.divU(numHeads, numKeyHeads));
  return {batch, head, keyHead, firstRow, splitsKeys() ? part : Value()};
}

QueryTile AttentionProblem::getRowsFrom(KernelBuilder &b,
                                        const KernelTile &shape, QueryTile tile,
                                        Value tileRow) const {
  if (shape.packedHeads != 1) {
    int64_t rows = shape.getRowsPerHead();
    tile.head = b.add(tile.head, b.divU(tileRow, rows));
    tileRow = b.remU(tileRow, rows);
  }
  tile.firstRow = b.add(tile.firstRow, tileRow);
  return tile;
}

Value AttentionProblem::getHeadBase(KernelBuilder &b, Value tensor, Value batch,
                                    Value head) const {
  int64_t bytes =
      cast<RankedTensorType>(tensor.getType()).getElementTypeBitWidth() / 8;
  Value element = b.add(b.mul(b.toI64(batch), abi.getStride(b, tensor, 0)),
                        b.mul(b.toI64(head), abi.getStride(b, tensor, 1)));
  return b.offsetPtr(abi.getPointer(b, tensor), b.mul(element, bytes));
}

ResultRows AttentionProblem::getOutputRows(KernelBuilder &b,
                                           const QueryTile &tile) const {
  Value output = op.getOutput();
  if (splitsKeys())
    return getPartialRows(b, abi.getPartials()->output, tile,
                          op.getValueHeadDim());
  return {getHeadBase(b, output, tile.batch, tile.head),
          abi.getStride(b, output, 2)};
}

ResultRows AttentionProblem::getPartialStates(KernelBuilder &b,
                                              const QueryTile &tile) const {
  return getPartialRows(b, abi.getPartials()->rows, tile, 2);
}

ResultRows AttentionProblem::getPartialRows(KernelBuilder &b, StringRef name,
                                            const QueryTile &tile,
                                            int64_t columns) const {
  Value head =
      b.add(b.mul(b.toI64(tile.batch), b.toI64(numHeads)), b.toI64(tile.head));
  Value part = b.add(b.mul(head, b.toI64(numParts)), b.toI64(tile.part));
  Value element = b.mul(b.mul(part, b.toI64(nq)), columns);
  return {b.offsetPtr(abi.getWorkspacePointer(b, name), b.shl(element, 2)),
          b.i64(columns)};
}

std::optional<BlockList> AttentionProblem::getBlockList(KernelBuilder &b,
                                                        const QueryTile &tile,
                                                        int64_t tileN) const {
  BlocksAttr attr = op.getBlocksAttr();
  if (!attr)
    return std::nullopt;
  Value offsets = op.getRowOffsets();
  auto type = cast<RankedTensorType>(offsets.getType());
  int64_t last = type.getRank() - 1;
  Value element = b.mul(b.toI64(b.divU(tile.firstRow, attr.getQueryBlock())),
                        abi.getStride(b, offsets, last));
  // One list serves all batch entries or heads where the dimension is 1.
  for (int64_t dim = 0; dim < last; ++dim)
    if (type.getDimSize(dim) != 1)
      element = b.add(element, b.mul(b.toI64(dim == 0 ? tile.batch : tile.head),
                                     abi.getStride(b, offsets, dim)));
  Value address = b.offsetPtr(abi.getPointer(b, offsets), b.mul(element, 4));
  Value nextAddress =
      b.offsetPtr(address, b.mul(abi.getStride(b, offsets, last), 4));
  return BlockList{abi.getPointer(b, op.getColIndices()),
                   abi.getStride(b, op.getColIndices(), 0),
                   b.load(b.getI32Type(), address, 4),
                   b.load(b.getI32Type(), nextAddress, 4),
                   attr.getKeyBlock() / tileN};
}

TileWalk AttentionProblem::getWalk(KernelBuilder &b, const KernelTile &shape,
                                   const QueryTile &tile) const {
  Part part(b, "walk");
  std::optional<WalkPart> walkPart;
  if (splitsKeys())
    walkPart = WalkPart{tile.part, numParts};
  return TileWalk(b, limits, getBlockList(b, tile, shape.tileN), tile.firstRow,
                  shape.getRowsPerHead(), shape.tileN, nq, nkv, walkPart);
}
