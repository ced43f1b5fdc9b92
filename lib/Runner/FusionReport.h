//===- FusionReport.h - What goes into the kernel, in words -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_FUSIONREPORT_H
#define ATTNFUSE_LIB_RUNNER_FUSIONREPORT_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace mlir::attnfuse {

/// One clause on the only function of `module`: the ops that fusion makes one
/// kernel of, or why it does not.
std::string describeFusion(ModuleOp module);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_FUSIONREPORT_H
