//===- attnfuse-run.cpp - Executes and checks attention variants ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Driver.h"
#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Runner/Runner.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::attnfuse;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("attnfuse-run options");

cl::opt<std::string> inputFile(cl::Positional, cl::desc("<input.mlir, or - >"),
                               cl::Required, cl::cat(category));
cl::opt<std::string> device("device", cl::desc("cpu (default), cuda or cuda:N"),
                            cl::value_desc("name"), cl::init("cpu"),
                            cl::cat(category));
CompilerFlags
    flags(category,
          "Machine or chip to compile for; the device's own if absent");
cl::opt<std::string> layout(
    "layout",
    cl::desc("How a GPU's q, k, v and output are stored: bhnd (default), bnhd, "
             "or strided, which is bnhd with gaps in all tensors"),
    cl::value_desc("name"), cl::init("bhnd"), cl::cat(category));
cl::list<std::string>
    functions("function",
              cl::desc("Function to run (repeatable); all if absent"),
              cl::value_desc("name"), cl::cat(category));
cl::list<std::string>
    inputs("input",
           cl::desc("Argument from a file (repeatable); bf16 is u2 there"),
           cl::value_desc("name=file.npy"), cl::cat(category));
cl::list<std::string> outputs("output",
                              cl::desc("Result to a file (repeatable)"),
                              cl::value_desc("name=file.npy"),
                              cl::cat(category));
cl::opt<std::string>
    seed("random", cl::desc("Make up the arguments that no file is given for"),
         cl::value_desc("seed"), cl::cat(category));
cl::list<std::string> dims(
    "dims",
    cl::desc("Sizes of dynamic dimensions (repeatable: one call each): B, "
             "Hq, Hkv, Nq, Nkv, P, nnz; H and N set both; or ARGUMENT.DIM"),
    cl::value_desc("B=2,N=64,..."), cl::cat(category));
cl::opt<bool> check("check",
                    cl::desc("Compare the results with the fp64 reference"),
                    cl::cat(category));
cl::opt<bool> timeRuns("time", cl::desc("Measure and print the run time"),
                       cl::cat(category));

cl::opt<bool>
    tune("tune",
         cl::desc("Search the quickest schedule of each function on a GPU, for "
                  "the sizes of --dims: times those near the model's choice"),
         cl::cat(category));
cl::opt<std::string> tuneBudget(
    "tune-budget",
    cl::desc("Seconds of the search of each function (default: 120)"),
    cl::value_desc("seconds"), cl::cat(category));
cl::opt<std::string> tunedModule(
    "o",
    cl::desc("With --tune: the module with the schedules that were found, for "
             "attnfuse-compile and attnfuse-run"),
    cl::value_desc("file.mlir"), cl::cat(category));
cl::opt<std::string>
    tuneJson("tune-json",
             cl::desc("With --tune: all that was measured, as JSON"),
             cl::value_desc("file.json"), cl::cat(category));
cl::opt<bool> tuneList(
    "tune-list",
    cl::desc("Print the schedules that a search may try, for --chip; needs no "
             "GPU"),
    cl::cat(category));

/// The text of a flag that was given, which may be an empty one.
std::optional<std::string> getGiven(const cl::opt<std::string> &flag) {
  if (!flag.getNumOccurrences())
    return std::nullopt;
  return flag.getValue();
}
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startDriver("attnfuse-run");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Executes attention variants and checks their results\n");

  RunOptions options;
  options.source = inputFile;
  options.device = device;
  options.chip = flags.chip;
  options.rotation = flags.rotation;
  options.keySplits = flags.keySplits;
  options.layout = layout;
  options.functions = functions;
  options.inputs = inputs;
  options.outputs = outputs;
  options.dims = dims;
  options.check = check;
  options.time = timeRuns;
  options.tune = tune;
  options.tuneBudget = getGiven(tuneBudget);
  options.tunedModule = getGiven(tunedModule);
  options.tuneJson = getGiven(tuneJson);
  options.tuneList = tuneList;
  if (seed.getNumOccurrences() &&
      StringRef(seed).getAsInteger(0, options.seed.emplace()))
    return fail("expected --random=SEED with a number, got '" + seed + "'");

  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = readModule(context, inputFile);
  if (!module)
    return EXIT_FAILURE;

  llvm::Expected<RunSummary> summary =
      runModule(*module, options, llvm::outs(), llvm::errs());
  if (!summary)
    return finish(fail(llvm::toString(summary.takeError())));
  return finish(summary->numFailed ? EXIT_FAILURE : EXIT_SUCCESS);
}
