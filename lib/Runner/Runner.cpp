//===- Runner.cpp - What attnfuse-run does --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Runner.h"
#include "Device.h"
#include "FusionReport.h"
#include "Work.h"
#include "attnfuse/Reference/Interpreter.h"
#include "attnfuse/Runner/Compare.h"
#include "attnfuse/Runner/Inputs.h"
#include "attnfuse/Runner/Npy.h"
#include "attnfuse/Support/MakeError.h"
#include "attnfuse/Support/OutputFiles.h"
#include "attnfuse/Target/TargetInfo.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::HostTensor;
using ::attnfuse::OutputFiles;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<Device>>
openDevice(const RunOptions &options) {
  if (!options.chip.empty())
    if (auto target = lookupTarget(options.chip); !target)
      return target.takeError();
  auto layout = ::attnfuse::parseMemoryLayout(options.layout);
  if (!layout)
    return makeError("expected layout bhnd, bnhd or strided, got '" +
                     options.layout + "'");
  StringRef name = options.device;
  if (name == "cpu") {
    if (*layout != ::attnfuse::MemoryLayout::BHND)
      return makeError("layout " + options.layout +
                       " is for GPUs: expected --device=cuda, or layout bhnd");
    return makeCpuDevice();
  }
  int ordinal = 0;
  if (!name.consume_front("cuda") ||
      (!name.empty() && (!name.consume_front(":") ||
                         name.getAsInteger(10, ordinal) || ordinal < 0)))
    return makeError("expected device cpu, cuda or cuda:N, got '" +
                     options.device + "'");
  return makeCudaDevice(ordinal, options.chip, options.rotation,
                        options.keySplits, *layout);
}

static llvm::Expected<std::vector<func::FuncOp>>
selectFunctions(ModuleOp module, const RunOptions &options) {
  std::vector<func::FuncOp> all, selected;
  std::vector<StringRef> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      all.push_back(function);
      names.push_back(function.getName());
    }
  for (const std::string &name : options.functions) {
    auto found = llvm::find(names, name);
    if (found == names.end())
      return makeError("unknown function '" + name + "': the module has " +
                       (names.empty() ? "none" : llvm::join(names, ", ")));
    selected.push_back(all[found - names.begin()]);
  }
  if (!selected.empty())
    return selected;
  if (all.empty())
    return makeError("the module has no function with a body");
  return all;
}

/// "NAME=FILE" to (NAME, FILE).
static llvm::Expected<std::map<std::string, std::string>>
parseFiles(ArrayRef<std::string> flags, StringRef flag) {
  std::map<std::string, std::string> files;
  for (StringRef entry : flags) {
    auto [name, file] = entry.split('=');
    if (name.empty() || file.empty())
      return makeError("expected --" + flag + " NAME=FILE, got '" + entry +
                       "'");
    if (!files.emplace(name, file).second)
      return makeError("--" + flag + " gives '" + name + "' twice");
  }
  return files;
}

static llvm::Expected<InputSpec>
readInputs(const RunOptions &options,
           const std::map<std::string, std::string> &files) {
  InputSpec spec;
  spec.seed = options.seed;
  for (const auto &[name, file] : files) {
    ::attnfuse::Result<HostTensor> tensor = ::attnfuse::readNpy(file);
    if (!tensor)
      return makeError(tensor.error().message);
    spec.given.emplace(name, std::move(*tensor));
  }
  return spec;
}

/// Finds the flags that are meant for some of the functions only.
static void findForeignNames(ArrayRef<func::FuncOp> functions,
                             const RunOptions &options, InputSpec &spec) {
  for (func::FuncOp function : functions) {
    llvm::Expected<DimensionClasses> classes =
        DimensionClasses::analyze(function);
    if (!classes) {
      // FunctionRunner::compile reports it.
      llvm::consumeError(classes.takeError());
      continue;
    }
    for (StringRef dims : options.dims)
      for (StringRef key : getDimsKeys(dims))
        if (hasDimension(*classes, key))
          spec.foreignDims.insert(key.str());
    for (const ArgumentRole &role : classes->getArguments())
      if (spec.given.count(role.name))
        spec.foreignArguments.insert(role.name);
  }
}

static llvm::Error declareOutputs(
    const RunOptions &options, const std::map<std::string, std::string> &inputs,
    const std::map<std::string, std::string> &outputs, OutputFiles &files) {
  files.protectInput(options.source);
  for (const auto &[name, file] : inputs)
    files.protectInput(file);
  for (const auto &[name, file] : outputs)
    if (::attnfuse::Status status = files.add(file); !status.ok())
      return makeError(status.error().message);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// One function
//===----------------------------------------------------------------------===//

/// A copy of the module that holds nothing but `function`.
static OwningOpRef<ModuleOp> isolate(ModuleOp module, StringRef function) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (auto other : llvm::make_early_inc_range(copy->getOps<func::FuncOp>()))
    if (other.getName() != function)
      other.erase();
  return copy;
}

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
    os << name << " " << describeSizes(call->sizes) << "on " << device.getName()
       << "\n";
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

  /// "[B=2, N=64] ": the sizes that the type leaves open.
  std::string describeSizes(const DimensionSizes &sizes) const {
    SmallVector<std::string> parts;
    for (auto [index, entry] : llvm::enumerate(classes->getClasses()))
      if (!entry.staticSize && sizes.get(index))
        parts.push_back(entry.names.front() + "=" +
                        std::to_string(*sizes.get(index)));
    return parts.empty() ? "" : "[" + llvm::join(parts, ", ") + "] ";
  }

  static ::attnfuse::ResultTraits getTraits(RoleKind kind) {
    ::attnfuse::ResultTraits traits;
    // An error of a logarithm is relative to what it is the logarithm of.
    traits.minScale = kind == RoleKind::LogSumExp ? 1 : 0;
    traits.infinityMayBeNaN = kind == RoleKind::Output;
    return traits;
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
                  reference->errors[index], getTraits(role.kind));
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
  auto functions = selectFunctions(module, options);
  if (!functions)
    return functions.takeError();
  auto outputs = parseFiles(options.outputs, "output");
  if (!outputs)
    return outputs.takeError();
  std::vector<std::string> dims = options.dims;
  if (dims.empty())
    dims.push_back("");
  if (!outputs->empty() && (functions->size() != 1 || dims.size() != 1))
    return makeError("--output needs one call: expected one --function and at "
                     "most one --dims");
  auto inputFiles = parseFiles(options.inputs, "input");
  if (!inputFiles)
    return inputFiles.takeError();
  OutputFiles outputFiles;
  if (llvm::Error error =
          declareOutputs(options, *inputFiles, *outputs, outputFiles))
    return std::move(error);
  llvm::Expected<InputSpec> inputs = readInputs(options, *inputFiles);
  if (!inputs)
    return inputs.takeError();
  findForeignNames(*functions, options, *inputs);
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
