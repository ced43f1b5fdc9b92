//===- CpuDevice.cpp - Runs functions on the host -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "attnfuse/Execution/CpuExecutable.h"
#include <chrono>

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::HostTensor;

bool mlir::attnfuse::isSame(const HostTensor &a, const HostTensor &b) {
  return a.getNumBytes() == b.getNumBytes() &&
         (a.getNumBytes() == 0 ||
          std::memcmp(a.data(), b.data(), a.getNumBytes()) == 0);
}

namespace {
class CpuFunction : public DeviceFunction {
public:
  explicit CpuFunction(std::unique_ptr<CpuExecutable> executable)
      : executable(std::move(executable)) {}

  llvm::Error run(ArrayRef<HostTensor> arguments,
                  MutableArrayRef<HostTensor> results, int numRuns) override {
    std::vector<HostTensor> before(arguments.begin(), arguments.end());
    std::vector<HostTensor> poisoned(results.begin(), results.end());
    if (llvm::Error error = executable->run(arguments, results))
      return error;
    for (int run = 1; run < numRuns; ++run) {
      std::vector<HostTensor> again = poisoned;
      if (llvm::Error error = executable->run(arguments, again))
        return error;
      for (auto [first, other] : llvm::zip_equal(results, again))
        if (!isSame(first, other))
          return llvm::createStringError("two runs gave different results");
    }
    for (auto [argument, copy] : llvm::zip_equal(arguments, before))
      if (!isSame(argument, copy))
        return llvm::createStringError("the function overwrote an argument");
    return llvm::Error::success();
  }

  llvm::Expected<Timing> time(ArrayRef<HostTensor> arguments,
                              ArrayRef<HostTensor> results) override {
    using Clock = std::chrono::steady_clock;
    std::vector<HostTensor> scratch(results.begin(), results.end());
    std::vector<double> seconds;
    double total = 0;
    while (seconds.size() < 3 || (total < 1 && seconds.size() < 100)) {
      Clock::time_point start = Clock::now();
      if (llvm::Error error = executable->run(arguments, scratch))
        return std::move(error);
      seconds.push_back(
          std::chrono::duration<double>(Clock::now() - start).count());
      total += seconds.back();
    }
    return Timing{std::move(seconds), std::nullopt};
  }

private:
  std::unique_ptr<CpuExecutable> executable;
};

class CpuDevice : public Device {
public:
  std::string getName() const override { return "cpu"; }

  llvm::Expected<std::unique_ptr<DeviceFunction>>
  compile(ModuleOp module, StringRef function) override {
    auto executable = CpuExecutable::compile(module, function);
    if (!executable)
      return executable.takeError();
    return std::make_unique<CpuFunction>(std::move(*executable));
  }
};
} // namespace

std::unique_ptr<Device> mlir::attnfuse::makeCpuDevice() {
  return std::make_unique<CpuDevice>();
}
