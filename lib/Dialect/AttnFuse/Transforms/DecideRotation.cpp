//===- DecideRotation.cpp - Where q and k are rotated ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/RotationCalculus.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSEDECIDEROTATIONPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

static std::string formatTime(int64_t picoseconds) {
  return llvm::formatv("{0:F2} us", double(picoseconds) * 1e-6).str();
}

/// The plan that the option asks for, or null to decide.
static RotationPlanAttr getForcedPlan(MLIRContext *context,
                                      RotationChoice way) {
  switch (way) {
  case RotationChoice::Auto:
    return {};
  case RotationChoice::Fused:
    return RotationPlanAttr::get(context, RotationWay::Fused,
                                 RotationWay::Fused);
  case RotationChoice::Split:
    return RotationPlanAttr::get(context, RotationWay::Fused,
                                 RotationWay::Split);
  case RotationChoice::SplitBoth:
    return RotationPlanAttr::get(context, RotationWay::Split,
                                 RotationWay::Split);
  }
  llvm_unreachable("unknown choice");
}

namespace {
struct DecideRotationPass
    : attnfuse::impl::AttnFuseDecideRotationPassBase<DecideRotationPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      bool rotates = op.getQRotationAttr() || op.getKRotationAttr();
      if (rotates && !op.getRotationPlanAttr())
        ops.push_back(op);
    });
    RotationPlanAttr forced = getForcedPlan(&getContext(), way);
    for (AttentionOp op : ops) {
      if (forced)
        op.setRotationPlanAttr(forced);
      else if (failed(decide(op)))
        return signalPassFailure();
    }
  }

  LogicalResult decide(AttentionOp op) {
    auto setPlan = [&](RotationWay keyWay) {
      op.setRotationPlanAttr(
          RotationPlanAttr::get(&getContext(), RotationWay::Fused, keyWay));
    };
    if (!op.getKRotationAttr()) {
      setPlan(RotationWay::Fused);
      return success();
    }
    llvm::Expected<TargetInfo> target = getTargetOf(op);
    if (!target)
      return op.emitError(llvm::toString(target.takeError()));
    // The tiles are those of the fused way, as the split one has no visits.
    FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
    if (failed(problem))
      return failure();
    llvm::Expected<KernelTile> tile = chooseTile(*problem, *target);
    if (!tile)
      return op.emitOpError() << llvm::toString(tile.takeError());
    // Where a launch decides, keys that are split are rotated before.
    RotationCosts costs(op, AttentionSizes::get(op),
                        getRotationTile(*problem, *tile, *target,
                                        /*splitsKeys=*/true),
                        *target);
    std::optional<int64_t> isFused = costs.isFusedQuicker().getInteger();
    if (!isFused) {
      setPlan(RotationWay::BySize);
      op.emitRemark() << "rotates k by size: in the kernel where that is "
                         "expected to be quicker, else before it";
      return success();
    }
    int64_t fused = *costs.fused.getInteger(),
            split = *costs.split.getInteger();
    op.setRotationPlanAttr(RotationPlanAttr::get(
        &getContext(), RotationWay::Fused,
        *isFused ? RotationWay::Fused : RotationWay::Split, fused, split));
    if (*isFused)
      op.emitRemark() << "rotates k in the kernel: expected to add "
                      << formatTime(fused) << ", before it "
                      << formatTime(split);
    else
      op.emitRemark() << "rotates k before the kernel: expected to add "
                      << formatTime(split) << ", in it " << formatTime(fused);
    return success();
  }
};
} // namespace
