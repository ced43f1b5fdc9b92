//===- AttnFuseFoldScores.cpp - Folds of alibi, additive_bias, softmax ----===//
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

/// modifier(mask(s)) -> mask(modifier(s)). A hidden key stays hidden whatever
/// its score is, and a visible one is not touched by the mask (spec S3), so
/// the order does not matter. With the masks last, each kind of score op
/// stands beside its like.
template <typename ModifierOp>
struct MoveMaskBehindModifier : OpRewritePattern<ModifierOp> {
  using OpRewritePattern<ModifierOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ModifierOp op,
                                PatternRewriter &rewriter) const override {
    Operation *mask = getEarlierScoreOp(op);
    if (!isMask(mask) || !mask->hasOneUse())
      return failure();
    // The modifier's other operand may be defined after the mask, so the mask
    // moves down and the modifier stays.
    rewriter.modifyOpInPlace(op,
                             [&] { op->setOperand(0, mask->getOperand(0)); });
    rewriter.setInsertionPointAfter(op);
    Operation *moved = rewriter.clone(*mask);
    rewriter.replaceAllUsesExcept(op.getResult(), moved->getResult(0), moved);
    rewriter.modifyOpInPlace(moved,
                             [&] { moved->setOperand(0, op.getResult()); });
    rewriter.eraseOp(mask);
    return success();
  }
};

/// Where Nq = Nkv both alignments are one: top_left.
struct SimplifyAlibiAlignment : OpRewritePattern<AlibiOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AlibiOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> shape = op.getScores().getType().getShape();
    if (op.getAlign() == Alignment::TopLeft ||
        ShapedType::isDynamic(shape[2]) || shape[2] != shape[3])
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setAlign(Alignment::TopLeft); });
    return success();
  }
};

/// The standard slopes, written out as a constant, are left out.
struct DropStandardSlopes : OpRewritePattern<AlibiOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AlibiOp op,
                                PatternRewriter &rewriter) const override {
    DenseFPElementsAttr slopes = getFloatConstant(op.getSlopes());
    int64_t numHeads = op.getScores().getType().getShape()[1];
    if (!slopes || slopes.getNumElements() > kMaxFoldedElements ||
        ShapedType::isDynamic(numHeads))
      return failure();
    for (auto [index, slope] : llvm::enumerate(slopes.getValues<float>()))
      if (slope != float(getAlibiSlope(index % numHeads, numHeads)))
        return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getSlopesMutable().clear(); });
    return success();
  }
};

/// Two alibi of one alignment with constant slopes become one, where that does
/// not round differently: of the two slopes of each head, one is 0.
struct MergeAlibi : OpRewritePattern<AlibiOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AlibiOp op,
                                PatternRewriter &rewriter) const override {
    auto earlier = dyn_cast_or_null<AlibiOp>(getEarlierScoreOp(op));
    if (!earlier || !earlier->hasOneUse() ||
        earlier.getAlign() != op.getAlign())
      return failure();
    FailureOr<SmallVector<float>> a = getSlopes(earlier), b = getSlopes(op);
    if (failed(a) || failed(b) || a->size() != b->size())
      return failure();
    SmallVector<float> sum;
    for (auto [x, y] : llvm::zip_equal(*a, *b)) {
      if (x != 0 && y != 0)
        return failure();
      sum.push_back(x + y);
    }
    RankedTensorType type = op.getSlopes()
                                ? op.getSlopes().getType()
                                : RankedTensorType::get({int64_t(sum.size())},
                                                        rewriter.getF32Type());
    Value slopes = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        DenseElementsAttr::get(type, ArrayRef<float>(sum)));
    rewriter.modifyOpInPlace(op, [&] {
      op.getScoresMutable().assign(earlier.getScores());
      op.getSlopesMutable().assign(slopes);
    });
    return success();
  }

private:
  /// The slopes, if they are known.
  static FailureOr<SmallVector<float>> getSlopes(AlibiOp op) {
    if (op.getSlopes()) {
      DenseFPElementsAttr slopes = getFloatConstant(op.getSlopes());
      if (!slopes || slopes.getNumElements() > kMaxFoldedElements)
        return failure();
      return llvm::to_vector(slopes.getValues<float>());
    }
    int64_t numHeads = op.getScores().getType().getShape()[1];
    if (ShapedType::isDynamic(numHeads) || numHeads > kMaxFoldedElements)
      return failure();
    SmallVector<float> slopes;
    for (int64_t head = 0; head < numHeads; ++head)
      slopes.push_back(getAlibiSlope(head, numHeads));
    return slopes;
  }
};

