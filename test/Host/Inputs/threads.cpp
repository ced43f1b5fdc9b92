//===- threads.cpp - Launches from many threads ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// threads PTX MANIFEST FUNCTION: the first launches of an image race with one
// another, some of them fail, and the handler changes meanwhile.
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Host.h"
#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

static std::string readFile(const char *path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

static std::atomic<int> numErrors;
static void countError(const char *, void *) { ++numErrors; }

int main(int argc, char **argv) {
  if (argc != 4)
    return 1;
  std::string code = readFile(argv[1]), manifest = readFile(argv[2]);
  AttnfuseHostImage image = {code.c_str(), int64_t(code.size()),
                             manifest.c_str(), int64_t(manifest.size()),
                             nullptr};
  attnfuseHostSetErrorHandler(countError, nullptr);
  constexpr int kThreads = 8, kLaunches = 50;
  auto run = [&](int thread) {
    for (int i = 0; i < kLaunches; ++i) {
      AttnfuseValue value = {};
      value.data = reinterpret_cast<void *>(0x100000);
      value.type = ATTNFUSE_F16;
      value.rank = 4;
      int64_t sizes[] = {1, 12, 16 + thread, 64};
      int64_t stride = 1;
      for (int dim = 3; dim >= 0; --dim) {
        value.sizes[dim] = sizes[dim];
        value.strides[dim] = stride;
        stride *= sizes[dim];
      }
      AttnfuseValue arguments[] = {value, value, value};
      AttnfuseValue result = value;
      result.data = reinterpret_cast<void *>(0x800000);
      // Every tenth launch has a result of another length.
      if (i % 10 == 0)
        ++result.sizes[2];
      if (i == kLaunches / 2)
        attnfuseHostSetErrorHandler(countError, &arguments);
      attnfuseHostLaunch(&image, argv[3], 0, arguments, 3, &result, 1);
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back(run, thread);
  for (std::thread &thread : threads)
    thread.join();
  std::printf("%d launches, %d errors\n", kThreads * kLaunches, int(numErrors));
}
