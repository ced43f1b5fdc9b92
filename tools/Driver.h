//===- Driver.h - What the tools share --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TOOLS_DRIVER_H
#define ATTNFUSE_TOOLS_DRIVER_H

#include "attnfuse/Dialect/AttnFuse/Transforms/RotationChoice.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::attnfuse {

/// The options of tools that compile for a machine.
struct CompilerFlags {
  /// `chipDescription` also says what is taken where there is no --chip.
  CompilerFlags(llvm::cl::OptionCategory &category,
                const char *chipDescription);

  llvm::cl::opt<std::string> chip;
  llvm::cl::opt<RotationChoice> rotation;
  llvm::cl::opt<int64_t> keySplits;
};

/// Names the tool in messages, and has what code generation cannot do end the
/// process with such a message. Call it once, first.
void startDriver(StringRef tool);

/// Prints "TOOL: error: MESSAGE" and returns the status to exit with.
int fail(const Twine &message);

/// The status to exit with, once all that was printed has been written:
/// `status`, or that of an error where it could not be.
int finish(int status);

/// The module in `file` ("-" is standard input). Null after an error, which it
/// reports.
OwningOpRef<ModuleOp> readModule(MLIRContext &context, const std::string &file);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_TOOLS_DRIVER_H
