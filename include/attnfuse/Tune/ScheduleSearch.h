//===- ScheduleSearch.h - The quickest schedule, measured -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which schedules are compiled and timed, how often, and which of them wins.
// Compiling and timing are behind an interface, so nothing here needs a device.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TUNE_SCHEDULESEARCH_H
#define ATTNFUSE_TUNE_SCHEDULESEARCH_H

#include "attnfuse/KernelGen/ScheduleSpace.h"
#include <functional>
#include <string>

namespace mlir::attnfuse {

/// What became of a schedule that was to be made ready for timing.
struct PreparedSchedule {
  enum class State {
    Ready,
    /// It does not compile, or its results are wrong.
    Failed,
    /// It was not begun: the time was up.
    LeftOut,
  };
  State state = State::LeftOut;
  /// Why it failed.
  std::string reason;
};

/// Compiles schedules of one function and times its calls.
class ScheduleTimer {
public:
  virtual ~ScheduleTimer() = default;

  /// Calls of different sizes, at least one.
  virtual size_t getNumCalls() const = 0;
  /// Compiles and checks schedules, in any order or at once; it asks before
  /// each whether it may still begin. They are numbered on from those of the
  /// calls before. An error ends the search.
  virtual llvm::Expected<std::vector<PreparedSchedule>>
  prepare(llvm::ArrayRef<KernelTile> schedules,
          llvm::function_ref<bool()> mayBegin) = 0;
  /// Seconds of one run of a schedule that is ready, the mean of a few.
  virtual llvm::Expected<double> sample(size_t schedule, size_t call) = 0;
  /// Seconds since some moment.
  virtual double getTime() = 0;
};

struct SearchOptions {
  /// Seconds after which nothing is begun but the comparison of the best.
  double budget = 120;
  /// How much quicker than the model's choice a schedule must be, as a part of
  /// the time.
  double noise = 0.01;
  size_t maxSchedules = 200;
  /// Schedules to try besides those of the space.
  std::vector<KernelTile> others;
  /// Gets a line for readers after each wave of schedules, if it is set.
  std::function<void(llvm::StringRef)> progress;
};

struct TriedSchedule {
  KernelTile tile;
  /// One that is ready has times; the others have none.
  PreparedSchedule state;
  /// Median seconds of each call.
  std::vector<double> seconds;
  /// Time over that of the model's choice in the same round, the median of the
  /// rounds. Of several calls the geometric mean counts.
  double ratio = 0;
  /// Each call was timed once a round.
  size_t numRounds = 0;
  /// The same, of the rounds in which the best were compared at the end.
  std::optional<double> finalRatio = std::nullopt;
};

struct SearchResult {
  /// The model's choice, then the others in the order in which they were tried.
  std::vector<TriedSchedule> schedules;
  /// 0 is the model's choice.
  size_t best = 0;
  double seconds = 0;

  size_t count(PreparedSchedule::State state) const;
};

/// Climbs from the model's choice: tries the starts of the space and the
/// neighbors of the choice, then the neighbors of the best, until these are no
/// better. Contestants are timed in turns, round by round, so that a clock that
/// drifts moves them all. At the end the best are timed anew beside the model's
/// choice, which stays unless one of them is quicker by more than the noise.
llvm::Expected<SearchResult> searchSchedules(const ScheduleSpace &space,
                                             ScheduleTimer &timer,
                                             const SearchOptions &options);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_TUNE_SCHEDULESEARCH_H
