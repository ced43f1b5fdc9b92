//===- Product.cpp - Lowering of the two products -------------------------===//
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

/// The number of query heads that share a head of k or v; at least 1, so that
/// tensors without heads divide by it safely.
static Value buildGroupSize(ImplicitLocOpBuilder &b, Value queryLike,
                            Value keyLike) {
  auto queryType = cast<RankedTensorType>(queryLike.getType());
  auto keyType = cast<RankedTensorType>(keyLike.getType());
  int64_t hq = queryType.getDimSize(1), hkv = keyType.getDimSize(1);
  if (!ShapedType::isDynamic(hq) && !ShapedType::isDynamic(hkv))
    return constantIndex(b, hkv == 0 ? 1 : std::max<int64_t>(hq / hkv, 1));
  Value one = constantIndex(b, 1);
  Value divisor = arith::MaxUIOp::create(b, getSize(b, keyLike, 1), one);
  Value group = arith::DivUIOp::create(b, getSize(b, queryLike, 1), divisor);
  return arith::MaxUIOp::create(b, group, one);
}

/// out[b, h, m, n] += left[b, h, m, c] * right[b, h / group, c, n], all f32 but
/// for the choice of the summand in `accumulate`. `right` has its last
/// dimension contiguous and innermost, which is what lets the host's vector
/// units work.
static Value
buildGroupedProduct(ImplicitLocOpBuilder &b, Value left, Value right, Value out,
                    function_ref<Value(ImplicitLocOpBuilder &, Value left,
                                       Value right, Value acc)>
                        accumulate) {
  Value group = buildGroupSize(b, left, right);
  MLIRContext *context = b.getContext();
  AffineExpr d[5];
  bindDimsList(context, MutableArrayRef(d));
  auto leftMap = AffineMap::get(5, 0, {d[0], d[1], d[2], d[3]}, context);
  auto outMap = AffineMap::get(5, 0, {d[0], d[1], d[2], d[4]}, context);
  SmallVector<utils::IteratorType> iterators(5, utils::IteratorType::parallel);
  iterators[3] = utils::IteratorType::reduction;
  auto body = [&](OpBuilder &nested, Location loc, ValueRange elements) {
    ImplicitLocOpBuilder inner(loc, nested);
    Value head =
        arith::DivUIOp::create(inner, linalg::IndexOp::create(inner, 1), group);
    Value at[] = {linalg::IndexOp::create(inner, 0), head,
                  linalg::IndexOp::create(inner, 3),
                  linalg::IndexOp::create(inner, 4)};
    Value other = tensor::ExtractOp::create(inner, right, at);
    linalg::YieldOp::create(inner, accumulate(inner, toF32(inner, elements[0]),
                                              other, elements[1]));
  };
  return linalg::GenericOp::create(b, out.getType(), left, out,
                                   {leftMap, outMap}, iterators, body)
      .getResult(0);
}

/// k [B, H, N, D] as f32 [B, H, D, N].
static Value buildTransposedF32(ImplicitLocOpBuilder &b, Value key) {
  auto type = cast<RankedTensorType>(key.getType());
  ArrayRef<int64_t> shape = type.getShape();
  Sizes sizes = getSizes(b, key);
  std::swap(sizes[2], sizes[3]);
  auto resultType = RankedTensorType::get(
      {shape[0], shape[1], shape[3], shape[2]}, b.getF32Type());
  AffineMap maps[] = {AffineMap::getPermutationMap(
                          ArrayRef<int64_t>{0, 1, 3, 2}, b.getContext()),
                      b.getMultiDimIdentityMap(4)};
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto body = [](OpBuilder &nested, Location loc, ValueRange elements) {
    ImplicitLocOpBuilder inner(loc, nested);
    linalg::YieldOp::create(inner, toF32(inner, elements[0]));
  };
  Value empty = buildEmpty(b, resultType, sizes);
  return linalg::GenericOp::create(b, resultType, key, empty, maps, iterators,
                                   body)
      .getResult(0);
}

Value attnfuse::detail::buildScaledProduct(ImplicitLocOpBuilder &b,
                                           RankedTensorType type, Value query,
                                           Value key, double scale) {
  Sizes sizes = getSizes(b, query);
  sizes[3] = tensor::getMixedSize(b, b.getLoc(), key, 2);
  Value zeros = buildFilled(b, type, sizes, 0);
  Value product = buildGroupedProduct(
      b, query, buildTransposedF32(b, key), zeros,
      [](ImplicitLocOpBuilder &b, Value q, Value k, Value acc) -> Value {
        return arith::AddFOp::create(b, acc, arith::MulFOp::create(b, q, k));
      });
  if (scale == 1.0)
    return product;
  return buildScoreMap(
      b, product, [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
        return arith::MulFOp::create(b, elements[0], constantF32(b, scale));
      });
}

Value attnfuse::detail::buildWeightedSum(ImplicitLocOpBuilder &b,
                                         RankedTensorType type, Value probs,
                                         Value value) {
  Sizes sizes = getSizes(b, probs);
  sizes[3] = tensor::getMixedSize(b, b.getLoc(), value, 3);
  Value zeros = buildFilled(b, type.clone(b.getF32Type()), sizes, 0);
  Value sum = buildGroupedProduct(
      b, probs, buildToF32(b, value), zeros,
      [](ImplicitLocOpBuilder &b, Value p, Value v, Value acc) -> Value {
        // A weight of 0 adds nothing, where 0 * v would add NaN for a v that is
        // not finite.
        Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, p,
                                             constantF32(b, 0));
        Value more =
            arith::AddFOp::create(b, acc, arith::MulFOp::create(b, p, v));
        return arith::SelectOp::create(b, isZero, acc, more);
      });
  if (type.getElementType().isF32())
    return sum;
  return buildMap(b, type, sizes, sum,
                  [&](ImplicitLocOpBuilder &b, ValueRange elements) {
                    return fromF32(b, elements[0], type.getElementType());
                  });
}

namespace {
struct LowerScaledDotProduct : OpRewritePattern<ScaledDotProductOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaledDotProductOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildScaledProduct(b, op.getScores().getType(),
                                              op.getQuery(), op.getKey(),
                                              op.getScaleOrDefault()));
    return success();
  }
};

struct LowerWeightedSum : OpRewritePattern<WeightedSumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(WeightedSumOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildWeightedSum(b, op.getOutput().getType(),
                                            op.getProbs(), op.getValue()));
    return success();
  }
};
} // namespace

void attnfuse::detail::populateProductPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerScaledDotProduct, LowerWeightedSum>(patterns.getContext());
}
