//===- Rotate.cpp - Lowering of the rotation ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::detail;

namespace {
/// Where the element at feature `d` of a row rotates.
struct PairPlace {
  /// i1: the second of its pair.
  Value isSecond;
  /// The feature it rotates with, and the column of the tables.
  Value partner, column;
};
} // namespace

static PairPlace buildPairPlace(ImplicitLocOpBuilder &b, Pairing pairing,
                                Value d, int64_t halfWidth) {
  PairPlace place;
  if (pairing == Pairing::Half) {
    Value half = constantIndex(b, halfWidth);
    place.isSecond =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, d, half);
    Value below = arith::SubIOp::create(b, d, half);
    Value above = arith::AddIOp::create(b, d, half);
    place.partner = arith::SelectOp::create(b, place.isSecond, below, above);
    place.column = arith::SelectOp::create(b, place.isSecond, below, d);
    return place;
  }
  Value one = constantIndex(b, 1);
  Value odd = arith::AndIOp::create(b, d, one);
  place.isSecond = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, odd, one);
  place.partner = arith::XOrIOp::create(b, d, one);
  place.column = arith::ShRUIOp::create(b, d, one);
  return place;
}

/// The row of the tables for sequence index `n` of batch entry `batch`.
static Value buildTableRow(ImplicitLocOpBuilder &b, const Rotation &rotation,
                           Value batch, Value n) {
  Value row = n;
  if (rotation.positions) {
    auto type = cast<RankedTensorType>(rotation.positions.getType());
    SmallVector<Value> at{n};
    if (type.getRank() == 2)
      at.insert(at.begin(),
                type.getDimSize(0) == 1 ? constantIndex(b, 0) : batch);
    row = tensor::ExtractOp::create(b, rotation.positions, at);
    row = arith::IndexCastOp::create(b, b.getIndexType(), row);
  }
  if (rotation.offset) {
    Value offset =
        arith::IndexCastOp::create(b, b.getIndexType(), rotation.offset);
    row = arith::AddIOp::create(b, row, offset);
  }
  // Clamped before the constant offset is added, so that no position overflows.
  Value last =
      arith::SubIOp::create(b, getSize(b, rotation.cos, 0),
                            constantIndex(b, 1 + rotation.staticOffset));
  row = arith::MinSIOp::create(b, row, last);
  row =
      arith::MaxSIOp::create(b, row, constantIndex(b, -rotation.staticOffset));
  if (rotation.staticOffset == 0)
    return row;
  return arith::AddIOp::create(b, row, constantIndex(b, rotation.staticOffset));
}

Value attnfuse::detail::buildRotation(ImplicitLocOpBuilder &b, Value input,
                                      const Rotation &rotation) {
  auto type = cast<RankedTensorType>(input.getType());
  int64_t halfWidth =
      cast<RankedTensorType>(rotation.cos.getType()).getDimSize(1);
  int64_t headDim = type.getDimSize(3);
  bool partial = 2 * halfWidth < headDim;

  auto rotate = [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
    SmallVector<Value> at;
    for (int64_t dim = 0; dim < 4; ++dim)
      at.push_back(linalg::IndexOp::create(b, dim));
    Value d = at[3];
    PairPlace place = buildPairPlace(b, rotation.pairing, d, halfWidth);
    Value rotates;
    if (partial) {
      // Features that pass through still read: some pair inside the row.
      rotates = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, d,
                                      constantIndex(b, 2 * halfWidth));
      place.partner = arith::SelectOp::create(b, rotates, place.partner, d);
      place.column = arith::MinSIOp::create(b, place.column,
                                            constantIndex(b, halfWidth - 1));
    }
    Value row = buildTableRow(b, rotation, at[0], at[2]);
    at[3] = place.partner;
    auto extract = [&](Value tensor, ValueRange indices) {
      return toF32(b, tensor::ExtractOp::create(b, tensor, indices));
    };
    Value own = toF32(b, elements[0]);
    Value partner = extract(input, at);
    Value cos = extract(rotation.cos, {row, place.column});
    Value sin = extract(rotation.sin, {row, place.column});
    Value plus = arith::MulFOp::create(b, partner, sin);
    Value minus = arith::NegFOp::create(b, plus);
    Value turned = arith::AddFOp::create(
        b, arith::MulFOp::create(b, own, cos),
        arith::SelectOp::create(b, place.isSecond, plus, minus));
    turned = fromF32(b, turned, type.getElementType());
    return partial ? arith::SelectOp::create(b, rotates, turned, elements[0])
                   : turned;
  };
  return buildMap(b, type, getSizes(b, input), input, rotate);
}

namespace {
struct LowerRope : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Rotation rotation{op.getPairing(), int64_t(op.getStaticOffset()),
                      op.getCos(),     op.getSin(),
                      op.getOffset(),  op.getPositions()};
    rewriter.replaceOp(op, buildRotation(b, op.getInput(), rotation));
    return success();
  }
};
} // namespace

void attnfuse::detail::populateRotatePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerRope>(patterns.getContext());
}
