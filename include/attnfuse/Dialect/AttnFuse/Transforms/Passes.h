//===- Passes.h - Transforms of the attnfuse dialect ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
}

namespace mlir::attnfuse {

#define GEN_PASS_DECL
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"

/// alibi_slope to arithmetic; used by the pass and by both lowerings.
void populateExpandAlibiSlopePatterns(RewritePatternSet &patterns);

#define GEN_PASS_REGISTRATION
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_H
