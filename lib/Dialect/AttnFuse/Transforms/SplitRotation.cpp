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

namespace {
/// How the parts of the op are reached that rotate q, or k.
struct RotationParts {
  std::optional<RotationWay> (AttentionOp::*getWay)();
  RotationAttr (AttentionOp::*getRotation)();
  Attribute (AttentionOp::*removeRotation)();
  OpOperand &(AttentionOp::*getInput)();
  /// Of cos, sin, offset and positions.
  MutableOperandRange (AttentionOp::*getOperands[4])();
};
} // namespace

static const RotationParts kQueryParts = {
    &AttentionOp::getQueryRotationWay,
    &AttentionOp::getQRotationAttr,
    &AttentionOp::removeQRotationAttr,
    &AttentionOp::getQueryMutable,
    {&AttentionOp::getQCosMutable, &AttentionOp::getQSinMutable,
     &AttentionOp::getQOffsetMutable, &AttentionOp::getQPositionsMutable}};
static const RotationParts kKeyParts = {
    &AttentionOp::getKeyRotationWay,
    &AttentionOp::getKRotationAttr,
    &AttentionOp::removeKRotationAttr,
    &AttentionOp::getKeyMutable,
    {&AttentionOp::getKCosMutable, &AttentionOp::getKSinMutable,
     &AttentionOp::getKOffsetMutable, &AttentionOp::getKPositionsMutable}};

/// Makes one rotation of `op` an op of its own before it.
static RopeOp moveBefore(OpBuilder &b, AttentionOp op,
                         const RotationParts &parts) {
  Value operands[4];
  for (auto [operand, getOperands] : llvm::zip(operands, parts.getOperands)) {
    // A range is no longer right when another one has been cleared.
    MutableOperandRange range = (op.*getOperands)();
    if (range.empty())
      continue;
    operand = range[0].get();
    range.clear();
  }
  auto [cos, sin, offset, positions] = operands;
  OpOperand &input = (op.*parts.getInput)();
  RotationAttr rotation = (op.*parts.getRotation)();
  auto rope = RopeOp::create(b, op.getLoc(), input.get().getType(), input.get(),
                             cos, sin, offset, positions, rotation.getPairing(),
                             rotation.getOffset());
  input.set(rope);
  (op.*parts.removeRotation)();
  return rope;
}

SplitAttention mlir::attnfuse::buildSplitAttention(OpBuilder &b,
                                                   AttentionOp op) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  SplitAttention split;
  split.attention = cast<AttentionOp>(b.clone(*op));
  b.setInsertionPoint(split.attention);
  split.attention.removeRotationPlanAttr();
  for (const RotationParts &parts : {kQueryParts, kKeyParts})
    if (isSplit((op.*parts.getWay)()))
      split.rotations.push_back(moveBefore(b, split.attention, parts));
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
