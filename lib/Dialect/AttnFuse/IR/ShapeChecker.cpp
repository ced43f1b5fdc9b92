//===- ShapeChecker.cpp - Named dimensions in verifiers -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShapeChecker.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

LogicalResult ShapeChecker::bind(StringRef name, Value value,
                                 ArrayRef<StringRef> dims) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  for (auto [dim, size] : llvm::zip_equal(dims, shape)) {
    Size &known = sizes[dim];
    if (ShapedType::isDynamic(size) || size == known.size)
      continue;
    if (ShapedType::isDynamic(known.size)) {
      known = {size, name, value};
      continue;
    }
    InFlightDiagnostic diag = op->emitOpError("expected dimension ")
                              << dim << " of '" << name << "' to be "
                              << known.size << " as in '" << known.owner
                              << "', got " << size;
    diag.attachNote(known.value.getLoc())
        << "'" << known.owner << "' has type " << known.value.getType();
    return diag;
  }
  return success();
}

int64_t ShapeChecker::get(StringRef dim) const {
  return sizes.lookup(dim).size;
}

LogicalResult ShapeChecker::checkStatic(StringRef dim) const {
  int64_t size = get(dim);
  if (ShapedType::isDynamic(size))
    return op->emitOpError("expected a static size for dimension ")
           << dim
           << ", got '?'; write the size in the type of the function's "
              "argument";
  if (size < 1)
    return op->emitOpError("expected dimension ")
           << dim << " to be at least 1, got " << size;
  return success();
}

LogicalResult ShapeChecker::checkHeadGroups() const {
  int64_t hq = get("Hq"), hkv = get("Hkv");
  if (ShapedType::isDynamic(hq) || ShapedType::isDynamic(hkv))
    return success();
  if (hkv == 0 ? hq == 0 : hq % hkv == 0)
    return success();
  return op->emitOpError("expected the number of query heads to be a multiple "
                         "of the number of key heads, got ")
         << hq << " and " << hkv;
}

LogicalResult mlir::attnfuse::verifyRotation(ShapeChecker &shapes,
                                             const RotationParts &parts) {
  Operation *op = shapes.getOperation();
  std::string rows = (parts.prefix + "P").str();
  std::string pairs = (parts.prefix + "R/2").str();
  std::string cosName = (parts.prefix + "cos").str();
  std::string sinName = (parts.prefix + "sin").str();
  std::string positionsName = (parts.prefix + "positions").str();

  // rope_c1: cos and sin have one shape and element type.
  if (failed(shapes.bind(cosName, parts.cos, {rows, pairs})) ||
      failed(shapes.bind(sinName, parts.sin, {rows, pairs})))
    return failure();
  Type cosElement = getElementTypeOrSelf(parts.cos.getType());
  Type sinElement = getElementTypeOrSelf(parts.sin.getType());
  if (cosElement != sinElement)
    return op->emitOpError("expected '")
           << sinName << "' to have the element type of '" << cosName << "', "
           << cosElement << ", got " << sinElement;

  // rope_c2: D and R/2 are static and at least 1; there is a row.
  if (failed(shapes.checkStatic(parts.headDim)) ||
      failed(shapes.checkStatic(pairs)))
    return failure();
  if (shapes.get(rows) == 0)
    return op->emitOpError("expected '")
           << cosName << "' to have at least 1 row, got 0";

  // rope_c3: R <= D.
  int64_t numPairs = shapes.get(pairs), headDim = shapes.get(parts.headDim);
  if (numPairs > headDim / 2)
    return op->emitOpError("expected '")
           << cosName << "' to have at most " << headDim / 2
           << " columns, one for two of " << headDim << " features, got "
           << numPairs;

  // rope_c4: 0 <= static_offset < 2^31.
  if (parts.staticOffset < 0 || parts.staticOffset >= kMaxExtent)
    return op->emitOpError("expected the ")
           << parts.prefix << "rotation's constant offset to be in [0, 2^31), "
           << "got " << parts.staticOffset;

  // rope_c5: not both offset and positions.
  if (parts.offset && parts.positions)
    return op->emitOpError("expected '")
           << parts.prefix << "offset' or '" << positionsName
           << "', got both; add the offset to the positions";

  // rope_c6: positions are [N] or [B, N].
  if (parts.positions) {
    SmallVector<StringRef> dims{parts.batchDim, parts.lengthDim};
    if (cast<RankedTensorType>(parts.positions.getType()).getRank() == 1)
      dims.erase(dims.begin());
    return shapes.bind(positionsName, parts.positions, dims);
  }

  // rope_c7: the table reaches the last position, where that is known.
  int64_t p = shapes.get(rows), n = shapes.get(parts.lengthDim);
  if (parts.offset || ShapedType::isDynamic(p) || ShapedType::isDynamic(n) ||
      n == 0 || n <= p - parts.staticOffset)
    return success();
  InFlightDiagnostic diag = op->emitOpError("expected '")
                            << cosName << "' to have at least "
                            << uint64_t(n) + parts.staticOffset << " rows, got "
                            << p;
  diag.attachNote(parts.cos.getLoc())
      << "'" << cosName << "' has type " << parts.cos.getType();
  return diag;
}

LogicalResult mlir::attnfuse::verifyBlocks(ShapeChecker &shapes,
                                           Value rowOffsets, int64_t queryBlock,
                                           int64_t keyBlock) {
  Operation *op = shapes.getOperation();
  // block_sparse_c1: 1 <= block size < 2^31.
  if (failed(BlocksAttr::verify([&] { return op->emitOpError(); }, queryBlock,
                                keyBlock)))
    return failure();

  auto shape = cast<RankedTensorType>(rowOffsets.getType()).getShape();
  // block_sparse_c2: leading dimensions are 1 or those of the scores.
  if (shape.size() == 3)
    for (auto [dim, size] :
         {std::pair("B", shape[0]), std::pair("Hq", shape[1])}) {
      int64_t expected = shapes.get(dim);
      if (size != 1 && !ShapedType::isDynamic(size) &&
          !ShapedType::isDynamic(expected) && size != expected)
        return op->emitOpError("expected dimension ")
               << dim << " of 'row_offsets' to be 1 or " << expected << ", got "
               << size;
    }

  // block_sparse_c3: one offset more than there are query blocks.
  int64_t nq = shapes.get("Nq"), length = shape.back();
  if (ShapedType::isDynamic(nq) || ShapedType::isDynamic(length))
    return success();
  int64_t expected = llvm::divideCeil(nq, queryBlock) + 1;
  if (length == expected)
    return success();
  return op->emitOpError("expected 'row_offsets' to have ")
         << expected << " entries, one more than " << nq
         << " queries have blocks of " << queryBlock << ", got " << length;
}

LogicalResult mlir::attnfuse::verifyScale(Operation *op, const APFloat &scale) {
  // Scores are f32, and so is what they are multiplied by.
  if (std::isfinite(float(scale.convertToDouble())))
    return success();
  return op->emitOpError("expected a scale that is finite in f32, got ")
         << scale.convertToDouble();
}

LogicalResult mlir::attnfuse::verifyOutputType(Operation *op, Type valueElement,
                                               Type outputElement) {
  if (outputElement == valueElement || outputElement.isF32())
    return success();
  return op->emitOpError("expected an output of ")
         << valueElement << " (as 'value') or f32, got " << outputElement;
}
