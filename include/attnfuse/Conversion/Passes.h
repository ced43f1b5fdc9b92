//===- Passes.h - Conversions out of the attnfuse dialect -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_CONVERSION_PASSES_H
#define ATTNFUSE_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class ModuleOp;
namespace gpu {
class GPUModuleOp;
} // namespace gpu
} // namespace mlir

namespace mlir::attnfuse {

#define GEN_PASS_DECL
#include "attnfuse/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "attnfuse/Conversion/Passes.h.inc"

} // namespace mlir::attnfuse

#endif // ATTNFUSE_CONVERSION_PASSES_H
