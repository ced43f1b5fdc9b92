//===- ModuleText.h - A parsed module with its context ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CAPI_MODULETEXT_H
#define ATTNFUSE_LIB_CAPI_MODULETEXT_H

#include "Errors.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::attnfuse {

/// A context of its own for each call: calls from several threads share
/// nothing.
class ModuleText {
public:
  ModuleText();

  /// Parses and verifies `source`; diagnostics go to `sink`.
  llvm::Error parse(StringRef source, DiagnosticSink &sink);
  /// After a successful parse().
  ModuleOp getModule() { return *module; }

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_CAPI_MODULETEXT_H
