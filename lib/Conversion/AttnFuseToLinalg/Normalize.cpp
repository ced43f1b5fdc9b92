//===- Normalize.cpp - Lowering of the normalisers ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::detail;

/// The type [B, Hq, Nq] of one value per row of `scores`.
static RankedTensorType getRowType(ImplicitLocOpBuilder &b, Value scores) {
  auto type = cast<RankedTensorType>(scores.getType());
  return RankedTensorType::get(type.getShape().drop_back(), b.getF32Type());
}

/// `combine` over each row, from `init`.
static Value buildRowReduction(
    ImplicitLocOpBuilder &b, Value scores, double init,
    function_ref<Value(ImplicitLocOpBuilder &, Value, Value)> combine) {
  Sizes sizes = getSizes(b, scores);
  sizes.pop_back();
  Value out = buildFilled(b, getRowType(b, scores), sizes, init);
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  auto body = [&](OpBuilder &nested, Location loc, ValueRange elements) {
    ImplicitLocOpBuilder inner(loc, nested);
    linalg::YieldOp::create(inner, combine(inner, elements[1], elements[0]));
  };
  return linalg::GenericOp::create(b, out.getType(), scores, out,
                                   {identity, identity.dropResult(3)},
                                   iterators, body)
      .getResult(0);
}

static Value buildRowSum(ImplicitLocOpBuilder &b, Value weights) {
  return buildRowReduction(
      b, weights, 0,
      [](ImplicitLocOpBuilder &b, Value acc, Value element) -> Value {
        return arith::AddFOp::create(b, acc, element);
      });
}

/// `scores` changed element by element, with the value of the row at hand.
static Value buildRowMap(
    ImplicitLocOpBuilder &b, Value scores, Value rows,
    function_ref<Value(ImplicitLocOpBuilder &, Value score, Value row)> fn) {
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange elements) {
    ImplicitLocOpBuilder inner(loc, nested);
    linalg::YieldOp::create(inner, fn(inner, elements[1], elements[0]));
  };
  return linalg::GenericOp::create(b, scores.getType(), rows, scores,
                                   {identity.dropResult(3), identity},
                                   iterators, body)
      .getResult(0);
}

/// weights / sum, and 0 in rows whose sum is 0.
static Value buildDividedBySum(ImplicitLocOpBuilder &b, Value weights,
                               Value sums) {
  return buildRowMap(
      b, weights, sums,
      [](ImplicitLocOpBuilder &b, Value weight, Value sum) -> Value {
        Value zero = constantF32(b, 0);
        Value isEmpty =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
        Value ratio = arith::DivFOp::create(b, weight, sum);
        return arith::SelectOp::create(b, isEmpty, zero, ratio);
      });
}

std::pair<Value, Value>
attnfuse::detail::buildSoftmax(ImplicitLocOpBuilder &b, Value scores,
                               RankedTensorType lseType) {
  Value max = buildRowReduction(
      b, scores, -INFINITY,
      [](ImplicitLocOpBuilder &b, Value acc, Value element) -> Value {
        return arith::MaximumFOp::create(b, acc, element);
      });
  // A row without a visible key has the maximum -inf; shifting it by 0 instead
  // makes all its exponentials 0, and so its sum, where -inf - -inf would be
  // NaN.
  auto shift = [](ImplicitLocOpBuilder &b, Value max) -> Value {
    return arith::SelectOp::create(b, isMasked(b, max), constantF32(b, 0), max);
  };
  Value weights = buildRowMap(
      b, scores, max, [&](ImplicitLocOpBuilder &b, Value score, Value max) {
        Value shifted = arith::SubFOp::create(b, score, shift(b, max));
        return math::ExpOp::create(b, shifted).getResult();
      });
  Value sums = buildRowSum(b, weights);
  Value probs = buildDividedBySum(b, weights, sums);
  if (!lseType)
    return {probs, Value()};

  Sizes rowSizes = getSizes(b, scores);
  rowSizes.pop_back();
  // log(0) + 0 = -inf in rows without a visible key.
  Value lse =
      buildMap(b, lseType, rowSizes, {max, sums},
               [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
                 Value log = math::LogOp::create(b, elements[1]);
                 return arith::AddFOp::create(b, log, shift(b, elements[0]));
               });
  return {probs, lse};
}

Value attnfuse::detail::buildRelu(ImplicitLocOpBuilder &b, Value scores,
                                  ReluNorm norm) {
  Value length;
  if (norm == ReluNorm::Length) {
    length =
        arith::IndexCastOp::create(b, b.getI64Type(), getSize(b, scores, 3));
    length = arith::SIToFPOp::create(b, b.getF32Type(), length);
  }
  Value weights = buildScoreMap(
      b, scores, [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
        Value weight =
            arith::MaximumFOp::create(b, elements[0], constantF32(b, 0));
        return length ? arith::DivFOp::create(b, weight, length) : weight;
      });
  if (norm != ReluNorm::Sum)
    return weights;
  return buildDividedBySum(b, weights, buildRowSum(b, weights));
}

namespace {
struct LowerSoftmax : OpRewritePattern<SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType lseType;
    if (op.getLse())
      lseType = op.getLse().getType();
    auto [probs, lse] = buildSoftmax(b, op.getScores(), lseType);
    SmallVector<Value> results{probs};
    if (lse)
      results.push_back(lse);
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct LowerReluAttention : OpRewritePattern<ReluAttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReluAttentionOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildRelu(b, op.getScores(), op.getNorm()));
    return success();
  }
};
} // namespace

void attnfuse::detail::populateNormalizePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerSoftmax, LowerReluAttention>(patterns.getContext());
}
