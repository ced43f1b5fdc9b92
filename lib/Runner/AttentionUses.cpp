//===- AttentionUses.cpp - Rotations, lists, bands of a function ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionUses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attnfuse;

static BlockUse getBlockUse(BlockSparseOp op) {
  return {op.getRowOffsets(),
          op.getColIndices(),
          int64_t(op.getQueryBlock()),
          int64_t(op.getKeyBlock()),
          op.getScores(),
          op.getScores(),
          3};
}

static std::optional<BlockUse> getBlockUse(AttentionOp op) {
  BlocksAttr blocks = op.getBlocksAttr();
  if (!blocks)
    return std::nullopt;
  return BlockUse{op.getRowOffsets(),
                  op.getColIndices(),
                  blocks.getQueryBlock(),
                  blocks.getKeyBlock(),
                  op.getQuery(),
                  op.getKey(),
                  2};
}

SmallVector<RotationUse> mlir::attnfuse::getRotations(func::FuncOp function) {
  SmallVector<RotationUse> uses;
  for (Operation &op : function.front()) {
    if (auto rope = dyn_cast<RopeOp>(op)) {
      uses.push_back({rope.getInput(), rope.getCos(), rope.getSin(),
                      rope.getOffset(), rope.getPositions(),
                      int64_t(rope.getStaticOffset())});
    } else if (auto fused = dyn_cast<AttentionOp>(op)) {
      if (RotationAttr q = fused.getQRotationAttr())
        uses.push_back({fused.getQuery(), fused.getQCos(), fused.getQSin(),
                        fused.getQOffset(), fused.getQPositions(),
                        q.getOffset()});
      if (RotationAttr k = fused.getKRotationAttr())
        uses.push_back({fused.getKey(), fused.getKCos(), fused.getKSin(),
                        fused.getKOffset(), fused.getKPositions(),
                        k.getOffset()});
    }
  }
  return uses;
}

SmallVector<BlockUse> mlir::attnfuse::getBlockUses(func::FuncOp function) {
  SmallVector<BlockUse> uses;
  for (Operation &op : function.front()) {
    if (auto blocks = dyn_cast<BlockSparseOp>(op))
      uses.push_back(getBlockUse(blocks));
    else if (auto fused = dyn_cast<AttentionOp>(op))
      if (std::optional<BlockUse> use = getBlockUse(fused))
        uses.push_back(*use);
  }
  return uses;
}

/// Follows the weights up to the product and collects the masks on the way.
static AttentionUse collectChain(WeightedSumOp sum) {
  AttentionUse use;
  use.value = sum.getValue();
  use.output = sum.getOutput();
  MLIRContext *context = sum.getContext();
  Operation *op = sum.getProbs().getDefiningOp();
  while (op && isa<AttnFuseDialect>(op->getDialect())) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ScaledDotProductOp op) {
          use.query = op.getQuery();
          use.key = op.getKey();
        })
        .Case([&](CausalOp op) {
          use.bands.push_back(
              BandAttr::get(context, op.getAlign(), std::nullopt, 0));
        })
        .Case([&](SlidingWindowOp op) {
          use.bands.push_back(BandAttr::get(context, op.getAlign(),
                                            op.getLeft(), op.getRight()));
        })
        .Case([&](BlockSparseOp op) { use.blocks.push_back(getBlockUse(op)); });
    if (isa<ScaledDotProductOp>(op) || op->getNumOperands() == 0)
      break;
    op = op->getOperand(0).getDefiningOp();
  }
  return use;
}

SmallVector<AttentionUse> mlir::attnfuse::getAttentions(func::FuncOp function) {
  SmallVector<AttentionUse> uses;
  for (Operation &op : function.front()) {
    if (auto sum = dyn_cast<WeightedSumOp>(op)) {
      uses.push_back(collectChain(sum));
    } else if (auto fused = dyn_cast<AttentionOp>(op)) {
      AttentionUse use{fused.getQuery(),
                       fused.getKey(),
                       fused.getValue(),
                       fused.getOutput(),
                       {},
                       {}};
      llvm::append_range(use.bands, fused.getBands().getAsRange<BandAttr>());
      if (std::optional<BlockUse> blocks = getBlockUse(fused))
        use.blocks.push_back(*blocks);
      uses.push_back(std::move(use));
    }
  }
  return uses;
}
