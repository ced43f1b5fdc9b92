//===- AttnFuseFolds.cpp - Folders and canonicalization patterns
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attnfuse;

OpFoldResult RopeOp::fold(FoldAdaptor) { return {}; }
OpFoldResult FullOp::fold(FoldAdaptor) { return getScores(); }
OpFoldResult CausalOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SlidingWindowOp::fold(FoldAdaptor) { return {}; }
OpFoldResult BlockSparseOp::fold(FoldAdaptor) { return {}; }
OpFoldResult AlibiOp::fold(FoldAdaptor) { return {}; }
OpFoldResult AdditiveBiasOp::fold(FoldAdaptor) { return {}; }
OpFoldResult AlibiSlopeOp::fold(FoldAdaptor) { return {}; }

void RopeOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void CausalOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void SlidingWindowOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void BlockSparseOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void AlibiOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void AdditiveBiasOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void SoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