/// A bias that is the same everywhere needs one element.
struct ShrinkSplatBias : OpRewritePattern<AdditiveBiasOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AdditiveBiasOp op,
                                PatternRewriter &rewriter) const override {
    DenseFPElementsAttr bias = getFloatConstant(op.getBias());
    if (!bias || !bias.isSplat() || bias.getType().getRank() == 0)
      return failure();
    auto type = RankedTensorType::get({}, bias.getElementType());
    Value scalar = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        DenseElementsAttr::get(type, bias.getSplatValue<APFloat>()));
    rewriter.modifyOpInPlace(op, [&] { op.getBiasMutable().assign(scalar); });
    return success();
  }
};

/// Two constant biases of one shape become one in f32, where that does not
/// round differently: of the two entries of each element, one is 0, or one is
/// -inf and masks (spec S4).
struct MergeBiases : OpRewritePattern<AdditiveBiasOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AdditiveBiasOp op,
                                PatternRewriter &rewriter) const override {
    auto earlier = dyn_cast_or_null<AdditiveBiasOp>(getEarlierScoreOp(op));
    if (!earlier || !earlier->hasOneUse())
      return failure();
    DenseFPElementsAttr a = getFloatConstant(earlier.getBias());
    DenseFPElementsAttr b = getFloatConstant(op.getBias());
    if (!a || !b || a.getType().getShape() != b.getType().getShape() ||
        a.getNumElements() > kMaxFoldedElements)
      return failure();
    SmallVector<APFloat> sum;
    for (auto [x, y] :
         llvm::zip_equal(a.getValues<APFloat>(), b.getValues<APFloat>())) {
      std::optional<APFloat> entry = add(toSingle(x), toSingle(y));
      if (!entry)
        return failure();
      sum.push_back(*entry);
    }
    Value bias = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        DenseElementsAttr::get(RankedTensorType::get(a.getType().getShape(),
                                                     rewriter.getF32Type()),
                               ArrayRef<APFloat>(sum)));
    rewriter.modifyOpInPlace(op, [&] {
      op.getScoresMutable().assign(earlier.getScores());
      op.getBiasMutable().assign(bias);
    });
    return success();
  }

private:
  static APFloat toSingle(APFloat value) {
    bool losesInfo;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return value;
  }

  /// What to add once instead of `x` and `y`, if that is exact.
  static std::optional<APFloat> add(const APFloat &x, const APFloat &y) {
    for (const APFloat &entry : {x, y})
      if (entry.isInfinity() && entry.isNegative())
        return entry;
    if (x.isZero())
      return y;
    return y.isZero() ? std::optional(x) : std::nullopt;
  }
};

struct DropUnusedLse : OpRewritePattern<SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getLse() || !op.getLse().use_empty())
      return failure();
    auto softmax =
        SoftmaxOp::create(rewriter, op.getLoc(), op.getProbs().getType(),
                          /*lse=*/Type(), op.getScores());
    rewriter.replaceAllUsesWith(op.getProbs(), softmax.getProbs());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

OpFoldResult AlibiOp::fold(FoldAdaptor) {
  DenseFPElementsAttr slopes = getFloatConstant(getSlopes());
  if (slopes &&
      allElements(slopes, [](const APFloat &slope) { return slope.isZero(); }))
    return foldToFirstOperand(*this);
  return {};
}

OpFoldResult AdditiveBiasOp::fold(FoldAdaptor) {
  DenseFPElementsAttr bias = getFloatConstant(getBias());
  if (bias &&
      allElements(bias, [](const APFloat &entry) { return entry.isZero(); }))
    return foldToFirstOperand(*this);
  return {};
}

OpFoldResult AlibiSlopeOp::fold(FoldAdaptor adaptor) {
  auto head = dyn_cast_or_null<IntegerAttr>(adaptor.getHead());
  auto numHeads = dyn_cast_or_null<IntegerAttr>(adaptor.getNumHeads());
  if (!head || !numHeads || head.getInt() < 0 ||
      head.getInt() >= numHeads.getInt())
    return {};
  return FloatAttr::get(getSlope().getType(),
                        getAlibiSlope(head.getInt(), numHeads.getInt()));
}

void AlibiOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<MoveMaskBehindModifier<AlibiOp>, SimplifyAlibiAlignment,
               DropStandardSlopes, MergeAlibi>(context);
}

void AdditiveBiasOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                 MLIRContext *context) {
  patterns.add<MoveMaskBehindModifier<AdditiveBiasOp>, ShrinkSplatBias,
               MergeBiases>(context);
}

void SoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<DropUnusedLse>(context);
}
