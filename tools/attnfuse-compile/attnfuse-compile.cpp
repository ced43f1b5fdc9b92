//===- attnfuse-compile.cpp - The compiler driver -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Driver.h"
#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Support/OutputFiles.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::OutputFiles;
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
CompilerFlags flags(category,
                    "Machine or chip to compile for, such as h200 or sm_80; "
                    "the module's attnfuse.target if absent");
cl::opt<EmitLevel> emitLevel(
    "emit", cl::desc("How far to compile"), cl::init(EmitLevel::PTX),
    cl::values(clEnumValN(EmitLevel::Fused, "fused", "fused ops (MLIR)"),
               clEnumValN(EmitLevel::Schedule, "schedule",
                          "fused ops with their schedules (MLIR)"),
               clEnumValN(EmitLevel::NVVM, "nvvm",
                          "kernels in the llvm and nvvm dialects (MLIR)"),
               clEnumValN(EmitLevel::LLVM, "llvm", "optimized LLVM IR"),
               clEnumValN(EmitLevel::PTX, "ptx", "PTX text (default)"),
               clEnumValN(EmitLevel::Cubin, "cubin", "PTX assembled by ptxas"),
               clEnumValN(EmitLevel::Linalg, "linalg",
                          "what the CPU executes (MLIR)")),
    cl::cat(category));
cl::opt<bool> explainDecisions(
    "explain", cl::desc("Say what was fused, the schedule, and what it takes"),
    cl::cat(category));

/// Kernels come with a manifest, except on standard output or in a pipe. Its
/// path is the output's with the extension .json.
std::optional<std::string> getManifestPath() {
  if (outputFile == "-" || OutputFiles::isSpecial(outputFile) ||
      (emitLevel != EmitLevel::PTX && emitLevel != EmitLevel::Cubin))
    return std::nullopt;
  SmallString<128> path(outputFile);
  llvm::sys::path::replace_extension(path, "json");
  return path.str().str();
}

::attnfuse::Status writeOutputs(OutputFiles &files,
                                const CompiledModule &compiled) {
  if (outputFile == "-") {
    llvm::outs() << compiled.code;
    return {};
  }
  if (::attnfuse::Status status = files.write(outputFile, compiled.code);
      !status.ok())
    return status;
  if (std::optional<std::string> manifest = getManifestPath())
    if (::attnfuse::Status status = files.write(*manifest, compiled.manifest);
        !status.ok())
      return status;
  return files.commit();
}
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startDriver("attnfuse-compile");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Compiles attention variants to fused GPU kernels\n");

  OutputFiles files;
  files.protectInput(inputFile);
  if (outputFile != "-")
    if (auto status = files.add(outputFile); !status.ok())
      return fail(status.error().message);
  if (std::optional<std::string> manifest = getManifestPath())
    if (auto status = files.add(*manifest); !status.ok())
      return fail(status.error().message +
                  " (the manifest has the name of the output with .json)");

  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = readModule(context, inputFile);
  if (!module)
    return EXIT_FAILURE;

  llvm::Expected<CompiledModule> compiled = compileModule(
      *module, {flags.chip, emitLevel, flags.rotation, flags.keySplits, {}});
  if (!compiled)
    return fail(llvm::toString(compiled.takeError()));
  if (auto status = writeOutputs(files, *compiled); !status.ok())
    return fail(status.error().message);
  if (explainDecisions)
    (outputFile == "-" ? llvm::errs() : llvm::outs()) << compiled->explanation;
  return finish(EXIT_SUCCESS);
}
