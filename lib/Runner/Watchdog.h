//===- Watchdog.h - Ends a process that hangs -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_WATCHDOG_H
#define ATTNFUSE_LIB_RUNNER_WATCHDOG_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace mlir::attnfuse {

/// If it lives for longer than `seconds`, prints `message` to the standard
/// error and ends the process with status 1, without its destructors: what
/// waits for a device cannot be woken.
class Watchdog {
public:
  Watchdog(double seconds, std::string message);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

private:
  std::mutex mutex;
  std::condition_variable condition;
  bool isOver = false;
  /// Last: it uses the others.
  std::thread thread;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_WATCHDOG_H
