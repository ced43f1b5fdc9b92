//===- Driver.cpp - What the tools share ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::attnfuse;

CompilerFlags::CompilerFlags(llvm::cl::OptionCategory &category,
                             const char *chipDescription)
    : chip("chip", llvm::cl::desc(chipDescription),
           llvm::cl::value_desc("name"), llvm::cl::cat(category)),
      rotation("rotation", llvm::cl::desc("Where q and k are rotated"),
               llvm::cl::init(RotationChoice::Auto), getRotationChoices(),
               llvm::cl::cat(category)),
      keySplits(
          "key-splits",
          llvm::cl::desc("Blocks that share the keys of a query tile at every "
                         "launch; 1: never more; 0 (default): by the sizes of "
                         "a launch"),
          llvm::cl::value_desc("number"), llvm::cl::init(0),
          llvm::cl::cat(category)) {}

static StringRef toolName;

/// It shall not look like a crash.
static void exitOnFatalError(void *, const char *reason, bool) {
  fail(Twine("code generation failed: ") + reason);
  llvm::sys::Process::Exit(EXIT_FAILURE, /*NoCleanup=*/true);
}

void mlir::attnfuse::startDriver(StringRef tool) {
  toolName = tool;
  llvm::install_fatal_error_handler(exitOnFatalError);
}

int mlir::attnfuse::fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), toolName) << message << "\n";
  return EXIT_FAILURE;
}

int mlir::attnfuse::finish(int status) {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error())
    return status;
  std::string reason = out.error().message();
  // Else the stream takes it for a fatal error when it is closed.
  out.clear_error();
  return fail("cannot write to standard output: " + reason);
}

OwningOpRef<ModuleOp> mlir::attnfuse::readModule(MLIRContext &context,
                                                 const std::string &file) {
  auto input = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (std::error_code code = input.getError()) {
    fail("cannot read '" + file + "': " + code.message());
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*input), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    fail("cannot parse '" + file + "'");
  return module;
}
