//===- Passes.h - Transforms of the attnfuse dialect ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_H

#include "attnfuse/Dialect/AttnFuse/Transforms/RotationChoice.h"
#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
}

namespace mlir::attnfuse {

#define GEN_PASS_DECL
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"

/// alibi_slope to arithmetic; used by the pass and by both lowerings.
void populateExpandAlibiSlopePatterns(RewritePatternSet &patterns);

/// Integer divisions of scalars to ones that do not trap, whatever the divisor;
/// to be applied once per op, by walkAndApplyPatterns.
void populateGuardDivisionPatterns(RewritePatternSet &patterns);

/// Fails, with an error at the op and a note at the constant, if block lists or
/// an offset of a rotation under `root` are constants with contents that the
/// op does not take (spec S10 and S12), if a constant is too large to be part
/// of the code, or if a score region divides by a constant 0 or reads beyond a
/// static size (S14). Verifiers look at types only, so both lowerings call this
/// first.
LogicalResult checkConstantOperands(Operation *root);

#define GEN_PASS_REGISTRATION
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_H
