//===- Runtime.cpp - C interface of kernels on a device -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Runtime.h"
#include "Errors.h"
#include "attnfuse/Runtime/Kernel.h"

using namespace attnfuse;
using mlir::attnfuse::setLastError;

struct AttnfuseKernel {
  Kernel kernel;
};

struct AttnfuseLaunch {
  std::unique_ptr<BoundLaunch> bound;
};

static Result<CudaDeviceRef> openDevice(int ordinal) {
  Result<std::shared_ptr<const CudaDriver>> driver = CudaDriver::load();
  if (!driver)
    return driver.error();
  if (ordinal == ATTNFUSE_CURRENT_DEVICE) {
    CUdevice device = 0;
    if (Status status = (*driver)->check((*driver)->ctxGetDevice(&device),
                                         "asking for the current device");
        !status.ok())
      return Error{status.error().message +
                   "; make a context current, or name a device"};
    // The driver numbers handles of devices as it does devices.
    ordinal = device;
  }
  return CudaDevice::open(*driver, ordinal);
}

/// The enumerators have the numbers of those of ElementType.
static bool isElementType(int32_t type) {
  return type >= ATTNFUSE_F16 && type <= ATTNFUSE_I64;
}
static_assert(int(ElementType::F16) == ATTNFUSE_F16 &&
              int(ElementType::BF16) == ATTNFUSE_BF16 &&
              int(ElementType::F32) == ATTNFUSE_F32 &&
              int(ElementType::F64) == ATTNFUSE_F64 &&
              int(ElementType::I32) == ATTNFUSE_I32 &&
              int(ElementType::I64) == ATTNFUSE_I64);

/// Where `value` is no tensor, an error about `describe()`.
template <typename Describe>
static Result<TensorView> getView(const AttnfuseValue &value,
                                  Describe &&describe) {
  if (!isElementType(value.type))
    return Error{describe() + ": expected an AttnfuseElementType, got " +
                 std::to_string(value.type)};
  if (value.rank < 0 || value.rank > ATTNFUSE_MAX_RANK)
    return Error{describe() + ": expected 0 to " +
                 std::to_string(ATTNFUSE_MAX_RANK) + " dimensions, got " +
                 std::to_string(value.rank)};
  return TensorView{reinterpret_cast<uintptr_t>(value.data),
                    ElementType(value.type),
                    {value.sizes, value.sizes + value.rank},
                    {value.strides, value.strides + value.rank}};
}

namespace {
/// The caller's values as the runtime's.
struct LaunchValues {
  std::vector<ArgumentValue> arguments;
  std::vector<TensorView> results;
};
} // namespace

static Result<LaunchValues> getValues(const ManifestFunction &function,
                                      const AttnfuseValue *arguments,
                                      size_t numArguments,
                                      const AttnfuseValue *results,
                                      size_t numResults) {
  auto describe = [&](size_t index) {
    return index < function.arguments.size() + function.results.size()
               ? function.describeTensor(index)
               : "value " + std::to_string(index);
  };
  LaunchValues values;
  values.arguments.reserve(numArguments);
  for (size_t i = 0; i < numArguments; ++i) {
    if (i < function.arguments.size() && function.arguments[i].isScalar()) {
      values.arguments.push_back(arguments[i].scalar);
      continue;
    }
    Result<TensorView> view =
        getView(arguments[i], [&] { return describe(i); });
    if (!view)
      return view.error();
    values.arguments.push_back(std::move(*view));
  }
  values.results.reserve(numResults);
  for (size_t i = 0; i < numResults; ++i) {
    Result<TensorView> view = getView(
        results[i], [&] { return describe(function.arguments.size() + i); });
    if (!view)
      return view.error();
    values.results.push_back(std::move(*view));
  }
  return values;
}

static int fail(const Error &error) {
  setLastError(error.message);
  return 1;
}

extern "C" {

int attnfuseDeviceGetCapability(int device) {
  Result<CudaDeviceRef> opened = openDevice(device);
  if (!opened) {
    setLastError(opened.error().message);
    return -1;
  }
  return (*opened)->getCapability();
}

AttnfuseKernel *attnfuseKernelLoad(int device, const char *image,
                                   size_t imageSize, const char *manifest,
                                   const char *function) {
  Result<Manifest> parsed = parseManifest(manifest);
  if (!parsed) {
    setLastError(parsed.error().message);
    return nullptr;
  }
  Result<CudaDeviceRef> opened = openDevice(device);
  if (!opened) {
    setLastError(opened.error().message);
    return nullptr;
  }
  Result<Kernel> kernel =
      Kernel::load(*opened, *parsed, function, std::string(image, imageSize));
  if (!kernel) {
    setLastError(kernel.error().message);
    return nullptr;
  }
  return new AttnfuseKernel{std::move(*kernel)};
}

void attnfuseKernelDestroy(AttnfuseKernel *kernel) { delete kernel; }

int attnfuseKernelLaunch(const AttnfuseKernel *kernel, void *stream,
                         const AttnfuseValue *arguments, size_t numArguments,
                         const AttnfuseValue *results, size_t numResults) {
  Result<LaunchValues> values =
      getValues(kernel->kernel.getFunction(), arguments, numArguments, results,
                numResults);
  if (!values)
    return fail(values.error());
  Status status = kernel->kernel.launch(static_cast<CUstream>(stream),
                                        values->arguments, values->results);
  return status.ok() ? 0 : fail(status.error());
}

AttnfuseLaunch *attnfuseKernelBind(const AttnfuseKernel *kernel,
                                   const AttnfuseValue *arguments,
                                   size_t numArguments,
                                   const AttnfuseValue *results,
                                   size_t numResults) {
  Result<LaunchValues> values =
      getValues(kernel->kernel.getFunction(), arguments, numArguments, results,
                numResults);
  if (!values) {
    setLastError(values.error().message);
    return nullptr;
  }
  Result<std::unique_ptr<BoundLaunch>> bound = BoundLaunch::create(
      kernel->kernel, std::move(values->arguments), std::move(values->results));
  if (!bound) {
    setLastError(bound.error().message);
    return nullptr;
  }
  return new AttnfuseLaunch{std::move(*bound)};
}

void attnfuseLaunchDestroy(AttnfuseLaunch *launch) { delete launch; }

int attnfuseLaunchRun(AttnfuseLaunch *launch, void *stream,
                      const uint64_t *addresses) {
  Status status =
      launch->bound->launch(static_cast<CUstream>(stream), addresses);
  return status.ok() ? 0 : fail(status.error());
}

int64_t attnfuseLaunchGetWorkspaceSize(const AttnfuseLaunch *launch) {
  Result<int64_t> size = launch->bound->getWorkspaceSize();
  if (size)
    return *size;
  setLastError(size.error().message);
  return -1;
}

int attnfuseLaunchRunInWorkspace(AttnfuseLaunch *launch, void *stream,
                                 const uint64_t *addresses,
                                 uint64_t workspace) {
  Status status = launch->bound->launch(static_cast<CUstream>(stream),
                                        addresses, workspace);
  return status.ok() ? 0 : fail(status.error());
}

} // extern "C"
