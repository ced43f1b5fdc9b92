//===- AttnFuseVerify.cpp - Verifiers
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

using namespace mlir;
using namespace mlir::attnfuse;

LogicalResult RopeOp::verify() { return success(); }
LogicalResult ScaledDotProductOp::verify() { return success(); }
LogicalResult SlidingWindowOp::verify() { return success(); }
LogicalResult BlockSparseOp::verify() { return success(); }
LogicalResult AlibiOp::verify() { return success(); }
LogicalResult AdditiveBiasOp::verify() { return success(); }
LogicalResult SoftmaxOp::verify() { return success(); }
LogicalResult WeightedSumOp::verify() { return success(); }
LogicalResult AttentionOp::verify() { return success(); }
LogicalResult AttentionOp::verifyRegions() { return success(); }
