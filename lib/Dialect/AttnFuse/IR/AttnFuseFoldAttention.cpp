//===- AttnFuseFoldAttention.cpp - Canonicalization of the fused op -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Band.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {

/// What Band.h says of a list of bands.
struct SimplifyBands : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Band> bands;
    for (BandAttr band : op.getBands().getAsRange<BandAttr>())
      bands.emplace_back(band);
    SmallVector<Band> simple =
        simplifyBands(bands, op.getQuery().getType().getShape()[2],
                      op.getKey().getType().getShape()[2]);
    if (simple == bands)
      return failure();
    SmallVector<Attribute> attrs;
    for (const Band &band : simple)
      attrs.push_back(band.getAttr(rewriter.getContext()));
    rewriter.modifyOpInPlace(
        op, [&] { op.setBandsAttr(rewriter.getArrayAttr(attrs)); });
    return success();
  }
};

/// A region that returns its score is the same as none.
struct DropIdentityScore : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getScore().empty() || op.hasScoreChain())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getScoreOperandsMutable().clear();
      rewriter.eraseBlock(&op.getScore().front());
    });
    return success();
  }
};

/// Score operands that the region does not read go, and one that is passed
/// twice is passed once.
struct ShrinkScoreOperands : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getScore().empty())
      return failure();
    Block &block = op.getScore().front();
    auto getArgument = [&](unsigned index) {
      return block.getArgument(AttentionOp::NumFixedScoreArgs + index);
    };
    for (auto [index, operand] : llvm::enumerate(op.getScoreOperands())) {
      unsigned first = llvm::find(op.getScoreOperands(), operand) -
                       op.getScoreOperands().begin();
      if (!getArgument(index).use_empty() && first == index)
        continue;
      rewriter.modifyOpInPlace(op, [&, index = index] {
        if (first != index)
          rewriter.replaceAllUsesWith(getArgument(index), getArgument(first));
        op.getScoreOperandsMutable().erase(index);
        block.eraseArgument(AttentionOp::NumFixedScoreArgs + index);
      });
      return success();
    }
    return failure();
  }
};

/// The alignment by which a value of the region is the distance of the key
/// behind the query, as a float: i - j, or i + Nkv - Nq - j.
std::optional<Alignment> getDistanceAlignment(AttentionOp op, Value value) {
  auto isArgument = [&](Value of, AttentionOp::ScoreArg argument) {
    return of == op.getScore().getArgument(argument);
  };
  auto toFloat = value.getDefiningOp<arith::SIToFPOp>();
  if (!toFloat)
    return std::nullopt;
  Value integer = toFloat.getIn();
  // Narrower ones may have wrapped around.
  if (integer.getType().getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  if (auto cast = integer.getDefiningOp<arith::IndexCastOp>())
    integer = cast.getIn();
  auto distance = integer.getDefiningOp<arith::SubIOp>();
  if (!distance || !isArgument(distance.getRhs(), AttentionOp::J))
    return std::nullopt;
  if (isArgument(distance.getLhs(), AttentionOp::I))
    return Alignment::TopLeft;
  auto diagonal = distance.getLhs().getDefiningOp<arith::AddIOp>();
  if (!diagonal)
    return std::nullopt;
  for (auto [row, offset] : {std::pair(diagonal.getLhs(), diagonal.getRhs()),
                             std::pair(diagonal.getRhs(), diagonal.getLhs())}) {
    auto lengths = offset.getDefiningOp<arith::SubIOp>();
    if (isArgument(row, AttentionOp::I) && lengths &&
        isArgument(lengths.getLhs(), AttentionOp::Nkv) &&
        isArgument(lengths.getRhs(), AttentionOp::Nq))
      return Alignment::BottomRight;
  }
  return std::nullopt;
}

/// Below a diagonal no visible key has a negative distance. What the region
/// gives for hidden ones is of no account.
struct DropAbsoluteDistance : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getScore().empty())
      return failure();
    int64_t nq = op.getQuery().getType().getShape()[2];
    bool isSquare =
        !ShapedType::isDynamic(nq) && nq == op.getKey().getType().getShape()[2];
    auto hidesBefore = [&](Alignment align) {
      return llvm::any_of(op.getBands().getAsRange<BandAttr>(),
                          [&](BandAttr band) {
                            return band.getRight() && *band.getRight() == 0 &&
                                   (band.getAlign() == align || isSquare);
                          });
    };
    for (auto absolute : op.getScore().front().getOps<math::AbsFOp>()) {
      std::optional<Alignment> align =
          getDistanceAlignment(op, absolute.getOperand());
      if (!align || !hidesBefore(*align))
        continue;
      rewriter.replaceOp(absolute, absolute.getOperand());
      return success();
    }
    return failure();
  }
};

struct DropUnusedLse : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getLse() || !op.getLse().use_empty())
      return failure();
    auto narrow = AttentionOp::create(
        rewriter, op.getLoc(), TypeRange(op.getOutput().getType()),
        op->getOperands(), op.getProperties(),
        llvm::to_vector(op->getDiscardableAttrs()));
    narrow.getScore().takeBody(op.getScore());
    rewriter.replaceAllUsesWith(op.getOutput(), narrow.getOutput());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<SimplifyBands, DropIdentityScore, ShrinkScoreOperands,
               DropAbsoluteDistance, DropUnusedLse>(context);
}
