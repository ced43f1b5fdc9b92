//===- SplitRotation.cpp - Rotations before an attention ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/Transforms/SplitRotation.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSESPLITROTATIONPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

static bool isSplit(std::optional<RotationWay> way) {
  return way && *way != RotationWay::Fused;
}

bool mlir::attnfuse::hasSplitRotation(AttentionOp op) {
  return isSplit(op.getQueryRotationWay()) || isSplit(op.getKeyRotationWay());
}

static RopeOp buildRope(OpBuilder &b, Location loc, Value input, Value cos,
                        Value sin, Value offset, Value positions,
                        RotationAttr rotation) {
  return RopeOp::create(b, loc, input.getType(), input, cos, sin, offset,
                        positions, rotation.getPairing(), rotation.getOffset());
}

SplitAttention mlir::attnfuse::buildSplitAttention(OpBuilder &b,
                                                   AttentionOp op) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  SplitAttention split;
  split.attention = cast<AttentionOp>(b.clone(*op));
  AttentionOp copy = split.attention;
  b.setInsertionPoint(copy);
  copy.removeRotationPlanAttr();
  if (isSplit(op.getQueryRotationWay())) {
    split.rotations.push_back(
        buildRope(b, op.getLoc(), op.getQuery(), op.getQCos(), op.getQSin(),
                  op.getQOffset(), op.getQPositions(), op.getQRotationAttr()));
    copy.getQueryMutable().assign(split.rotations.back());
    copy.removeQRotationAttr();
    copy.getQCosMutable().clear();
    copy.getQSinMutable().clear();
    copy.getQOffsetMutable().clear();
    copy.getQPositionsMutable().clear();
  }
  if (isSplit(op.getKeyRotationWay())) {
    split.rotations.push_back(
        buildRope(b, op.getLoc(), op.getKey(), op.getKCos(), op.getKSin(),
                  op.getKOffset(), op.getKPositions(), op.getKRotationAttr()));
    copy.getKeyMutable().assign(split.rotations.back());
    copy.removeKRotationAttr();
    copy.getKCosMutable().clear();
    copy.getKSinMutable().clear();
    copy.getKOffsetMutable().clear();
    copy.getKPositionsMutable().clear();
  }
  return split;
}

namespace {
struct SplitRotationPass
    : attnfuse::impl::AttnFuseSplitRotationPassBase<SplitRotationPass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (hasSplitRotation(op))
        ops.push_back(op);
    });
    for (AttentionOp op : ops) {
      OpBuilder b(op);
      SplitAttention split = buildSplitAttention(b, op);
      op.replaceAllUsesWith(split.attention.getResults());
      op.erase();
    }
  }
};
} // namespace
