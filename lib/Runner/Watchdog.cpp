//===- Watchdog.cpp - Ends a process that hangs ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Watchdog.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace mlir::attnfuse;

Watchdog::Watchdog(double seconds, std::string message)
    : thread([this, seconds, message = std::move(message)] {
        std::unique_lock<std::mutex> lock(mutex);
        if (condition.wait_for(lock, std::chrono::duration<double>(seconds),
                               [this] { return isOver; }))
          return;
        std::fputs(message.c_str(), stderr);
        std::fflush(nullptr);
        std::_Exit(1);
      }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  condition.notify_one();
  thread.join();
}
