//===- AttnFuseFoldMasks.cpp - Folds of full, causal, windows, blocks -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masking is sticky (spec S3), so a mask may be compared with any mask before
// it in the chain, whatever is between.
//
//===----------------------------------------------------------------------===//

#include "Band.h"
#include "FoldUtils.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {

template <typename MaskOp>
Band getBand(MaskOp op) {
  ArrayRef<int64_t> shape = op.getScores().getType().getShape();
  return Band::get(op)->simplify(shape[2], shape[3]);
}

/// The operand of a band mask that hides no key that is not hidden already.
template <typename MaskOp>
OpFoldResult foldBand(MaskOp op) {
  Band band = getBand(op);
  if (band.isUnbounded())
    return foldToFirstOperand(op);
  ArrayRef<int64_t> shape = op.getScores().getType().getShape();
  for (Operation *up = getEarlierScoreOp(op); up; up = getEarlierScoreOp(up))
    if (std::optional<Band> earlier = Band::get(up)) {
      Band known = earlier->simplify(shape[2], shape[3]);
      if (known.align == band.align && known.intersect(band) == known)
        return op.getScores();
    }
  return {};
}

Operation *createMask(PatternRewriter &rewriter, Location loc, Value scores,
                      const Band &band) {
  if (!band.left && band.right == 0)
    return CausalOp::create(rewriter, loc, scores.getType(), scores,
                            band.align);
  auto getBound = [&](std::optional<int64_t> bound) {
    return bound ? rewriter.getI64IntegerAttr(*bound) : IntegerAttr();
  };
  return SlidingWindowOp::create(
      rewriter, loc, scores.getType(), scores,
      AlignmentAttr::get(rewriter.getContext(), band.align),
      getBound(band.left), getBound(band.right));
}

/// Bounds that the lengths imply go; a window that is causal becomes causal;
/// where Nq = Nkv the alignment is top_left.
template <typename MaskOp>
struct SimplifyBand : OpRewritePattern<MaskOp> {
  using OpRewritePattern<MaskOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(MaskOp op,
                                PatternRewriter &rewriter) const override {
    Band band = getBand(op);
    bool isCausal = !band.left && band.right == 0;
    if (band.isUnbounded() ||
        (band == *Band::get(op) && isCausal == isa<CausalOp>(op)))
      return failure();
    rewriter.replaceOp(op,
                       createMask(rewriter, op.getLoc(), op.getScores(), band));
    return success();
  }
};

/// Two bands of one alignment, with nothing but masks between, become one at
/// the place of the second. The first must have no other use, since it goes.
template <typename MaskOp>
struct MergeBands : OpRewritePattern<MaskOp> {
  using OpRewritePattern<MaskOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(MaskOp op,
                                PatternRewriter &rewriter) const override {
    Band band = getBand(op);
    for (Operation *up = getEarlierScoreOp(op); isMask(up) && up->hasOneUse();
         up = getEarlierScoreOp(up)) {
      std::optional<Band> earlier = Band::get(up);
      if (!earlier || earlier->align != band.align)
        continue;
      Band merged = band.intersect(*earlier);
      rewriter.replaceOp(up, up->getOperand(0));
      rewriter.replaceOp(
          op, createMask(rewriter, op.getLoc(), op.getScores(), merged));
      return success();
    }
    return failure();
  }
};

} // namespace

OpFoldResult FullOp::fold(FoldAdaptor) { return foldToFirstOperand(*this); }
OpFoldResult CausalOp::fold(FoldAdaptor) { return foldBand(*this); }
OpFoldResult SlidingWindowOp::fold(FoldAdaptor) { return foldBand(*this); }

OpFoldResult BlockSparseOp::fold(FoldAdaptor) {
  for (Operation *up = getEarlierScoreOp(*this); up; up = getEarlierScoreOp(up))
    if (auto earlier = dyn_cast<BlockSparseOp>(up))
      if (earlier.getRowOffsets() == getRowOffsets() &&
          earlier.getColIndices() == getColIndices() &&
          earlier.getQueryBlock() == getQueryBlock() &&
          earlier.getKeyBlock() == getKeyBlock())
        return getScores();
  return {};
}

void CausalOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<SimplifyBand<CausalOp>, MergeBands<CausalOp>>(context);
}

void SlidingWindowOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<SimplifyBand<SlidingWindowOp>, MergeBands<SlidingWindowOp>>(
      context);
}
