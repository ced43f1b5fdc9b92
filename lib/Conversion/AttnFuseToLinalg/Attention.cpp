//===- Attention.cpp - Lowering of the fused op ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "attnfuse/Dialect/AttnFuse/IR/Normalizers.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::detail;

/// [B, Hq, Nq, Nkv], as static as the operands' types are.
static RankedTensorType getScoresType(AttentionOp op) {
  ArrayRef<int64_t> query = op.getQuery().getType().getShape();
  ArrayRef<int64_t> key = op.getKey().getType().getShape();
  return RankedTensorType::get({query[0], query[1], query[2], key[2]},
                               Float32Type::get(op.getContext()));
}

namespace {
struct LowerAttention : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<ReluNorm> norm = getReluNorm(op.getNormalizer());
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value query = op.getQuery(), key = op.getKey();
    if (RotationAttr rotation = op.getQRotationAttr())
      query = buildRotation(b, query,
                            {rotation.getPairing(), rotation.getOffset(),
                             op.getQCos(), op.getQSin(), op.getQOffset(),
                             op.getQPositions()});
    if (RotationAttr rotation = op.getKRotationAttr())
      key = buildRotation(b, key,
                          {rotation.getPairing(), rotation.getOffset(),
                           op.getKCos(), op.getKSin(), op.getKOffset(),
                           op.getKPositions()});

    Value scores = buildScaledProduct(b, getScoresType(op), query, key,
                                      op.getScale().convertToDouble());
    if (op.hasScoreChain())
      scores =
          buildScoreRegion(b, scores, op.getScore(), op.getScoreOperands());
    for (BandAttr band : op.getBands().getAsRange<BandAttr>())
      scores = buildBand(b, scores, band.getAlign(), band.getLeft(),
                         band.getRight());
    if (BlocksAttr blocks = op.getBlocksAttr())
      scores = buildBlocks(b, scores, op.getRowOffsets(), op.getColIndices(),
                           blocks.getQueryBlock(), blocks.getKeyBlock());

    Value probs, lse;
    if (norm) {
      probs = buildRelu(b, scores, *norm);
    } else {
      RankedTensorType lseType;
      if (op.getLse())
        lseType = op.getLse().getType();
      std::tie(probs, lse) = buildSoftmax(b, scores, lseType);
    }
    SmallVector<Value> results{
        buildWeightedSum(b, op.getOutput().getType(), probs, op.getValue())};
    if (lse)
      results.push_back(lse);
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

void attnfuse::detail::populateAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerAttention>(patterns.getContext());
}
