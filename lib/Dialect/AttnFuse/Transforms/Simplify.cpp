//===- Simplify.cpp - Canonicalize functions with attention ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/KernelFunction.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSESIMPLIFYPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
struct SimplifyPass : attnfuse::impl::AttnFuseSimplifyPassBase<SimplifyPass> {
  SimplifyPass() : canonicalize(func::FuncOp::getOperationName()) {
    canonicalize.addPass(createCanonicalizerPass());
  }
  SimplifyPass(const SimplifyPass &other) = default;

  void getDependentDialects(DialectRegistry &registry) const override {
    canonicalize.getDependentDialects(registry);
  }

  void runOnOperation() override {
    if (holdsAttention(getOperation()) &&
        failed(runPipeline(canonicalize, getOperation())))
      signalPassFailure();
  }

  OpPassManager canonicalize;
};
} // namespace
