//===- Tune.h - What attnfuse-run --tune does -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_TUNE_H
#define ATTNFUSE_LIB_RUNNER_TUNE_H

#include "attnfuse/Runner/Runner.h"

namespace mlir::attnfuse {

/// An error if flags of the search are given without it, or it goes with flags
/// of runs.
llvm::Error checkTuneFlags(const RunOptions &options);

/// Searches the quickest schedule of each function. Functions for which that
/// fails are reported to `errors` and counted as failed; then no file is
/// written.
llvm::Expected<RunSummary> tuneModule(ModuleOp module,
                                      const RunOptions &options,
                                      raw_ostream &os, raw_ostream &errors);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_TUNE_H
