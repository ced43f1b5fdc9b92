//===- ScheduleSpace.h - The schedules that a kernel may have ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that #attnfuse.schedule can say is thousands of schedules for one kernel.
// They are a graph here: two are neighbors if they differ in one knob. A search
// starts at what the cost model chooses.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SCHEDULESPACE_H
#define ATTNFUSE_KERNELGEN_SCHEDULESPACE_H

#include "attnfuse/KernelGen/ScheduleChoice.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <vector>

namespace mlir::attnfuse {

/// All knobs of a schedule as numbers. Schedules that give the same kernel have
/// the same key.
using ScheduleKey = std::vector<int64_t>;

/// The legal schedules of one attention on one machine, all with the same
/// `key_splits`. Every order is the same in each run.
class ScheduleSpace {
public:
  /// `isSoftmax` tells whether the normalizer is one, without which nothing is
  /// rescaled. An error says why no schedule fits.
  static llvm::Expected<ScheduleSpace> create(const ScheduleProblem &problem,
                                              const TargetInfo &target,
                                              bool isSoftmax,
                                              int64_t keySplits = 0);

  /// What the cost model chooses.
  const KernelTile &getChoice() const { return starts.front(); }
  /// The choice, then what would be chosen of every other kind of block: of
  /// each number of computing warpgroups, and without a pipeline.
  const std::vector<KernelTile> &getStarts() const { return starts; }
  /// Legal schedules that differ from `tile` in one knob, and in a smaller
  /// tile_n where they would not fit otherwise, each once.
  std::vector<KernelTile> getNeighbors(const KernelTile &tile) const;
  /// `a` with what `b` changes of `base`, where `a` does not change it itself,
  /// and with a smaller tile_n if it has to be; nothing if no such schedule is
  /// legal.
  std::optional<KernelTile> combine(const KernelTile &base, const KernelTile &a,
                                    const KernelTile &b) const;
  /// The starts, their neighbors, the neighbors of these and so on, each
  /// schedule once, until there are `limit` of them or no more.
  std::vector<KernelTile> enumerate(size_t limit) const;

  /// Whether the attribute holds the schedule, checkTile passes it and it
  /// compiles in reasonable time.
  bool isLegal(const KernelTile &tile) const;
  ScheduleKey getKey(const KernelTile &tile) const;

private:
  using Visitor = llvm::function_ref<void(const KernelTile &)>;

  ScheduleSpace(const ScheduleProblem &problem, const TargetInfo &target,
                bool isSoftmax)
      : problem(problem), target(target), isSoftmax(isSoftmax) {}
  /// Legal or not.
  void visitPipelined(const KernelTile &tile, Visitor visit) const;
  void visitUnpipelined(const KernelTile &tile, Visitor visit) const;
  /// Takes the largest tile_n that is legal, if any is.
  void shrinkToFit(KernelTile &tile) const;

  ScheduleProblem problem;
  TargetInfo target;
  bool isSoftmax;
  /// Whether the kernels without a pipeline are all slow to compile or spill.
  bool allowsUnpreferred = false;
  std::vector<KernelTile> starts;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_KERNELGEN_SCHEDULESPACE_H
