//===- Tune.cpp - What attnfuse-run --tune does ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tune.h"
#include "FusionReport.h"
#include "RunSetup.h"
#include "TuneReport.h"
#include "TuneTimer.h"
#include "Work.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::OutputFiles;

/// Schedules that --tune-list prints.
static constexpr size_t kListed = 200;

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

llvm::Error mlir::attnfuse::checkTuneFlags(const RunOptions &options) {
  if (!options.tune) {
    for (auto [flag, isGiven] :
         {std::pair("-o", options.tunedModule.has_value()),
          std::pair("--tune-json", options.tuneJson.has_value()),
          std::pair("--tune-budget", options.tuneBudget.has_value())})
      if (isGiven)
        return makeError(Twine(flag) + " belongs to --tune, which is missing");
    for (auto [flag, isGiven] :
         {std::pair("--time", options.time),
          std::pair("--check", options.check),
          std::pair("--output", !options.outputs.empty())})
      if (options.tuneList && isGiven)
        return makeError(Twine(flag) + " does not go with --tune-list, which "
                                       "runs nothing");
    return llvm::Error::success();
  }
  for (auto [flag, isGiven] : {std::pair("--tune-list", options.tuneList),
                               std::pair("--time", options.time),
                               std::pair("--output", !options.outputs.empty())})
    if (isGiven)
      return makeError(
          Twine(flag) + " does not go with --tune" +
          (options.tuneList ? "" : "; run the tuned module with it"));
  for (auto [flag, file] : {std::pair("-o", options.tunedModule),
                            std::pair("--tune-json", options.tuneJson)})
    if (file == "-" || file == "")
      return makeError(
          Twine("expected a file for ") + flag + ", got '" + *file + "'" +
          (file->empty() ? "" : ": the report is on the standard output"));
  return llvm::Error::success();
}

static llvm::Expected<SearchOptions>
getSearchOptions(const RunOptions &options) {
  SearchOptions search;
  if (!options.tuneBudget)
    return search;
  if (StringRef(*options.tuneBudget).getAsDouble(search.budget) ||
      !std::isfinite(search.budget) || search.budget <= 0)
    return makeError("expected --tune-budget SECONDS above 0, got '" +
                     *options.tuneBudget + "'");
  return search;
}

//===----------------------------------------------------------------------===//
// Functions with the model's choice
//===----------------------------------------------------------------------===//

namespace {
/// A function as it is before kernels are made of it.
struct ScheduledFunction {
  /// Nothing but the function, for one machine, with the model's choice.
  OwningOpRef<ModuleOp> module;
  AttentionOp op;
  /// The schedule that the function came with.
  std::optional<KernelTile> given;
  ScheduleProblem problem;
  TargetInfo target;
  ScheduleSpace space;
};
} // namespace

static llvm::Expected<ScheduledFunction>
scheduleFunction(ModuleOp module, func::FuncOp function,
                 const CompileOptions &options) {
  OwningOpRef<ModuleOp> alone = isolate(module, function.getName());
  std::optional<KernelTile> given;
  alone->walk([&](AttentionOp op) {
    if (ScheduleAttr schedule = op.getScheduleAttr())
      given = getKernelTile(schedule);
    op.removeScheduleAttr();
  });
  CompileOptions upToSchedule = options;
  upToSchedule.emit = EmitLevel::Schedule;
  llvm::Expected<CompiledModule> compiled = compileModule(*alone, upToSchedule);
  if (!compiled)
    return compiled.takeError();
  OwningOpRef<ModuleOp> scheduled =
      parseSourceString<ModuleOp>(compiled->code, module.getContext());
  if (!scheduled)
    return makeError("the function does not survive printing and parsing");
  SmallVector<AttentionOp> ops;
  scheduled->walk([&](AttentionOp op) { ops.push_back(op); });
  if (ops.size() != 1)
    return makeError("expected one attention in function '" +
                     function.getName() + "', got " + Twine(ops.size()) + ": " +
                     describeFusion(*alone));
  FailureOr<ScheduleProblem> problem = getScheduleProblem(ops.front());
  if (failed(problem))
    return makeError("the attention has no kernel");
  llvm::Expected<TargetInfo> target = getTargetOf(*scheduled);
  if (!target)
    return target.takeError();
  // The model's, or what the flag or the given schedule asks for.
  int64_t keySplits = ops.front().getScheduleAttr().getKeySplits();
  if (given && given->keySplits == 0)
    given->keySplits = keySplits;
  llvm::Expected<ScheduleSpace> space = ScheduleSpace::create(
      *problem, *target, ops.front().getNormalizer() == Normalizer::Softmax,
      keySplits);
  if (!space)
    return space.takeError();
  return ScheduledFunction{
      std::move(scheduled), ops.front(), given, *problem, *target, *space};
}

