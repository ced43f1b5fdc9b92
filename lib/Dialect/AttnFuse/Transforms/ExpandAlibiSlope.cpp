//===- ExpandAlibiSlope.cpp - Expand alibi_slope to arithmetic ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSEEXPANDALIBISLOPEPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {

/// With P = 2^p the largest power of two <= n, both branches of the slope
/// (see getAlibiSlope) are 2^(-e / P), where e = 8 h + 8 for h < P and
/// e = 8 (h - P) + 4 otherwise. e / P is exact in f32 for n < 2^21, so the
/// only rounding is that of exp2.
struct ExpandAlibiSlope : OpRewritePattern<AlibiSlopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AlibiSlopeOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type();
    Type f32 = rewriter.getF32Type();
    auto constant = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(rewriter, loc,
                                       rewriter.getI32IntegerAttr(value));
    };
    Value head = arith::IndexCastOp::create(rewriter, loc, i32, op.getHead());
    Value numHeads =
        arith::IndexCastOp::create(rewriter, loc, i32, op.getNumHeads());
    Value zeros = math::CountLeadingZerosOp::create(rewriter, loc, numHeads);
    Value log2 = arith::SubIOp::create(rewriter, loc, constant(31), zeros);
    Value power = arith::ShLIOp::create(rewriter, loc, constant(1), log2);

    Value isFirst = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::slt, head, power);
    Value extraHead = arith::SubIOp::create(rewriter, loc, head, power);
    Value base =
        arith::SelectOp::create(rewriter, loc, isFirst, head, extraHead);
    Value shift = arith::SelectOp::create(rewriter, loc, isFirst, constant(8),
                                          constant(4));
    Value exponent = arith::MulIOp::create(rewriter, loc, base, constant(8));
    exponent = arith::AddIOp::create(rewriter, loc, exponent, shift);

    Value numerator = arith::SIToFPOp::create(rewriter, loc, f32, exponent);
    Value denominator = arith::SIToFPOp::create(rewriter, loc, f32, power);
    Value quotient =
        arith::DivFOp::create(rewriter, loc, numerator, denominator);
    Value negated = arith::NegFOp::create(rewriter, loc, quotient);
    rewriter.replaceOpWithNewOp<math::Exp2Op>(op, negated);
    return success();
  }
};

struct ExpandAlibiSlopePass
    : attnfuse::impl::AttnFuseExpandAlibiSlopePassBase<ExpandAlibiSlopePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateExpandAlibiSlopePatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void mlir::attnfuse::populateExpandAlibiSlopePatterns(
    RewritePatternSet &patterns) {
  patterns.add<ExpandAlibiSlope>(patterns.getContext());
}
