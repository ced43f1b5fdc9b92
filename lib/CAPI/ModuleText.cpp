//===- ModuleText.cpp - A parsed module with its context ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleText.h"
#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::attnfuse;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  return registry;
}

ModuleText::ModuleText()
    : context(makeRegistry(), MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false);
}

llvm::Error ModuleText::parse(StringRef source, DiagnosticSink &sink) {
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { sink.add(diagnostic); });
  // The text may not end with a 0, which the parser wants.
  module = parseSourceString<ModuleOp>(source.str(), &context, "module");
  if (!module)
    return makeError("the module does not parse");
  return llvm::Error::success();
}
