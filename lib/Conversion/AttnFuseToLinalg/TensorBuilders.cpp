//===- TensorBuilders.cpp - Tensors and scalars of the lowering -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::detail;

Sizes attnfuse::detail::getSizes(ImplicitLocOpBuilder &b, Value tensor) {
  return Sizes(tensor::getMixedSizes(b, b.getLoc(), tensor));
}

Value attnfuse::detail::getValue(ImplicitLocOpBuilder &b, OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return constantIndex(b, *constant);
  return cast<Value>(size);
}

Value attnfuse::detail::getSize(ImplicitLocOpBuilder &b, Value tensor,
                                int64_t dim) {
  return getValue(b, tensor::getMixedSize(b, b.getLoc(), tensor, dim));
}

Value attnfuse::detail::constantIndex(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value attnfuse::detail::constantF32(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value)));
}

Value attnfuse::detail::toF32(ImplicitLocOpBuilder &b, Value element) {
  if (element.getType().isF32())
    return element;
  return arith::ExtFOp::create(b, b.getF32Type(), element);
}

Value attnfuse::detail::fromF32(ImplicitLocOpBuilder &b, Value value,
                                Type type) {
  if (type.isF32())
    return value;
  return arith::TruncFOp::create(b, type, value);
}

Value attnfuse::detail::isMasked(ImplicitLocOpBuilder &b, Value score) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, score,
                               constantF32(b, -INFINITY));
}

Value attnfuse::detail::buildBroadcastIndex(ImplicitLocOpBuilder &b,
                                            Value tensor, int64_t dim,
                                            Value index) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getDimSize(dim) == 1 ? constantIndex(b, 0) : index;
}

Value attnfuse::detail::buildEmpty(ImplicitLocOpBuilder &b,
                                   RankedTensorType type,
                                   ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamicSizes;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(dim))
      dynamicSizes.push_back(getValue(b, size));
  return tensor::EmptyOp::create(b, type, dynamicSizes);
}

Value attnfuse::detail::buildFilled(ImplicitLocOpBuilder &b,
                                    RankedTensorType type,
                                    ArrayRef<OpFoldResult> sizes,
                                    double value) {
  Value empty = buildEmpty(b, type, sizes);
  return linalg::FillOp::create(b, constantF32(b, value), empty).getResult(0);
}

Value attnfuse::detail::buildMap(ImplicitLocOpBuilder &b, RankedTensorType type,
                                 ArrayRef<OpFoldResult> sizes,
                                 ValueRange inputs, ElementFn fn) {
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps(inputs.size() + 1, identity);
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange elements) {
    ImplicitLocOpBuilder inner(loc, nested);
    linalg::YieldOp::create(inner, fn(inner, elements.drop_back()));
  };
  Value empty = buildEmpty(b, type, sizes);
  return linalg::GenericOp::create(b, type, inputs, empty, maps, iterators,
                                   body)
      .getResult(0);
}

Value attnfuse::detail::buildScoreMap(ImplicitLocOpBuilder &b, Value scores,
                                      ElementFn fn) {
  // The scores are the destination, so that bufferization updates them in
  // place.
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange elements) {
    ImplicitLocOpBuilder inner(loc, nested);
    linalg::YieldOp::create(inner, fn(inner, elements));
  };
  return linalg::GenericOp::create(b, scores.getType(), ValueRange(), scores,
                                   identity, iterators, body)
      .getResult(0);
}

Value attnfuse::detail::buildToF32(ImplicitLocOpBuilder &b, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType().isF32())
    return tensor;
  return buildMap(b, type.clone(b.getF32Type()), getSizes(b, tensor), tensor,
                  [](ImplicitLocOpBuilder &b, ValueRange elements) {
                    return toF32(b, elements[0]);
                  });
}
