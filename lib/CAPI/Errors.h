//===- Errors.h - How the C interface reports -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CAPI_ERRORS_H
#define ATTNFUSE_LIB_CAPI_ERRORS_H

#include "attnfuse-c/Compile.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::attnfuse {

/// Sets what attnfuseGetLastError gives on this thread.
void setLastError(std::string message);

/// Passes diagnostics on to a C handler, and keeps the text of the errors.
class DiagnosticSink {
public:
  DiagnosticSink(AttnfuseDiagnosticHandler handler, void *userData)
      : handler(handler), userData(userData) {}

  void add(const Diagnostic &diagnostic);
  /// Makes what has been reported, or `error` where nothing was, the last
  /// error. A handler gets `error` only where it has got no other.
  void fail(llvm::Error error);

private:
  void report(AttnfuseSeverity severity, LocationAttr location,
              const std::string &message);

  AttnfuseDiagnosticHandler handler;
  void *userData;
  std::string errors;
};

/// Runs `function`, and makes what LLVM calls a fatal error, such as an
/// instruction that cannot be selected, an error of this call: code generation
/// is abandoned where it stands, with what it had allocated.
llvm::Error runGuarded(llvm::function_ref<llvm::Error()> function);

/// Registers the code generators, once: LLVM's registry is not safe from
/// several threads.
void initializeTargets();

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_CAPI_ERRORS_H