static std::string getFunctionName(AttentionOp op) {
  return op->getParentOfType<func::FuncOp>().getName().str();
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

static TuneReport::Sizes listSizes(const DimensionClasses &classes,
                                   const DimensionSizes &sizes) {
  TuneReport::Sizes list;
  for (auto [index, entry] : llvm::enumerate(classes.getClasses()))
    if (sizes.get(index))
      list.emplace_back(entry.names.front(), *sizes.get(index));
  return list;
}

/// The calls that schedules are timed for, with their sizes and their work in
/// `report`.
static llvm::Expected<std::vector<Call>>
prepareCalls(const DimensionClasses &classes, const RunOptions &options,
             InputSpec inputs, TuneReport &report) {
  std::vector<Call> calls;
  for (const std::string &dims : getCalls(options)) {
    inputs.dims = dims;
    llvm::Expected<Call> call = prepareCall(classes, inputs);
    if (!call)
      return call.takeError();
    report.sizes.push_back(listSizes(classes, call->sizes));
    report.flops.push_back(countWork(classes, *call).flops);
    // Nothing may be launched at all, and every schedule is the best.
    if (report.flops.back() == 0)
      return makeError(describeSizes(classes, call->sizes) +
                       "has no work to time: expected sizes above 0 and a "
                       "query that sees a key");
    calls.push_back(std::move(*call));
  }
  return std::move(calls);
}

static llvm::Expected<TuneReport>
tuneFunction(func::FuncOp function, const ScheduledFunction &scheduled,
             const RunOptions &options, const CudaDevice &device,
             const InputSpec &inputs, SearchOptions search, raw_ostream &os) {
  llvm::Expected<DimensionClasses> classes =
      DimensionClasses::analyze(function);
  if (!classes)
    return classes.takeError();
  TuneReport report{function.getName().str(),
                    device.getName(),
                    scheduled.target.name,
                    scheduled.problem,
                    {},
                    {},
                    {},
                    search.noise,
                    {}};
  llvm::Expected<std::vector<Call>> calls =
      prepareCalls(*classes, options, inputs, report);
  if (!calls)
    return calls.takeError();
  for (const Call &call : *calls)
    os << function.getName() << " " << describeSizes(*classes, call.sizes)
       << "on " << device.getName() << ", for " << report.target << "\n";
  TuneTimer timer(device, scheduled.op, *classes, *calls, options.check);
  if (scheduled.given)
    search.others.push_back(*scheduled.given);
  search.progress = [&](StringRef line) {
    os << "  " << line << "\n";
    os.flush();
  };
  llvm::Expected<SearchResult> result =
      searchSchedules(scheduled.space, timer, search);
  if (!result)
    return result.takeError();
  report.result = std::move(*result);
  report.kernels = timer.getChosenKernels();
  report.numThreads = timer.getNumThreads();
  report.compileSeconds = timer.getCompileSeconds();
  report.checkSeconds = timer.getCheckSeconds();
  return report;
}

/// Gives `function` of `module` the schedule that was found, in the fused form
/// if it wins over the model's choice.
static void applyBest(ModuleOp module, ScheduledFunction &scheduled,
                      const SearchResult &result) {
  auto function =
      module.lookupSymbol<func::FuncOp>(getFunctionName(scheduled.op));
  if (result.best == 0) {
    function.walk([](AttentionOp op) { op.removeScheduleAttr(); });
    return;
  }
  scheduled.op.setScheduleAttr(
      getScheduleAttr(module.getContext(), result.schedules[result.best].tile));
  OpBuilder b(function);
  b.clone(*scheduled.op->getParentOfType<func::FuncOp>());
  function.erase();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Declares the files of the flags as outputs. What cannot be written shows
/// here, before anything is measured.
static llvm::Error declareFiles(const RunOptions &options, OutputFiles &files) {
  std::vector<std::string> paths;
  for (const std::optional<std::string> &file :
       {options.tunedModule, options.tuneJson})
    if (file)
      paths.push_back(*file);
  // One of its own, whose contents are never put in their places.
  OutputFiles probe;
  if (llvm::Error error = declareOutputs(options, paths, probe))
    return error;
  for (const std::string &path : paths)
    if (::attnfuse::Status status = probe.write(path, ""); !status.ok())
      return makeError(status.error().message);
  return declareOutputs(options, paths, files);
}

static llvm::Error writeFiles(ModuleOp tuned, llvm::json::Array reports,
                              const RunOptions &options, OutputFiles &files) {
  if (failed(verify(tuned)))
    return makeError("the tuned module does not verify");
  auto write = [&](const std::optional<std::string> &file,
                   const std::string &text) {
    ::attnfuse::Status status =
        file ? files.write(*file, text) : ::attnfuse::Status();
    return status.ok() ? llvm::Error::success()
                       : makeError(status.error().message);
  };
  std::string text;
  llvm::raw_string_ostream(text) << tuned << "\n";
  if (llvm::Error error = write(options.tunedModule, text))
    return error;
  std::string json = llvm::formatv(
      "{0:2}\n", llvm::json::Value(llvm::json::Object{
                     {"version", 1}, {"functions", std::move(reports)}}));
  if (llvm::Error error = write(options.tuneJson, json))
    return error;
  ::attnfuse::Status status = files.commit();
  return status.ok() ? llvm::Error::success()
                     : makeError(status.error().message);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Does `work` for every function; one's error is no other's.
static RunSummary
forEachFunction(ArrayRef<func::FuncOp> functions, raw_ostream &os,
                raw_ostream &errors,
                llvm::function_ref<llvm::Error(func::FuncOp)> work) {
  RunSummary summary;
  for (func::FuncOp function : functions) {
    llvm::Error error = work(function);
    (error ? summary.numFailed : summary.numPassed) += 1;
    os.flush();
    if (error)
      errors << "attnfuse-run: error: " << function.getName() << ": "
             << llvm::toString(std::move(error)) << "\n";
  }
  return summary;
}

/// Prints the schedules that a search may try, the first ones first.
static llvm::Error listSchedules(ModuleOp module, func::FuncOp function,
                                 const RunOptions &options, raw_ostream &os) {
  auto scheduled = scheduleFunction(module, function,
                                    {options.chip,
                                     EmitLevel::Schedule,
                                     options.rotation,
                                     options.keySplits,
                                     {}});
  if (!scheduled)
    return scheduled.takeError();
  for (const KernelTile &tile : scheduled->space.enumerate(kListed))
    os << function.getName() << " schedule "
       << formatSchedule(module.getContext(), tile) << "\n";
  return llvm::Error::success();
}

/// Tunes the functions, and writes the files if that succeeds for all.
static llvm::Expected<RunSummary>
tuneFunctions(ModuleOp module, ArrayRef<func::FuncOp> functions,
              const RunOptions &options, const SearchOptions &search,
              raw_ostream &os, raw_ostream &errors) {
  OutputFiles files;
  if (llvm::Error error = declareFiles(options, files))
    return std::move(error);
  llvm::Expected<InputSpec> inputs = readInputs(functions, options);
  if (!inputs)
    return inputs.takeError();
  llvm::Expected<std::unique_ptr<CudaDevice>> device = openCudaDevice(options);
  if (!device)
    return device.takeError();

  OwningOpRef<ModuleOp> tuned = module.clone();
  llvm::json::Array reports;
  auto tune = [&](func::FuncOp function) -> llvm::Error {
    auto scheduled =
        scheduleFunction(module, function, (*device)->getOptions());
    if (!scheduled)
      return scheduled.takeError();
    auto report = tuneFunction(function, *scheduled, options, **device, *inputs,
                               search, os);
    if (!report)
      return report.takeError();
    report->print(module.getContext(), os);
    reports.push_back(report->getJson(module.getContext()));
    applyBest(*tuned, *scheduled, report->result);
    return llvm::Error::success();
  };
  RunSummary summary = forEachFunction(functions, os, errors, tune);
  if (summary.numFailed == 0)
    if (llvm::Error error =
            writeFiles(*tuned, std::move(reports), options, files))
      return std::move(error);
  return summary;
}

llvm::Expected<RunSummary> mlir::attnfuse::tuneModule(ModuleOp module,
                                                      const RunOptions &options,
                                                      raw_ostream &os,
                                                      raw_ostream &errors) {
  llvm::Expected<SearchOptions> search = getSearchOptions(options);
  if (!search)
    return search.takeError();
  auto functions = selectFunctions(module, options);
  if (!functions)
    return functions.takeError();
  if (options.tuneList)
    return forEachFunction(*functions, os, errors, [&](func::FuncOp function) {
      return listSchedules(module, function, options, os);
    });
  return tuneFunctions(module, *functions, options, *search, os, errors);
}
