//===- Runner.h - What attnfuse-run does ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNNER_RUNNER_H
#define ATTNFUSE_RUNNER_RUNNER_H

#include "attnfuse/Dialect/AttnFuse/Transforms/RotationChoice.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::attnfuse {

/// The flags of the tool; texts are not parsed further.
struct RunOptions {
  /// The file that the module is from, which no output may overwrite.
  std::string source;
  /// "cpu", "cuda" or "cuda:N".
  std::string device = "cpu";
  /// The machine to compile for; the device's own if empty.
  std::string chip;
  /// Where q and k are rotated.
  RotationChoice rotation = RotationChoice::Auto;
  /// Blocks that share the keys of a query tile; see CompileOptions.
  int64_t keySplits = 0;
  /// How a GPU's tensors are stored: "bhnd", "bnhd" or "strided".
  std::string layout = "bhnd";
  /// Functions to run; all that have a body if empty.
  std::vector<std::string> functions;
  /// "NAME=FILE".
  std::vector<std::string> inputs, outputs;
  std::optional<uint64_t> seed;
  /// "B=2,N=64": each is one call of each function.
  std::vector<std::string> dims;
  bool check = false, time = false;

  /// Whether to search the quickest schedule of each function instead.
  bool tune = false;
  /// Seconds for each function, as the flag has it; 120 if absent.
  std::optional<std::string> tuneBudget;
  /// Files for the module with the schedules that were found, and for all that
  /// was measured, where they are asked for.
  std::optional<std::string> tunedModule, tuneJson;
  /// Whether to print the schedules near the model's choice, and measure none.
  bool tuneList = false;
};

struct RunSummary {
  int numPassed = 0, numFailed = 0;
};

/// Runs, or tunes, the functions of `module` and reports to `os`. An error that
/// only one call has (its sizes, its execution) is reported to `errors` under
/// the name of the tool and counted as failed; an error in the options is
/// returned.
llvm::Expected<RunSummary> runModule(ModuleOp module, const RunOptions &options,
                                     raw_ostream &os, raw_ostream &errors);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_RUNNER_RUNNER_H
