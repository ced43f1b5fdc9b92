//===- Host.cpp - What generated host code calls --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Host.h"
#include "attnfuse/Runtime/Kernel.h"
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

using namespace attnfuse;

namespace {
/// The functions of an image, loaded per device.
struct LoadedImage {
  Manifest manifest;
  std::string code;
  std::map<std::pair<int, std::string>, Kernel> kernels;
};

/// Everything that launches share. `mutex` guards all of it, and every image's
/// `loaded`; the launches themselves run outside of it.
struct HostRuntime {
  std::mutex mutex;
  std::shared_ptr<const CudaDriver> driver;
  std::map<int, CudaDeviceRef> devices;
  AttnfuseHostErrorHandler handler = nullptr;
  void *userData = nullptr;
};

/// Never destroyed: threads may launch while the process exits.
HostRuntime &getRuntime() {
  static auto *runtime = new HostRuntime;
  return *runtime;
}

/// The ordinal of the device of the calling thread's context.
int getCurrentDevice(const CudaDriver &driver) {
  CUdevice device = 0;
  if (driver.ctxGetDevice(&device) != 0)
    return 0;
  // A device's handle is its ordinal.
  return device;
}

/// Expects the lock. The kernel stays where it is.
Result<const Kernel *> getKernel(HostRuntime &runtime, AttnfuseHostImage &image,
                                 const char *function) {
  if (!runtime.driver) {
    auto driver = CudaDriver::load();
    if (!driver)
      return driver.error();
    runtime.driver = *driver;
  }
  auto *loaded = static_cast<LoadedImage *>(image.loaded);
  if (!loaded) {
    auto manifest = parseManifest({image.manifest, size_t(image.manifestSize)});
    if (!manifest)
      return manifest.error();
    loaded = new LoadedImage{
        std::move(*manifest), {image.code, size_t(image.codeSize)}, {}};
    image.loaded = loaded;
  }
  int ordinal = getCurrentDevice(*runtime.driver);
  auto known = loaded->kernels.find({ordinal, function});
  if (known != loaded->kernels.end())
    return &known->second;
  CudaDeviceRef &device = runtime.devices[ordinal];
  if (!device) {
    auto opened = CudaDevice::open(runtime.driver, ordinal);
    if (!opened)
      return opened.error();
    device = *opened;
  }
  auto kernel = Kernel::load(device, loaded->manifest, function, loaded->code);
  if (!kernel)
    return kernel.error();
  return &loaded->kernels.emplace(std::pair(ordinal, function), *kernel)
              .first->second;
}

Result<TensorView> getView(const AttnfuseValue &value,
                           const std::string &what) {
  if (value.type < ATTNFUSE_F16 || value.type > ATTNFUSE_I64)
    return Error{what + ": expected an AttnfuseElementType, got " +
                 std::to_string(value.type)};
  if (value.rank < 0 || value.rank > ATTNFUSE_MAX_RANK)
    return Error{what + ": expected 0 to " + std::to_string(ATTNFUSE_MAX_RANK) +
                 " dimensions, got " + std::to_string(value.rank)};
  return TensorView{reinterpret_cast<uintptr_t>(value.data),
                    ElementType(value.type),
                    {value.sizes, value.sizes + value.rank},
                    {value.strides, value.strides + value.rank}};
}

Status launch(AttnfuseHostImage &image, const char *name, int64_t stream,
              const AttnfuseValue *arguments, size_t numArguments,
              const AttnfuseValue *results, size_t numResults) {
  HostRuntime &runtime = getRuntime();
  const Kernel *kernel = nullptr;
  {
    std::lock_guard<std::mutex> lock(runtime.mutex);
    auto found = getKernel(runtime, image, name);
    if (!found)
      return found.error();
    kernel = *found;
  }
  const ManifestFunction &function = kernel->getFunction();
  if (numArguments != function.arguments.size() ||
      numResults != function.results.size())
    return Error{"expected " + std::to_string(function.arguments.size()) +
                 " arguments and " + std::to_string(function.results.size()) +
                 " results, got " + std::to_string(numArguments) + " and " +
                 std::to_string(numResults)};
  std::vector<ArgumentValue> argumentValues;
  std::vector<TensorView> resultViews;
  for (size_t i = 0; i < numArguments + numResults; ++i) {
    bool isResult = i >= numArguments;
    const AttnfuseValue &value =
        isResult ? results[i - numArguments] : arguments[i];
    if (!isResult && function.arguments[i].isScalar()) {
      argumentValues.push_back(value.scalar);
      continue;
    }
    Result<TensorView> view = getView(value, function.describeTensor(i));
    if (!view)
      return view.error();
    if (isResult)
      resultViews.push_back(std::move(*view));
    else
      argumentValues.push_back(std::move(*view));
  }
  return kernel->launch(reinterpret_cast<CUstream>(stream), argumentValues,
                        resultViews);
}
} // namespace

int attnfuseHostGetVersion() { return ATTNFUSE_HOST_VERSION; }

void attnfuseHostLaunch(AttnfuseHostImage *image, const char *function,
                        int64_t stream, const AttnfuseValue *arguments,
                        int64_t numArguments, const AttnfuseValue *results,
                        int64_t numResults) {
  Status status = launch(*image, function, stream, arguments, numArguments,
                         results, numResults);
  if (status.ok())
    return;
  std::string message = "attnfuse: launching '" + std::string(function) +
                        "': " + status.error().message;
  HostRuntime &runtime = getRuntime();
  AttnfuseHostErrorHandler handler;
  void *userData;
  {
    std::lock_guard<std::mutex> lock(runtime.mutex);
    handler = runtime.handler;
    userData = runtime.userData;
  }
  if (handler)
    return handler(message.c_str(), userData);
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

void attnfuseHostSetErrorHandler(AttnfuseHostErrorHandler handler,
                                 void *userData) {
  HostRuntime &runtime = getRuntime();
  std::lock_guard<std::mutex> lock(runtime.mutex);
  runtime.handler = handler;
  runtime.userData = userData;
}
