//===- TuneReport.cpp - What a search has measured ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuneReport.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::attnfuse;
using State = PreparedSchedule::State;

std::string mlir::attnfuse::formatSchedule(MLIRContext *context,
                                           const KernelTile &tile) {
  std::string text;
  llvm::raw_string_ostream os(text);
  getScheduleAttr(context, tile).printStripped(os);
  return StringRef(text).drop_until([](char c) { return c == '<'; }).str();
}

std::string mlir::attnfuse::abbreviate(const KernelTile &tile) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << tile.tileM << "x" << tile.tileN << " warps=" << tile.warps;
  if (tile.qInRegisters)
    os << " q_in_registers";
  if (tile.keySplits != 0)
    os << " key_splits=" << tile.keySplits;
  if (tile.packedHeads != 1)
    os << " packed_heads=" << tile.packedHeads;
  if (tile.stages != 1)
    os << " stages=" << tile.stages;
  const std::optional<KernelPipeline> &pipeline = tile.pipeline;
  if (!pipeline)
    return text;
  os << " pipeline stages=" << pipeline->stages << " "
     << stringifyRowOrder(pipeline->rowOrder) << "/"
     << stringifyProductWait(pipeline->productWait)
     << " sums=" << pipeline->partialSums
     << " maxima=" << pipeline->partialMaxima;
  if (pipeline->pingPong)
    os << " ping_pong";
  if (pipeline->skipRescale)
    os << " skip_rescale";
  return text;
}

std::string TuneReport::describeChoice() const {
  // A smaller tile for few rows is part of the choice.
  std::string text = "  (the model's choice";
  for (const std::string &kernel : kernels)
    if (kernel != function)
      return text + ", here as " + kernel + ")";
  return text + ")";
}

void TuneReport::print(MLIRContext *context, raw_ostream &os) const {
  std::vector<const TriedSchedule *> timed;
  for (const TriedSchedule &schedule : result.schedules)
    if (schedule.state.state == State::Ready)
      timed.push_back(&schedule);
  llvm::sort(timed, [](auto *a, auto *b) {
    return std::pair(a->ratio, a) < std::pair(b->ratio, b);
  });
  const TriedSchedule *choice = &result.schedules.front();
  const TriedSchedule *best = &result.schedules[result.best];

  os << llvm::format("  %zu schedules in %.0f s: %zu timed, %zu failed, %zu "
                     "left out for lack of time\n",
                     result.schedules.size(), result.seconds, timed.size(),
                     result.count(State::Failed), result.count(State::LeftOut));
  os << llvm::format("  compiled in %.0f s by %u threads, checked in %.0f s\n",
                     compileSeconds, numThreads, checkSeconds);
  os << "  ratio  again";
  for (size_t call = 0; call < sizes.size(); ++call)
    os << "        us";
  os << "  schedule\n";
  for (const TriedSchedule *schedule : timed) {
    os << llvm::format("  %5.3f", schedule->ratio);
    if (schedule->finalRatio)
      os << llvm::format("  %5.3f", *schedule->finalRatio);
    else
      os << "       ";
    for (double seconds : schedule->seconds)
      os << llvm::format("%10.4g", seconds * 1e6);
    os << "  " << abbreviate(schedule->tile)
       << (schedule == choice ? describeChoice() : "") << "\n";
  }
  for (const TriedSchedule &schedule : result.schedules)
    if (schedule.state.state == State::Failed)
      os << "  failed: " << abbreviate(schedule.tile) << ": "
         << StringRef(schedule.state.reason).split('\n').first << "\n";
  if (best == choice)
    os << llvm::format("  the model's choice stays: nothing is quicker by more "
                       "than %.2g %%\n",
                       noise * 100);
  else
    os << llvm::format("  best: %.3f of the time of the model's choice: ",
                       *best->finalRatio)
       << "schedule " << formatSchedule(context, best->tile) << "\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::json::Object getJson(const ScheduleProblem &problem) {
  llvm::json::Object object{
      {"head_dim", problem.dims.qk},
      {"value_head_dim", problem.dims.v},
      {"score_operands", problem.numScoreOperands},
      {"staged_per_key", problem.staging.perKey},
      {"staged_per_query_and_key", problem.staging.perQueryAndKey},
      {"reads_elements", problem.readsElements},
      {"has_band", problem.hasBand},
      {"rotates_keys", problem.rotatesKeys},
      {"allows_tensor_maps", problem.allowsTensorMaps},
  };
  for (auto [name, value] : {std::pair("queries", problem.numQueries),
                             std::pair("keys", problem.numKeys),
                             std::pair("window", problem.windowWidth),
                             std::pair("query_block", problem.queryBlock),
                             std::pair("key_block", problem.keyBlock)})
    if (value)
      object[name] = *value;
  return object;
}

