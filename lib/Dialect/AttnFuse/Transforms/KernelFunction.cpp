//===- KernelFunction.cpp - What becomes kernels, and with what -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/Transforms/KernelFunction.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attnfuse;

bool mlir::attnfuse::holdsAttention(Operation *root) {
  return root
      ->walk([](Operation *op) {
        return isa_and_nonnull<AttnFuseDialect>(op->getDialect()) &&
                       !isa<LaunchOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool mlir::attnfuse::isKernelConstant(Value value) {
  Attribute constant;
  return matchPattern(value, m_Constant(&constant)) &&
         isa<DenseElementsAttr, IntegerAttr>(constant);
}
