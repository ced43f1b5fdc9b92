//===- Masks.cpp - Lowering of the masks ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::detail;

Value attnfuse::detail::buildDiagonalDistance(ImplicitLocOpBuilder &b,
                                              Value scores, Alignment align) {
  Value i = linalg::IndexOp::create(b, 2);
  Value j = linalg::IndexOp::create(b, 3);
  Value distance = arith::SubIOp::create(b, j, i);
  if (align == Alignment::TopLeft)
    return distance;
  Value offset =
      arith::SubIOp::create(b, getSize(b, scores, 3), getSize(b, scores, 2));
  return arith::SubIOp::create(b, distance, offset);
}

/// `score` where `visible`, else -inf.
static Value buildMasked(ImplicitLocOpBuilder &b, Value visible, Value score) {
  return arith::SelectOp::create(b, visible, score, constantF32(b, -INFINITY));
}

Value attnfuse::detail::buildBand(ImplicitLocOpBuilder &b, Value scores,
                                  Alignment align, std::optional<int64_t> left,
                                  std::optional<int64_t> right) {
  return buildScoreMap(
      b, scores, [&](ImplicitLocOpBuilder &b, ValueRange elements) {
        Value distance = buildDiagonalDistance(b, scores, align);
        Value score = elements[0];
        if (right) {
          Value visible = arith::CmpIOp::create(
              b, arith::CmpIPredicate::sle, distance, constantIndex(b, *right));
          score = buildMasked(b, visible, score);
        }
        if (left) {
          Value visible = arith::CmpIOp::create(
              b, arith::CmpIPredicate::sge, distance, constantIndex(b, -*left));
          score = buildMasked(b, visible, score);
        }
        return score;
      });
}

/// i1: key block `column` is in the list of query block `row`.
static Value buildIsListed(ImplicitLocOpBuilder &b, Value rowOffsets,
                           Value colIndices, ValueRange row, Value column) {
  auto load = [](ImplicitLocOpBuilder &b, Value tensor, ValueRange at) {
    Value entry = tensor::ExtractOp::create(b, tensor, at);
    return arith::IndexCastOp::create(b, b.getIndexType(), entry);
  };
  Value one = constantIndex(b, 1);
  SmallVector<Value> next(row);
  next.back() = arith::AddIOp::create(b, row.back(), one);
  Value begin = load(b, rowOffsets, row);
  Value end = load(b, rowOffsets, next);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  auto search = [&](OpBuilder &nested, Location loc, Value entry,
                    ValueRange found) {
    ImplicitLocOpBuilder inner(loc, nested);
    Value equal = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq,
                                        load(inner, colIndices, entry), column);
    Value either = arith::OrIOp::create(inner, found[0], equal);
    scf::YieldOp::create(inner, either);
  };
  return scf::ForOp::create(b, begin, end, one, no, search).getResult(0);
}

Value attnfuse::detail::buildBlocks(ImplicitLocOpBuilder &b, Value scores,
                                    Value rowOffsets, Value colIndices,
                                    int64_t queryBlock, int64_t keyBlock) {
  // One i1 per pair of blocks first, [B or 1, Hq or 1, query blocks, key
  // blocks], so that a list is searched once per pair of blocks and not once
  // per score.
  auto rowType = cast<RankedTensorType>(rowOffsets.getType());
  bool perHead = rowType.getRank() == 3;
  auto blockCount = [&](int64_t dim, int64_t block) -> OpFoldResult {
    int64_t size = cast<RankedTensorType>(scores.getType()).getDimSize(dim);
    if (!ShapedType::isDynamic(size))
      return b.getIndexAttr(llvm::divideCeil(size, block));
    return arith::CeilDivUIOp::create(b, getSize(b, scores, dim),
                                      constantIndex(b, block))
        .getResult();
  };
  Sizes sizes(2, b.getIndexAttr(1));
  if (perHead) {
    Sizes rowSizes = getSizes(b, rowOffsets);
    sizes = {rowSizes[0], rowSizes[1]};
  }
  sizes.push_back(blockCount(2, queryBlock));
  sizes.push_back(blockCount(3, keyBlock));
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));

  auto listed = [&](ImplicitLocOpBuilder &b, ValueRange) {
    SmallVector<Value> row;
    for (int64_t dim = perHead ? 0 : 2; dim < 3; ++dim)
      row.push_back(linalg::IndexOp::create(b, dim));
    return buildIsListed(b, rowOffsets, colIndices, row,
                         linalg::IndexOp::create(b, 3));
  };
  Value pattern = buildMap(b, RankedTensorType::get(shape, b.getI1Type()),
                           sizes, ValueRange(), listed);

  return buildScoreMap(
      b, scores, [&](ImplicitLocOpBuilder &b, ValueRange elements) {
        auto block = [&](int64_t dim, int64_t size) -> Value {
          return arith::DivUIOp::create(b, linalg::IndexOp::create(b, dim),
                                        constantIndex(b, size));
        };
        Value at[] = {
            buildBroadcastIndex(b, pattern, 0, linalg::IndexOp::create(b, 0)),
            buildBroadcastIndex(b, pattern, 1, linalg::IndexOp::create(b, 1)),
            block(2, queryBlock), block(3, keyBlock)};
        Value visible = tensor::ExtractOp::create(b, pattern, at);
        return buildMasked(b, visible, elements[0]);
      });
}

namespace {
struct LowerFull : OpRewritePattern<FullOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(FullOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, op.getScores());
    return success();
  }
};

struct LowerCausal : OpRewritePattern<CausalOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CausalOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildBand(b, op.getScores(), op.getAlign(),
                                     /*left=*/std::nullopt, /*right=*/0));
    return success();
  }
};

struct LowerSlidingWindow : OpRewritePattern<SlidingWindowOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SlidingWindowOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildBand(b, op.getScores(), op.getAlign(),
                                     op.getLeft(), op.getRight()));
    return success();
  }
};

struct LowerBlockSparse : OpRewritePattern<BlockSparseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BlockSparseOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildBlocks(b, op.getScores(), op.getRowOffsets(),
                                       op.getColIndices(), op.getQueryBlock(),
                                       op.getKeyBlock()));
    return success();
  }
};
} // namespace

void attnfuse::detail::populateMaskPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerFull, LowerCausal, LowerSlidingWindow, LowerBlockSparse>(
      patterns.getContext());
}
