//===- TuneReport.h - What a search has measured ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_TUNEREPORT_H
#define ATTNFUSE_LIB_RUNNER_TUNEREPORT_H

#include "attnfuse/Runner/Inputs.h"
#include "attnfuse/Tune/ScheduleSearch.h"
#include "llvm/Support/JSON.h"

namespace mlir::attnfuse {

/// A search of one function, and what it was for.
struct TuneReport {
  /// By the names of dimensions.
  using Sizes = std::vector<std::pair<std::string, int64_t>>;

  std::string function, device, target;
  ScheduleProblem problem;
  /// Of each call: its sizes, its work, and the kernel that the model's choice
  /// ran.
  std::vector<Sizes> sizes;
  std::vector<double> flops;
  std::vector<std::string> kernels;
  double noise;
  SearchResult result;
  /// Of the search: by how many threads, and how long.
  unsigned numThreads = 0;
  double compileSeconds = 0, checkSeconds = 0;

  /// A line for each schedule, the quickest first.
  void print(MLIRContext *context, raw_ostream &os) const;
  llvm::json::Value getJson(MLIRContext *context) const;

private:
  std::string describeChoice() const;
};

/// "<tile_m = 64, ...>": the attribute's text behind its name.
std::string formatSchedule(MLIRContext *context, const KernelTile &tile);
/// One line, shorter than the attribute: "128x64 warps=4", and what differs
/// from the plainest schedule.
std::string abbreviate(const KernelTile &tile);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_TUNEREPORT_H
