//===- KernelFixture.h - Tests on the fake driver ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_UNITTESTS_RUNTIME_KERNELFIXTURE_H
#define ATTNFUSE_UNITTESTS_RUNTIME_KERNELFIXTURE_H

#include "FakeCuda.h"
#include "TestManifest.h"
#include "attnfuse/Runtime/Kernel.h"
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace attnfuse {

/// An environment variable for the time of a scope.
struct ScopedVariable {
  ScopedVariable(const char *name, const char *value) : name(name) {
    setenv(name, value, 1);
  }
  ~ScopedVariable() { unsetenv(name); }
  const char *name;
};

/// The fake driver with its log, and a manifest.
class KernelFixture : public ::testing::Test {
protected:
  void SetUp() override {
    handle = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW);
    ASSERT_TRUE(handle) << dlerror();
    log =
        reinterpret_cast<FakeCudaLogFunction *>(dlsym(handle, "fakeCudaLog"))();
    *log = {};
    log->parameterSizes.assign(5, 8);
    Result<Manifest> parsed = parseManifest(kTestManifest);
    ASSERT_TRUE(bool(parsed));
    manifest = *parsed;
  }

  /// All that was created is gone again.
  void TearDown() override {
    kernel.reset();
    EXPECT_EQ(log->retained, 0);
    EXPECT_EQ(log->pushed, 0);
    EXPECT_EQ(log->modules, 0);
    EXPECT_EQ(log->streams, 0);
    EXPECT_EQ(log->events, 0);
    EXPECT_EQ(log->allocations, 0);
    EXPECT_EQ(log->pooled, 0);
    EXPECT_EQ(log->pools, 0);
    dlclose(handle);
  }

  CudaDeviceRef openDevice() {
    auto driver = CudaDriver::load(FAKE_CUDA_LIBRARY);
    EXPECT_TRUE(bool(driver)) << driver.error().message;
    auto device = CudaDevice::open(*driver);
    EXPECT_TRUE(bool(device)) << device.error().message;
    return *device;
  }

  /// Makes `kernel` the manifest's function f.
  void load(const Manifest &described) {
    Result<Kernel> loaded = Kernel::load(openDevice(), described, "f", "ptx");
    ASSERT_TRUE(bool(loaded)) << loaded.error().message;
    kernel = *loaded;
  }
  void load(const std::string &text) {
    Result<Manifest> parsed = parseManifest(text);
    ASSERT_TRUE(bool(parsed)) << parsed.error().message;
    load(*parsed);
  }

  void *handle = nullptr;
  FakeCudaLog *log = nullptr;
  Manifest manifest;
  std::optional<Kernel> kernel;
};

} // namespace attnfuse

#endif // ATTNFUSE_UNITTESTS_RUNTIME_KERNELFIXTURE_H
