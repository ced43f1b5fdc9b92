//===- TuneTimer.h - Compiles and times schedules on a GPU ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_TUNETIMER_H
#define ATTNFUSE_LIB_RUNNER_TUNETIMER_H

#include "CudaDevice.h"
#include "ResultChecker.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Tune/ScheduleSearch.h"
#include <chrono>

namespace mlir::attnfuse {

/// The kernels of one function, on the same tensors. All schedules are those of
/// `op`, the only attention of the only function of its module, which has the
/// model's choice and a plan for its rotations.
class TuneTimer : public ScheduleTimer {
public:
  /// `classes` and `calls` must outlive this. With `usesReference` results are
  /// compared with the fp64 reference, else with those of the first schedule.
  TuneTimer(const CudaDevice &device, AttentionOp op,
            const DimensionClasses &classes, ArrayRef<Call> calls,
            bool usesReference);

  size_t getNumCalls() const override { return calls.size(); }
  llvm::Expected<std::vector<PreparedSchedule>>
  prepare(ArrayRef<KernelTile> schedules,
          llvm::function_ref<bool()> mayBegin) override;
  llvm::Expected<double> sample(size_t schedule, size_t call) override;
  double getTime() override;

  /// The kernel that each call launches where the model chooses.
  ArrayRef<std::string> getChosenKernels() const { return chosenKernels; }
  unsigned getNumThreads() const { return numThreads; }
  double getCompileSeconds() const { return compileSeconds; }
  double getCheckSeconds() const { return checkSeconds; }

private:
  struct DeviceCall {
    CudaCall tensors;
    ResultChecker checker;
    /// How many tensors a run gives.
    size_t numResults;
    /// Of one sample; 0 until the first has been taken.
    int numRuns = 0;
  };
  using Compiled = llvm::Expected<std::unique_ptr<CudaFunction>>;

  /// The module with another schedule, for a context of a thread.
  std::string printWith(const KernelTile &tile);
  /// Puts the calls' tensors on the device, for the model's choice.
  llvm::Error createCalls(CudaFunction &function);
  /// Why the function cannot be timed; empty if it can.
  llvm::Expected<std::string> checkFunction(CudaFunction &function,
                                            const KernelTile &tile);
  std::string getHangMessage(const KernelTile &tile) const;
  /// An error if the device does nothing more.
  llvm::Error checkDevice(const KernelTile &last, StringRef failure);

  const CudaDevice &device;
  AttentionOp op;
  StringRef name;
  const DimensionClasses &classes;
  ArrayRef<Call> hostCalls;
  bool usesReference;
  unsigned numThreads;
  std::chrono::steady_clock::time_point start;
  std::vector<DeviceCall> calls;
  ::attnfuse::DeviceBuffer flush;
  /// By schedule; the function is null where it is not ready.
  struct Candidate {
    KernelTile tile;
    std::unique_ptr<CudaFunction> function;
  };
  std::vector<Candidate> candidates;
  std::vector<std::string> chosenKernels;
  double compileSeconds = 0, checkSeconds = 0;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_TUNETIMER_H
