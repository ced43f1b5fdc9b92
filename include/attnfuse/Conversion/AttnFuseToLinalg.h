//===- AttnFuseToLinalg.h - Lowering to linalg on tensors -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_CONVERSION_ATTNFUSETOLINALG_H
#define ATTNFUSE_CONVERSION_ATTNFUSETOLINALG_H

namespace mlir {
class RewritePatternSet;
}

namespace mlir::attnfuse {

/// Lowers every op of the dialect to linalg on tensors. The patterns need the
/// arith, linalg, math, scf and tensor dialects loaded.
void populateAttnFuseToLinalgConversionPatterns(RewritePatternSet &patterns);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_CONVERSION_ATTNFUSETOLINALG_H