/// With the names that the attribute has.
static llvm::json::Object getJson(const KernelTile &tile) {
  llvm::json::Object object{
      {"tile_m", tile.tileM},         {"tile_n", tile.tileN},
      {"warps", tile.warps},          {"q_in_registers", tile.qInRegisters},
      {"key_splits", tile.keySplits}, {"packed_heads", tile.packedHeads}};
  if (const std::optional<KernelPipeline> &pipeline = tile.pipeline) {
    // Bindings, so that a new knob does not compile until it is here.
    const auto &[stages, pingPong, rowOrder, partialSums, partialMaxima,
                 skipRescale, productWait] = *pipeline;
    object["pipeline"] =
        llvm::json::Object{{"stages", stages},
                           {"ping_pong", pingPong},
                           {"row_order", stringifyRowOrder(rowOrder)},
                           {"partial_sums", partialSums},
                           {"partial_maxima", partialMaxima},
                           {"skip_rescale", skipRescale},
                           {"product_wait", stringifyProductWait(productWait)}};
  } else {
    object["stages"] = tile.stages;
  }
  return object;
}

static llvm::json::Object getJson(const TriedSchedule &tried,
                                  MLIRContext *context) {
  llvm::json::Object object{
      {"schedule", getJson(tried.tile)},
      {"attribute",
       "#attnfuse.schedule" + formatSchedule(context, tried.tile)}};
  switch (tried.state.state) {
  case State::Ready:
    object["state"] = "timed";
    object["seconds"] = llvm::json::Array(tried.seconds);
    object["ratio"] = tried.ratio;
    object["rounds"] = int64_t(tried.numRounds);
    if (tried.finalRatio)
      object["final_ratio"] = *tried.finalRatio;
    break;
  case State::Failed:
    object["state"] = "failed";
    object["reason"] = tried.state.reason;
    break;
  case State::LeftOut:
    object["state"] = "left_out";
    break;
  }
  return object;
}

llvm::json::Value TuneReport::getJson(MLIRContext *context) const {
  llvm::json::Array calls, schedules;
  for (size_t call = 0; call < sizes.size(); ++call) {
    llvm::json::Object byName;
    for (const auto &[name, size] : sizes[call])
      byName[name] = size;
    calls.push_back(llvm::json::Object{{"sizes", std::move(byName)},
                                       {"flops", flops[call]},
                                       {"kernel_of_choice", kernels[call]}});
  }
  for (const TriedSchedule &tried : result.schedules)
    schedules.push_back(::getJson(tried, context));
  return llvm::json::Object{
      {"function", function},
      {"device", device},
      {"target", target},
      {"problem", ::getJson(problem)},
      {"calls", std::move(calls)},
      // Into the schedules, of which the first is the model's choice.
      {"best", int64_t(result.best)},
      {"noise", noise},
      {"seconds", result.seconds},
      {"threads", int64_t(numThreads)},
      {"compile_seconds", compileSeconds},
      {"check_seconds", checkSeconds},
      {"schedules", std::move(schedules)},
  };
}
