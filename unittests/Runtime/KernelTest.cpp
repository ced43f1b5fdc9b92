//===- KernelTest.cpp - Driver objects and launches on a fake driver ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelFixture.h"

using namespace attnfuse;

using KernelTest = KernelFixture;

TEST_F(KernelTest, AMissingLibraryIsNamed) {
  std::string message =
      CudaDriver::load("libno-such-cuda.so.1").error().message;
  EXPECT_EQ(message.find(
                "cannot load the CUDA driver library libno-such-cuda.so.1 ("),
            0u)
      << message;
  EXPECT_NE(message.find("; install the NVIDIA driver, or use the CPU"),
            std::string::npos)
      << message;
}

TEST_F(KernelTest, ALibraryWithoutTheFunctionsIsRefused) {
  EXPECT_EQ(CudaDriver::load("libm.so.6").error().message,
            "the CUDA driver library libm.so.6 has no function cuGetErrorName; "
            "install a driver of version 525 (CUDA 12.0) or newer");
}

TEST_F(KernelTest, NoDevice) {
  {
    ScopedVariable init("FAKE_CUDA_INIT", "100");
    EXPECT_EQ(CudaDriver::load(FAKE_CUDA_LIBRARY).error().message,
              "no usable NVIDIA GPU: cuInit failed: CUDA_ERROR_NO_DEVICE (no "
              "CUDA-capable device is detected); check nvidia-smi, or use the "
              "CPU");
  }
  ScopedVariable count("FAKE_CUDA_COUNT", "0");
  auto driver = CudaDriver::load(FAKE_CUDA_LIBRARY);
  ASSERT_TRUE(bool(driver));
  EXPECT_EQ(CudaDevice::open(*driver).error().message,
            "no NVIDIA GPU is visible; check CUDA_VISIBLE_DEVICES and "
            "nvidia-smi, or use the CPU");
}

TEST_F(KernelTest, UnknownDevice) {
  ScopedVariable count("FAKE_CUDA_COUNT", "2");
  auto driver = CudaDriver::load(FAKE_CUDA_LIBRARY);
  ASSERT_TRUE(bool(driver));
  EXPECT_EQ(CudaDevice::open(*driver, 2).error().message,
            "no CUDA device 2; expected 0 to 1");
  EXPECT_EQ(CudaDevice::open(*driver, -1).error().message,
            "no CUDA device -1; expected 0 to 1");
}

TEST_F(KernelTest, Device) {
  CudaDeviceRef device = openDevice();
  EXPECT_EQ(device->getName(), "Fake GPU");
  EXPECT_EQ(device->getCapability(), 86);
  EXPECT_EQ(device->getMaxSharedPerBlock(), 99 * 1024);
  EXPECT_EQ(device->getNumMultiprocessors(), 13);
}

