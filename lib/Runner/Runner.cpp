//===- Runner.cpp - What attnfuse-run does --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Runner.h"
#include "FusionReport.h"
#include "ResultChecker.h"
#include "RunSetup.h"
#include "Tune.h"
#include "Work.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Reference/Interpreter.h"
#include "attnfuse/Runner/Npy.h"
#include "attnfuse/Support/MakeError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::HostTensor;
using ::attnfuse::OutputFiles;

namespace {
/// Runs one function for each --dims.
class FunctionRunner {
public:
  FunctionRunner(const RunOptions &options, Device &device, InputSpec &inputs,
                 const std::map<std::string, std::string> &outputs,
                 OutputFiles &outputFiles, raw_ostream &os)
      : options(options), device(device), inputs(inputs), outputs(outputs),
        outputFiles(outputFiles), os(os) {}

  /// Compiles the function of `module`.
  llvm::Error compile(ModuleOp module) {
    auto function = *module.getOps<func::FuncOp>().begin();
    name = function.getName();
    os << name << ": " << describeFusion(module) << "\n";
    llvm::Expected<DimensionClasses> analyzed =
        DimensionClasses::analyze(function);
    if (!analyzed)
      return analyzed.takeError();
    classes.emplace(std::move(*analyzed));
    for (const auto &[output, file] : outputs)
      if (llvm::none_of(classes->getResults(),
                        [output = &output](const ArgumentRole &role) {
                          return role.name == *output;
                        }))
        return makeError("unknown result '" + output + "': function '" + name +
                         "' has " + listResults());
    auto compiled = device.compile(module, name);
    if (!compiled)
      return compiled.takeError();
    executable = std::move(*compiled);
    return llvm::Error::success();
  }

  /// One call; false if its results are wrong.
  llvm::Expected<bool> run(StringRef dims) {
    inputs.dims = dims.str();
    llvm::Expected<Call> call = prepareCall(*classes, inputs);
    if (!call)
      return call.takeError();
    os << name << " " << describeSizes(*classes, call->sizes) << "on "
       << device.getName() << "\n";
    if (llvm::Error error = executable->run(call->arguments, call->results,
                                            options.check ? 3 : 1))
      return std::move(error);
    bool passed = true;
    if (options.check) {
      llvm::Expected<bool> result = check(*call);
      if (!result)
        return result.takeError();
      passed = *result;
    }
    if (options.time)
      if (llvm::Error error = time(*call))
        return std::move(error);
    if (llvm::Error error = writeOutputs(*call))
      return std::move(error);
    return passed;
  }

private:
  std::string listResults() const {
    SmallVector<StringRef> names;
    for (const ArgumentRole &role : classes->getResults())
      names.push_back(role.name);
    return llvm::join(names, ", ");
  }

  llvm::Expected<bool> check(const Call &call) {
    llvm::Expected<Interpretation> reference =
        interpretWithErrors(classes->getFunction(), call.arguments);
    if (!reference)
      return reference.takeError();
    bool passed = true;
    for (auto [index, role] : llvm::enumerate(classes->getResults())) {
      ::attnfuse::Comparison comparison =
          compare(call.results[index], reference->results[index],
                  reference->errors[index], getResultTraits(role.kind));
      passed &= comparison.passed;
      os << "  " << role.name << ": "
         << describe(comparison, call.results[index].getShape()) << "\n";
    }
    return passed;
  }

  llvm::Error time(const Call &call) {
    llvm::Expected<DeviceFunction::Timing> timing =
        executable->time(call.arguments, call.results);
    if (!timing)
      return timing.takeError();
    std::vector<double> &times = timing->runs;
    llvm::sort(times);
    double median = times[times.size() / 2], best = times.front();
    Work work = countWork(*classes, call);
    os << llvm::format("  time: median %.4g us, min %.4g us of %zu runs; at "
                       "the median %.4g TFLOP/s, %.4g GB/s",
                       median * 1e6, best * 1e6, times.size(),
                       work.flops / median * 1e-12, work.bytes / median * 1e-9);
    if (timing->backToBack)
      os << llvm::format("; back to back %.4g us", *timing->backToBack * 1e6);
    os << "\n";
    return llvm::Error::success();
  }

