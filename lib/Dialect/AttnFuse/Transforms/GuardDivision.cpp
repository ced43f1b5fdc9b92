//===- GuardDivision.cpp - Integer divisions that cannot trap
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSEGUARDDIVISIONPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;

namespace {
/// x / d -> x / (d is bad ? 1 : d), where 0 is bad, and for signed numbers -1
/// if x is the lowest one.
template <typename DivisionOp, bool isSigned>
struct GuardDivision : OpRewritePattern<DivisionOp> {
  using OpRewritePattern<DivisionOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(DivisionOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    APInt known;
    if (!type.isIntOrIndex() ||
        (matchPattern(op.getRhs(), m_ConstantInt(&known)) && !known.isZero() &&
         !(isSigned && known.isAllOnes())))
      return failure();
    Location loc = op.getLoc();
    unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                    : type.getIntOrFloatBitWidth();
    auto constant = [&](const APInt &value) -> Value {
      return arith::ConstantOp::create(rewriter, loc,
                                       rewriter.getIntegerAttr(type, value));
    };
    auto equals = [&](Value value, const APInt &number) -> Value {
      return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                   value, constant(number));
    };
    Value bad = equals(op.getRhs(), APInt::getZero(width));
    if (isSigned) {
      Value overflows = arith::AndIOp::create(
          rewriter, loc, equals(op.getRhs(), APInt::getAllOnes(width)),
          equals(op.getLhs(), APInt::getSignedMinValue(width)));
      bad = arith::OrIOp::create(rewriter, loc, bad, overflows);
    }
    Value divisor = arith::SelectOp::create(
        rewriter, loc, bad, constant(APInt(width, 1)), op.getRhs());
    rewriter.modifyOpInPlace(op, [&] { op.getRhsMutable().assign(divisor); });
    return success();
  }
};

struct GuardDivisionPass
    : attnfuse::impl::AttnFuseGuardDivisionPassBase<GuardDivisionPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    attnfuse::populateGuardDivisionPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void mlir::attnfuse::populateGuardDivisionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<GuardDivision<arith::DivSIOp, true>,
               GuardDivision<arith::CeilDivSIOp, true>,
               GuardDivision<arith::FloorDivSIOp, true>,
               GuardDivision<arith::RemSIOp, true>,
               GuardDivision<arith::DivUIOp, false>,
               GuardDivision<arith::CeilDivUIOp, false>,
               GuardDivision<arith::RemUIOp, false>>(patterns.getContext());
}