TEST_F(KernelTest, Buffers) {
  CudaDeviceRef device = openDevice();
  Result<DeviceBuffer> buffer = DeviceBuffer::allocate(device, 8);
  ASSERT_TRUE(bool(buffer));
  ASSERT_TRUE(buffer->fill(0xff).ok());
  ASSERT_TRUE(buffer->copyFromHost("abc", 3, 2).ok());
  char read[8];
  ASSERT_TRUE(buffer->copyToHost(read, 8).ok());
  EXPECT_EQ(std::string(read, 8), "\xff\xff"
                                  "abc\xff\xff\xff");
  EXPECT_EQ(buffer->copyToHost(read, 4, 5).error().message,
            "expected a range of a buffer of 8 bytes, got 4 bytes at 5");
  DeviceBuffer moved = std::move(*buffer);
  EXPECT_EQ(moved.size(), 8u);
  Result<DeviceBuffer> empty = DeviceBuffer::allocate(device, 0);
  ASSERT_TRUE(bool(empty));
  EXPECT_TRUE(empty->fill(1).ok());
  EXPECT_EQ(DeviceBuffer::allocate(device, size_t(1) << 40).error().message,
            "allocating 1099511627776 bytes of device memory failed: "
            "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

TEST_F(KernelTest, StreamsAndEvents) {
  CudaDeviceRef device = openDevice();
  Result<CudaStream> stream = CudaStream::create(device);
  ASSERT_TRUE(bool(stream));
  Result<CudaEvent> start = CudaEvent::create(device);
  Result<CudaEvent> end = CudaEvent::create(device);
  ASSERT_TRUE(bool(start) && bool(end));
  EXPECT_TRUE(start->record(stream->get()).ok());
  EXPECT_TRUE(end->record(stream->get()).ok());
  EXPECT_TRUE(end->synchronize().ok());
  EXPECT_TRUE(stream->synchronize().ok());
  Result<float> time = end->getMillisecondsSince(*start);
  ASSERT_TRUE(bool(time));
  EXPECT_EQ(*time, 1.5f);
  EXPECT_EQ(log->streams, 1);
  EXPECT_EQ(log->events, 2);
}

TEST_F(KernelTest, TheAssemblersLogIsShown) {
  ScopedVariable jit("FAKE_CUDA_JIT", "line 3: unknown opcode");
  EXPECT_EQ(
      Kernel::load(openDevice(), manifest, "f", "ptx").error().message,
      "loading the compiled module failed: CUDA_ERROR_INVALID_PTX (a PTX JIT "
      "compilation failed) on Fake GPU (compute capability 8.6); the driver's "
      "assembler says:\nline 3: unknown opcode");
}

TEST_F(KernelTest, LoadingChecksTheManifest) {
  CudaDeviceRef device = openDevice();
  EXPECT_EQ(Kernel::load(device, manifest, "g", "ptx").error().message,
            "no function 'g' in the manifest; it has f");
  manifest.functions[0].versions[0].kernels[0].name = "missing";
  EXPECT_EQ(Kernel::load(device, manifest, "f", "ptx").error().message,
            "finding kernel 'missing' failed: CUDA error 500");
  manifest.functions[0].versions[0].kernels[0].name = "f_kernel";
  manifest.functions[0].versions[0].kernels[0].sharedMemory = 100 * 1024;
  EXPECT_EQ(Kernel::load(device, manifest, "f", "ptx").error().message,
            "kernel 'f_kernel' needs 102400 bytes of dynamic shared memory, "
            "Fake GPU has 101376; compile for its own chip");
  manifest.chip = "sm_90a";
  EXPECT_EQ(Kernel::load(device, manifest, "f", "ptx").error().message,
            "the kernel was compiled for sm_90a, the device is sm_86; compile "
            "with --chip=sm_86");
}

TEST_F(KernelTest, Chips) {
  EXPECT_TRUE(checkChip("sm_80", 80).ok());
  EXPECT_TRUE(checkChip("sm_80", 90).ok());
  EXPECT_TRUE(checkChip("sm_90", 120).ok());
  EXPECT_TRUE(checkChip("sm_90a", 90).ok());
  EXPECT_FALSE(checkChip("sm_90a", 100).ok());
  EXPECT_FALSE(checkChip("sm_86", 80).ok());
  EXPECT_EQ(checkChip("gfx90a", 80).error().message,
            "expected a chip such as sm_80 in the manifest, got 'gfx90a'");
  EXPECT_FALSE(checkChip("sm_", 80).ok());
}

TEST_F(KernelTest, Launch) {
  CudaDeviceRef device = openDevice();
  Result<Kernel> kernel = Kernel::load(device, manifest, "f", "some ptx");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  EXPECT_EQ(log->image, "some ptx");
  EXPECT_EQ(log->attributes[8], 65536); // dynamic shared memory
  TensorView q = view({3, 8, 65, 128}, ElementType::BF16);
  TensorView k = view({3, 8, 70, 128}, ElementType::BF16);
  TensorView cos = view({80, 64}, ElementType::F32);
  TensorView output = q;
  output.data = 0x2000;
  auto *stream = reinterpret_cast<CUstream>(uintptr_t(0x77));
  Status status = kernel->launch(stream, {q, k, cos, int64_t(5)}, {output});
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_EQ(log->launches.size(), 1u);
  const FakeLaunch &launch = log->launches[0];
  EXPECT_EQ(launch.grid, (std::array<unsigned, 3>{2 * 3 * 8, 1, 1}));
  EXPECT_EQ(launch.block, (std::array<unsigned, 3>{128, 1, 1}));
  EXPECT_EQ(launch.shared, 65536u);
  EXPECT_EQ(launch.stream, stream);
  EXPECT_EQ(launch.parameters,
            (std::vector<uint64_t>{0x1000, 65 * 128, 0x2000, 128, 65}));
}

TEST_F(KernelTest, ExpressionsKnowTheDevice) {
  Expression name;
  name.kind = Expression::Kind::Name;
  name.name = kSmCountName;
  ManifestFunction &function = manifest.functions[0];
  function.versions[0].kernels[0].grid[0] = name;
  function.versions[0].kernels[0].parameters.back().value = name;
  function.checks.push_back({name, "no multiprocessors"});
  Result<Kernel> kernel = Kernel::load(openDevice(), manifest, "f", "ptx");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  TensorView q = view({3, 8, 65, 128}, ElementType::BF16);
  TensorView cos = view({80, 64}, ElementType::F32);
  Status status = kernel->launch(nullptr, {q, q, cos, int64_t(5)}, {q});
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_EQ(log->launches.size(), 1u);
  EXPECT_EQ(log->launches[0].grid, (std::array<unsigned, 3>{13, 1, 1}));
  EXPECT_EQ(log->launches[0].parameters.back(), 13u);
}

TEST_F(KernelTest, RefusedAndEmptyLaunchesLaunchNothing) {
  CudaDeviceRef device = openDevice();
  Result<Kernel> kernel = Kernel::load(device, manifest, "f", "some ptx");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  TensorView k = view({3, 8, 70, 128}, ElementType::BF16);
  TensorView cos = view({80, 64}, ElementType::F32);

  TensorView q = view({3, 8, 0, 128}, ElementType::BF16);
  EXPECT_TRUE(kernel->launch(nullptr, {q, k, cos, int64_t(5)}, {q}).ok());
  q = view({3, 8, 65, 128}, ElementType::BF16);
  EXPECT_EQ(
      kernel->launch(nullptr, {q, k, cos, int64_t(16)}, {q}).error().message,
      "the rotary table has too few rows");
  EXPECT_TRUE(log->launches.empty());
}
