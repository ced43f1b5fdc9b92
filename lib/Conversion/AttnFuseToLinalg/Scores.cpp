//===- Scores.cpp - Lowering of score modifiers ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::detail;

/// [Hq]: the standard slopes.
static Value buildStandardSlopes(ImplicitLocOpBuilder &b, Value scores) {
  Value numHeads = getSize(b, scores, 1);
  int64_t size = cast<RankedTensorType>(scores.getType()).getDimSize(1);
  auto type = RankedTensorType::get({size}, b.getF32Type());
  return buildMap(b, type, getSizes(b, scores)[1], ValueRange(),
                  [&](ImplicitLocOpBuilder &b, ValueRange) -> Value {
                    Value head = linalg::IndexOp::create(b, 0);
                    return AlibiSlopeOp::create(b, head, numHeads);
                  });
}

Value attnfuse::detail::buildAlibi(ImplicitLocOpBuilder &b, Value scores,
                                   Alignment align, Value slopes) {
  if (!slopes)
    slopes = buildStandardSlopes(b, scores);
  auto slopesType = cast<RankedTensorType>(slopes.getType());
  return buildScoreMap(
      b, scores, [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
        SmallVector<Value> at{linalg::IndexOp::create(b, 1)};
        if (slopesType.getRank() == 2)
          at.insert(
              at.begin(),
              buildBroadcastIndex(b, slopes, 0, linalg::IndexOp::create(b, 0)));
        Value slope = tensor::ExtractOp::create(b, slopes, at);
        Value distance = arith::IndexCastOp::create(
            b, b.getI64Type(), buildDiagonalDistance(b, scores, align));
        distance = math::AbsIOp::create(b, distance);
        distance = arith::SIToFPOp::create(b, b.getF32Type(), distance);
        Value penalty = arith::MulFOp::create(b, slope, distance);
        Value lowered = arith::SubFOp::create(b, elements[0], penalty);
        // Where a slope is not finite the difference may be NaN: masked stays
        // masked.
        return arith::SelectOp::create(b, isMasked(b, elements[0]), elements[0],
                                       lowered);
      });
}

Value attnfuse::detail::buildAdditiveBias(ImplicitLocOpBuilder &b, Value scores,
                                          Value bias) {
  int64_t rank = cast<RankedTensorType>(bias.getType()).getRank();
  return buildScoreMap(
      b, scores, [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < rank; ++dim)
          at.push_back(buildBroadcastIndex(
              b, bias, dim, linalg::IndexOp::create(b, 4 - rank + dim)));
        Value term = toF32(b, tensor::ExtractOp::create(b, bias, at));
        // Finite terms never mask (S5), so their sum stays above -inf.
        Value sum = arith::MaximumFOp::create(
            b, arith::AddFOp::create(b, elements[0], term),
            constantF32(b, kLowestScore));
        // -inf on either side masks, though the other side be NaN or +inf.
        Value masked = arith::OrIOp::create(b, isMasked(b, elements[0]),
                                            isMasked(b, term));
        return arith::SelectOp::create(b, masked, constantF32(b, -INFINITY),
                                       sum);
      });
}

/// Keeps the indices of a load of the score region inside its tensor, since a
/// wrong one must not end the process (S14). b, h, i and j are in range where
/// the tensors' sizes agree, and constants were checked against static sizes.
static void clampIndices(ImplicitLocOpBuilder &b, const Block &region,
                         tensor::ExtractOp original, tensor::ExtractOp clone) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(clone);
  for (auto [dim, index] : llvm::enumerate(original.getIndices())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (argument && argument.getOwner() == &region &&
        argument.getArgNumber() <= AttentionOp::J)
      continue;
    if (getConstantIntValue(index) &&
        !original.getTensor().getType().isDynamicDim(dim))
      continue;
    OpOperand &operand = clone.getIndicesMutable()[dim];
    Value last = arith::SubIOp::create(b, getSize(b, clone.getTensor(), dim),
                                       constantIndex(b, 1));
    Value clamped = arith::MinSIOp::create(b, operand.get(), last);
    operand.set(arith::MaxSIOp::create(b, clamped, constantIndex(b, 0)));
  }
}

Value attnfuse::detail::buildScoreRegion(ImplicitLocOpBuilder &b, Value scores,
                                         Region &region, ValueRange operands) {
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArgument(AttentionOp::Nq), getSize(b, scores, 2));
  mapping.map(block.getArgument(AttentionOp::Nkv), getSize(b, scores, 3));
  mapping.map(block.getArgument(AttentionOp::Hq), getSize(b, scores, 1));
  for (auto [argument, operand] : llvm::zip(
           block.getArguments().drop_front(AttentionOp::NumFixedScoreArgs),
           operands))
    mapping.map(argument, operand);

  return buildScoreMap(
      b, scores, [&](ImplicitLocOpBuilder &b, ValueRange elements) {
        mapping.map(block.getArgument(AttentionOp::Score), elements[0]);
        for (int64_t dim = 0; dim < 4; ++dim)
          mapping.map(block.getArgument(AttentionOp::B + dim),
                      linalg::IndexOp::create(b, dim).getResult());
        for (Operation &op : block.without_terminator()) {
          SmallVector<tensor::ExtractOp> loads, clones;
          op.walk([&](tensor::ExtractOp load) { loads.push_back(load); });
          b.clone(op, mapping)->walk([&](tensor::ExtractOp load) {
            clones.push_back(load);
          });
          for (auto [load, clone] : llvm::zip_equal(loads, clones))
            clampIndices(b, block, load, clone);
        }
        auto yield = cast<YieldOp>(block.getTerminator());
        return mapping.lookupOrDefault(yield.getScore());
      });
}

namespace {
struct LowerAlibi : OpRewritePattern<AlibiOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AlibiOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(
        op, buildAlibi(b, op.getScores(), op.getAlign(), op.getSlopes()));
    return success();
  }
};

struct LowerAdditiveBias : OpRewritePattern<AdditiveBiasOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AdditiveBiasOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildAdditiveBias(b, op.getScores(), op.getBias()));
    return success();
  }
};
} // namespace

void attnfuse::detail::populateScorePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerAlibi, LowerAdditiveBias>(patterns.getContext());
}
