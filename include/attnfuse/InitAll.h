//===- InitAll.h - Everything that tools and embedders register -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_INITALL_H
#define ATTNFUSE_INITALL_H

#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/BufferizableOpInterfaceImpl.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Pipelines/Pipelines.h"
#include "mlir/IR/DialectRegistry.h"

namespace mlir::attnfuse {

/// The project's dialect, the upstream dialects that its passes make, and the
/// interfaces and translations that its pipelines call.
inline void registerAllDialects(DialectRegistry &registry) {
  registerCompilerDialects(registry);
  registerBufferizableOpInterfaceExternalModels(registry);
  registerCpuPipelineInterfaces(registry);
}

/// The project's passes and pipelines.
inline void registerAllPasses() {
  registerAttnFuseTransformsPasses();
  registerAttnFuseConversionPasses();
  registerCpuPipeline();
  registerGpuPipelines();
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_INITALL_H