  llvm::Error writeOutputs(const Call &call) {
    for (auto [index, role] : llvm::enumerate(classes->getResults())) {
      auto file = outputs.find(role.name);
      if (file == outputs.end())
        continue;
      ::attnfuse::Status status = outputFiles.write(
          file->second, ::attnfuse::formatNpy(call.results[index]));
      if (!status.ok())
        return makeError(status.error().message);
    }
    if (::attnfuse::Status status = outputFiles.commit(); !status.ok())
      return makeError(status.error().message);
    return llvm::Error::success();
  }

  const RunOptions &options;
  Device &device;
  InputSpec &inputs;
  /// Result to file, all of them declared in `outputFiles`.
  const std::map<std::string, std::string> &outputs;
  OutputFiles &outputFiles;
  raw_ostream &os;
  StringRef name;
  std::optional<DimensionClasses> classes;
  std::unique_ptr<DeviceFunction> executable;
};
} // namespace

llvm::Expected<RunSummary> mlir::attnfuse::runModule(ModuleOp module,
                                                     const RunOptions &options,
                                                     raw_ostream &os,
                                                     raw_ostream &errors) {
  if (llvm::Error error = checkTuneFlags(options))
    return std::move(error);
  // Also where a CPU, which splits no keys, is asked.
  if (options.keySplits < 0 || options.keySplits > kMaxKeySplits)
    return makeError("expected --key-splits from 0 to " + Twine(kMaxKeySplits) +
                     ", got " + Twine(options.keySplits));
  if (options.tune || options.tuneList)
    return tuneModule(module, options, os, errors);
  auto functions = selectFunctions(module, options);
  if (!functions)
    return functions.takeError();
  auto outputs = parseOutputs(options);
  if (!outputs)
    return outputs.takeError();
  std::vector<std::string> dims = getCalls(options);
  if (!outputs->empty() && (functions->size() != 1 || dims.size() != 1))
    return makeError("--output needs one call: expected one --function and at "
                     "most one --dims");
  OutputFiles outputFiles;
  std::vector<std::string> outputPaths;
  for (const auto &[name, file] : *outputs)
    outputPaths.push_back(file);
  if (llvm::Error error = declareOutputs(options, outputPaths, outputFiles))
    return std::move(error);
  llvm::Expected<InputSpec> inputs = readInputs(*functions, options);
  if (!inputs)
    return inputs.takeError();
  llvm::Expected<std::unique_ptr<Device>> device = openDevice(options);
  if (!device)
    return device.takeError();

  RunSummary summary;
  bool isOnlyCall = functions->size() == 1 && dims.size() == 1;
  auto report = [&](llvm::Error error, StringRef function) {
    os.flush();
    errors << "attnfuse-run: error: ";
    if (!isOnlyCall)
      errors << function << ": ";
    errors << llvm::toString(std::move(error)) << "\n";
  };
  for (func::FuncOp function : *functions) {
    OwningOpRef<ModuleOp> isolated = isolate(module, function.getName());
    FunctionRunner runner(options, **device, *inputs, *outputs, outputFiles,
                          os);
    if (llvm::Error error = runner.compile(*isolated)) {
      report(std::move(error), function.getName());
      summary.numFailed += dims.size();
      continue;
    }
    for (const std::string &call : dims) {
      llvm::Expected<bool> passed = runner.run(call);
      if (!passed)
        report(passed.takeError(), function.getName());
      (passed && *passed ? summary.numPassed : summary.numFailed) += 1;
      os.flush();
    }
  }
  if (options.check)
    os << summary.numPassed << " passed, " << summary.numFailed << " failed\n";
  return summary;
}
