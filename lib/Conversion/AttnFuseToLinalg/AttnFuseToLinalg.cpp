//===- AttnFuseToLinalg.cpp - Conversion pass -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Conversion/AttnFuseToLinalg.h"

#include "Builders.h"
#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_CONVERTATTNFUSETOLINALGPASS
#include "attnfuse/Conversion/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

void attnfuse::populateAttnFuseToLinalgConversionPatterns(
    RewritePatternSet &patterns) {
  detail::populateRotatePatterns(patterns);
  detail::populateProductPatterns(patterns);
  detail::populateMaskPatterns(patterns);
  detail::populateScorePatterns(patterns);
  detail::populateNormalizePatterns(patterns);
  detail::populateAttentionPatterns(patterns);
  populateExpandAlibiSlopePatterns(patterns);
}

/// Fails on an op before its operand. A graph region allows that, and with it
/// cycles, which neither this conversion (`full` is replaced by its operand)
/// nor bufferization gets out of.
static LogicalResult checkOrder(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (!isa_and_nonnull<AttnFuseDialect>(op->getDialect()))
      return WalkResult::advance();
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || producer->getBlock() != op->getBlock() ||
          producer->isBeforeInBlock(op))
        continue;
      InFlightDiagnostic diag = op->emitOpError(
          "expected operands that are defined before, got one that is not");
      if (producer != op)
        diag.attachNote(producer->getLoc()) << "it is defined here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct ConvertAttnFuseToLinalgPass
    : attnfuse::impl::ConvertAttnFuseToLinalgPassBase<
          ConvertAttnFuseToLinalgPass> {
  void runOnOperation() override {
    if (failed(checkOrder(getOperation())) ||
        failed(checkConstantOperands(getOperation())))
      return signalPassFailure();
    ConversionTarget target(getContext());
    target.addIllegalDialect<AttnFuseDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(&getContext());
    populateAttnFuseToLinalgConversionPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
