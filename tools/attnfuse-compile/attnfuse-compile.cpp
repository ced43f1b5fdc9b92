//===- attnfuse-compile.cpp - The compiler driver -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Compiler/Compiler.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::attnfuse;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("attnfuse-compile options");

cl::opt<std::string> inputFile(cl::Positional, cl::desc("<input.mlir, or - >"),
                               cl::Required, cl::cat(category));
cl::opt<std::string> outputFile(
    "o",
    cl::desc("Output, or - for standard output; the manifest is written "
             "beside it as .json"),
    cl::value_desc("file"), cl::init("-"), cl::cat(category));
cl::opt<std::string>
    chip("chip",
         cl::desc("Machine or chip to compile for, such as h200 or sm_80; the "
                  "module's attnfuse.target if absent"),
         cl::value_desc("name"), cl::cat(category));
cl::opt<EmitLevel> emitLevel(
    "emit", cl::desc("How far to compile"), cl::init(EmitLevel::PTX),
    cl::values(clEnumValN(EmitLevel::Schedule, "schedule",
                          "fused ops with their schedules (MLIR)"),
               clEnumValN(EmitLevel::NVVM, "nvvm",
                          "kernels in the llvm and nvvm dialects (MLIR)"),
               clEnumValN(EmitLevel::LLVM, "llvm", "optimized LLVM IR"),
               clEnumValN(EmitLevel::PTX, "ptx", "PTX text (default)"),
               clEnumValN(EmitLevel::Cubin, "cubin", "PTX assembled by ptxas")),
    cl::cat(category));
cl::opt<bool> explainDecisions(
    "explain", cl::desc("Say what was fused, the schedule, and what it takes"),
    cl::cat(category));

int fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attnfuse-compile") << message << "\n";
  return EXIT_FAILURE;
}

/// Path of the manifest: the output's with the extension .json.
std::string getManifestPath() {
  SmallString<128> path(outputFile);
  llvm::sys::path::replace_extension(path, "json");
  return path.str().str();
}

/// Writes through a temporary file that replaces `path` at the end.
llvm::Error writeFile(StringRef path, StringRef contents) {
  return llvm::writeToOutput(path, [&](raw_ostream &os) {
    os << contents;
    return llvm::Error::success();
  });
}

llvm::Error writeOutputs(const CompiledModule &compiled) {
  bool withManifest = outputFile != "-" && !compiled.manifest.empty();
  std::string manifestPath = getManifestPath();
  if (withManifest)
    if (llvm::Error error = writeFile(manifestPath, compiled.manifest))
      return error;
  llvm::Error error = writeFile(outputFile, compiled.ptx);
  // A manifest without its kernels is no output.
  if (error && withManifest)
    llvm::sys::fs::remove(manifestPath);
  return error;
}

OwningOpRef<ModuleOp> parseInput(MLIRContext &context,
                                 std::unique_ptr<llvm::MemoryBuffer> input) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  return parseSourceFile<ModuleOp>(sources, &context);
}

/// What code generation cannot do ends the process; it shall not look like a
/// crash.
void exitOnFatalError(void *, const char *reason, bool) {
  fail(Twine("code generation failed: ") + reason);
  llvm::sys::Process::Exit(EXIT_FAILURE, /*NoCleanup=*/true);
}
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Compiles attention variants to fused GPU kernels\n");
  llvm::install_fatal_error_handler(exitOnFatalError);

  if (outputFile != "-" && getManifestPath() == outputFile)
    return fail("the manifest would overwrite the output " + outputFile +
                "; choose another extension than .json");

  if (outputFile != "-")
    for (const std::string &path : {outputFile.getValue(), getManifestPath()})
      if (llvm::sys::fs::equivalent(path, inputFile))
        return fail(path + " is the input and would be overwritten; choose "
                           "another output");

  auto input = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (std::error_code code = input.getError())
    return fail("cannot read " + inputFile + ": " + code.message());

  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseInput(context, std::move(*input));
  if (!module)
    return fail("cannot parse " + inputFile);

  llvm::Expected<CompiledModule> compiled =
      compileModule(*module, {chip, emitLevel});
  if (!compiled)
    return fail(llvm::toString(compiled.takeError()));
  if (llvm::Error error = writeOutputs(*compiled))
    return fail("cannot write " + outputFile + ": " +
                llvm::toString(std::move(error)));
  if (explainDecisions)
    (outputFile == "-" ? llvm::errs() : llvm::outs()) << compiled->explanation;
  return EXIT_SUCCESS;
}
