//===- TuneTimer.cpp - Compiles and times schedules on a GPU --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuneTimer.h"
#include "TuneReport.h"
#include "Watchdog.h"
#include "attnfuse/Conversion/KernelNames.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::HostTensor;

namespace {
/// Seconds of device time that a sample takes about, and its runs at most.
constexpr double kSampleSeconds = 3e-3;
constexpr int kMaxRuns = 50;
/// Samples before the length of a sample is decided.
constexpr int kWarmUps = 3;
/// Seconds after which a kernel is taken to run for ever.
constexpr int kHangSeconds = 60;
} // namespace

TuneTimer::TuneTimer(const CudaDevice &device, AttentionOp op,
                     const DimensionClasses &classes, ArrayRef<Call> calls,
                     bool usesReference)
    : device(device), op(op),
      name(op->getParentOfType<func::FuncOp>().getName()), classes(classes),
      hostCalls(calls), usesReference(usesReference),
      numThreads(llvm::hardware_concurrency().compute_thread_count()),
      start(std::chrono::steady_clock::now()) {}

double TuneTimer::getTime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

std::string TuneTimer::printWith(const KernelTile &tile) {
  ScheduleAttr chosen = op.getScheduleAttr();
  op.setScheduleAttr(getScheduleAttr(op.getContext(), tile));
  std::string text;
  llvm::raw_string_ostream os(text);
  op->getParentOfType<ModuleOp>().print(os);
  op.setScheduleAttr(chosen);
  return text;
}

/// In a context of its own, so that threads do not meet.
static llvm::Expected<std::unique_ptr<CudaFunction>>
compile(const CudaDevice &device, StringRef text, StringRef name) {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return makeError("the function does not survive printing and parsing");
  return device.compileFunction(*module, name);
}

llvm::Error TuneTimer::createCalls(CudaFunction &function) {
  for (const Call &call : hostCalls) {
    auto tensors = function.createCall(call.arguments, call.results);
    if (!tensors)
      return tensors.takeError();
    auto checker = ResultChecker::create(classes, call, usesReference);
    if (!checker)
      return checker.takeError();
    calls.push_back(
        {std::move(*tensors), std::move(*checker), call.results.size()});
  }
  auto created = function.createFlush();
  if (!created)
    return created.takeError();
  flush = std::move(*created);
  return llvm::Error::success();
}

llvm::Expected<std::string> TuneTimer::checkFunction(CudaFunction &function,
                                                     const KernelTile &tile) {
  bool isChoice = candidates.empty();
  for (DeviceCall &call : calls) {
    llvm::Expected<std::string> kernel = function.getKernelName(call.tensors);
    if (!kernel)
      return llvm::toString(kernel.takeError());
    if (isChoice)
      chosenKernels.push_back(*kernel);
    // The schedule of such a version is not that of the op.
    if (isChoice && StringRef(*kernel).starts_with((name + kFusedSuffix).str()))
      return "at these sizes k is rotated in the kernel, by a version with a "
             "schedule of its own; tune one way to rotate it with "
             "--rotation=fused or --rotation=split";
    StringRef version = *kernel;
    bool splits = version.consume_back(kSplitKeysSuffix);
    if (!isChoice && (version != name || (splits && tile.keySplits == 0)))
      return "at these sizes another version runs, '" + *kernel + "'" +
             (splits ? "; tune one number of parts with --key-splits" : "");
    std::vector<HostTensor> results(call.numResults);
    llvm::Error error = [&] {
      Watchdog watchdog(kHangSeconds, getHangMessage(tile));
      return function.runCall(call.tensors, results, usesReference ? 3 : 1);
    }();
    if (error) {
      std::string failure = llvm::toString(std::move(error));
      if (isChoice)
        return failure;
      if (llvm::Error lost = checkDevice(tile, failure))
        return std::move(lost);
      return failure;
    }
    if (std::string problem = call.checker.check(results); !problem.empty())
      return problem;
  }
  return "";
}

std::string TuneTimer::getHangMessage(const KernelTile &tile) const {
  return "attnfuse-run: error: the kernel of schedule " +
         formatSchedule(op->getContext(), tile) + " still runs after " +
         std::to_string(kHangSeconds) +
         " s; it cannot be stopped, so the process ends here\n";
}

llvm::Error TuneTimer::checkDevice(const KernelTile &last, StringRef failure) {
  DeviceCall &call = calls.front();
  std::vector<HostTensor> results(call.numResults);
  llvm::Error error = candidates.front().function->runCall(
      call.tensors, results, /*numRuns=*/1);
  if (!error)
    return llvm::Error::success();
  llvm::consumeError(std::move(error));
  return makeError("the device fails since the kernel of schedule " +
                   formatSchedule(op.getContext(), last) + ": " + failure);
}

llvm::Expected<std::vector<PreparedSchedule>>
TuneTimer::prepare(ArrayRef<KernelTile> schedules,
                   llvm::function_ref<bool()> mayBegin) {
  using State = PreparedSchedule::State;
  double begin = getTime();
  std::vector<std::optional<Compiled>> compiled(schedules.size());
  {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(numThreads));
    for (auto [tile, result] : llvm::zip_equal(schedules, compiled))
      pool.async([this, text = printWith(tile), mayBegin, &result = result] {
        if (mayBegin())
          result.emplace(compile(device, text, name));
      });
    pool.wait();
  }
  double compiledAt = getTime();
  compileSeconds += compiledAt - begin;

  std::vector<PreparedSchedule> prepared;
  llvm::Error lost = llvm::Error::success();
  for (auto [tile, result] : llvm::zip_equal(schedules, compiled)) {
    PreparedSchedule &state = prepared.emplace_back();
    std::unique_ptr<CudaFunction> function;
    if (result && !*result) {
      state = {State::Failed, llvm::toString(result->takeError())};
    } else if (result && !lost && mayBegin()) {
      function = std::move(**result);
      if (candidates.empty())
        if (llvm::Error error = createCalls(*function))
          return std::move(error);
      llvm::Expected<std::string> problem = checkFunction(*function, tile);
      if (!problem)
        lost = problem.takeError();
      else
        state = {problem->empty() ? State::Ready : State::Failed, *problem};
    }
    if (state.state != State::Ready)
      function = nullptr;
    candidates.push_back({tile, std::move(function)});
  }
  checkSeconds += getTime() - compiledAt;
  if (lost)
    return std::move(lost);
  return std::move(prepared);
}

llvm::Expected<double> TuneTimer::sample(size_t schedule, size_t call) {
  DeviceCall &on = calls[call];
  const Candidate &candidate = candidates[schedule];
  Watchdog watchdog(kHangSeconds, getHangMessage(candidate.tile));
  auto take = [&](int numRuns) -> llvm::Expected<double> {
    auto seconds = candidate.function->sample(on.tensors, numRuns, flush);
    if (!seconds)
      return makeError("timing schedule " +
                       formatSchedule(op.getContext(), candidate.tile) + ": " +
                       llvm::toString(seconds.takeError()));
    return seconds;
  };
  // The model's choice comes first, and decides for all.
  if (on.numRuns == 0) {
    double seconds = 0;
    for (int warmUp = 0; warmUp < kWarmUps; ++warmUp) {
      llvm::Expected<double> time = take(1);
      if (!time)
        return time;
      seconds = *time;
    }
    on.numRuns =
        int(std::clamp(kSampleSeconds / seconds, 1.0, double(kMaxRuns)));
  }
  return take(on.numRuns);
}
