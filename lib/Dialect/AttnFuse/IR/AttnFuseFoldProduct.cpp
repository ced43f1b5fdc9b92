//===- AttnFuseFoldProduct.cpp - Folds of rope and scaled_dot_product -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FoldUtils.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {

/// The rows of constant f32 tables that a rotation with no run-time position
/// reads, in the order of its sequence.
struct KnownRotation {
  ArrayRef<float> cos, sin;

  static std::optional<KnownRotation> get(RopeOp op) {
    int64_t length = op.getInput().getType().getShape()[2];
    DenseFPElementsAttr cos = getFloatConstant(op.getCos());
    DenseFPElementsAttr sin = getFloatConstant(op.getSin());
    if (op.getOffset() || op.getPositions() || ShapedType::isDynamic(length) ||
        length == 0 || !cos || !sin || !cos.getElementType().isF32() ||
        cos.isSplat() || sin.isSplat())
      return std::nullopt;
    int64_t width = cos.getType().getShape()[1];
    auto slice = [&](DenseFPElementsAttr table) {
      ArrayRef<char> bytes = table.getRawData();
      return ArrayRef(reinterpret_cast<const float *>(bytes.data()),
                      bytes.size() / sizeof(float))
          .slice(op.getStaticOffset() * width, length * width);
    };
    // The verifier has seen that static_offset + N rows exist (rope_c7).
    return KnownRotation{slice(cos), slice(sin)};
  }
};

/// rope(rope(x)) -> rope(x) with the tables of the sum of the angles.
///
/// For one pair, a row of a table acts as the product of the complex numbers
/// x + i y and c + i s. Products of complex numbers associate, so two rows
/// (c1, s1) and (c2, s2) act as the one row
///   c = c1 c2 - s1 s2,  s = s1 c2 + c1 s2
/// (for c = cos a, s = sin a these are the angle-addition formulas). It takes
/// the same pairs, hence one pairing and one width, and the two rows that
/// meet in each sequence index, hence constant tables and positions. The
/// rounding of the inner result to the element type disappears.
struct MergeRopes : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<RopeOp>();
    // In a graph region, a cycle of rotations could be merged for ever.
    if (!inner || inner.getInput() == inner.getResult() ||
        !isInOrder(inner, op) || inner.getPairing() != op.getPairing())
      return failure();
    RankedTensorType type = op.getCos().getType();
    int64_t width = type.getShape()[1];
    if (inner.getCos().getType().getShape()[1] != width)
      return failure();
    std::optional<KnownRotation> a = KnownRotation::get(inner);
    std::optional<KnownRotation> b = KnownRotation::get(op);
    if (!a || !b)
      return failure();

    SmallVector<float> cos, sin;
    for (auto [c1, s1, c2, s2] :
         llvm::zip_equal(a->cos, a->sin, b->cos, b->sin)) {
      cos.push_back(double(c1) * c2 - double(s1) * s2);
      sin.push_back(double(s1) * c2 + double(c1) * s2);
    }
    auto tableType = RankedTensorType::get({int64_t(cos.size()) / width, width},
                                           rewriter.getF32Type());
    auto createTable = [&](ArrayRef<float> table) -> Value {
      return arith::ConstantOp::create(
          rewriter, op.getLoc(), DenseElementsAttr::get(tableType, table));
    };
    Value newCos = createTable(cos), newSin = createTable(sin);
    rewriter.replaceOpWithNewOp<RopeOp>(
        op, op.getType(), inner.getInput(), newCos, newSin, /*offset=*/Value(),
        /*positions=*/Value(), op.getPairing(), /*static_offset=*/0);
    return success();
  }
};

/// The factor that `value` is multiplied by and that may move into the scale,
/// and what is multiplied. Even a power of two may overflow or lose digits in
/// the type of q, so a factor other than 1 and -1 moves only with the leave of
/// the product's fast-math flags.
std::optional<std::pair<double, Value>> matchMovableFactor(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  for (auto [factor, other] : {std::pair(product.getRhs(), product.getLhs()),
                               std::pair(product.getLhs(), product.getRhs())}) {
    DenseFPElementsAttr constant = getFloatConstant(factor);
    if (!constant || !constant.isSplat())
      continue;
    // The next factor comes before this one, so that the pattern ends even on
    // a cycle in a graph region.
    auto next = other.getDefiningOp<arith::MulFOp>();
    if (next && !isInOrder(next, product))
      continue;
    APFloat splat = constant.getSplatValue<APFloat>();
    bool mayRound = arith::bitEnumContainsAll(product.getFastmath(),
                                              arith::FastMathFlags::reassoc);
    if (splat.isFiniteNonZero() && (mayRound || abs(splat).isExactlyValue(1.0)))
      return std::pair(splat.convertToDouble(), Value(other));
  }
  return std::nullopt;
}

/// (a q) k^T -> q k^T with a in the scale, and the same for k.
struct FoldFactorIntoScale : OpRewritePattern<ScaledDotProductOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaledDotProductOp op,
                                PatternRewriter &rewriter) const override {
    for (OpOperand *operand : {&op.getQueryMutable(), &op.getKeyMutable()}) {
      auto match = matchMovableFactor(operand->get());
      if (!match)
        continue;
      double scale = op.getScaleOrDefault() * match->first;
      // A scale is finite in f32 (scaled_dot_product_c4).
      if (!std::isfinite(float(scale)) || scale == 0)
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(match->second);
        op.setScaleAttr(rewriter.getF64FloatAttr(scale));
      });
      return success();
    }
    return failure();
  }
};

} // namespace

OpFoldResult RopeOp::fold(FoldAdaptor) {
  DenseFPElementsAttr cos = getFloatConstant(getCos());
  DenseFPElementsAttr sin = getFloatConstant(getSin());
  if (cos && sin &&
      allElements(cos,
                  [](const APFloat &x) { return x.isExactlyValue(1.0); }) &&
      allElements(sin, [](const APFloat &x) { return x.isZero(); }))
    return foldToFirstOperand(*this);
  return {};
}

void RopeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<MergeRopes>(context);
}

void ScaledDotProductOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldFactorIntoScale>(context);
}
