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

static_assert(int(ElementType::F16) == ATTNFUSE_HOST_F16 &&
              int(ElementType::BF16) == ATTNFUSE_HOST_BF16 &&
              int(ElementType::F32) == ATTNFUSE_HOST_F32 &&
              int(ElementType::I32) == ATTNFUSE_HOST_I32 &&
              int(ElementType::I64) == ATTNFUSE_HOST_I64);

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
  AttnFuseHostErrorHandler handler = nullptr;
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
  if (!driver.ctxGetDevice || driver.ctxGetDevice(&device) != 0)
    return 0;
  // A device's handle is its ordinal.
  return device;
}

/// Expects the lock. The kernel stays where it is.
Result<const Kernel *> getKernel(HostRuntime &runtime, AttnFuseHostImage &image,
                                 const char *function) {
  if (!runtime.driver) {
    auto driver = CudaDriver::load();
    if (!driver)
      return driver.error();
    runtime.driver = *driver;
  }
  auto *loaded = static_cast<LoadedImage *>(image.loaded);
  if (!loaded) {
    auto manifest =
        parseManifest({image.manifest, size_t(image.manifestSize)});
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

/// Takes operands off a list of words.
class OperandReader {
public:
  OperandReader(const int64_t *words, int64_t count)
      : next(words), end(words + count) {}

  Status read(ArgumentValue &value) {
    if (end - next < 2)
      return makeEndError();
    int64_t rank = *next++;
    if (rank < 0) {
      value = *next++;
      return {};
    }
    int64_t type = *next++;
    if (type < 0 || type > int64_t(ElementType::I64))
      return Error{"expected an element type of attnfuse-c/Host.h, got " +
                   std::to_string(type)};
    if ((end - next - 1) / 2 < rank || end == next)
      return makeEndError();
    TensorView view;
    view.type = ElementType(type);
    view.data = *next++;
    view.shape.assign(next, next + rank);
    view.strides.assign(next + rank, next + 2 * rank);
    next += 2 * rank;
    value = std::move(view);
    return {};
  }

  bool isAtEnd() const { return next == end; }

private:
  static Error makeEndError() {
    return Error{"expected words for each argument and result, got too few"};
  }
  const int64_t *next, *end;
};

Status launch(AttnFuseHostImage &image, const char *function, int64_t stream,
              int64_t numWords, const int64_t *operands) {
  HostRuntime &runtime = getRuntime();
  const Kernel *kernel = nullptr;
  {
    std::lock_guard<std::mutex> lock(runtime.mutex);
    auto found = getKernel(runtime, image, function);
    if (!found)
      return found.error();
    kernel = *found;
  }
  const ManifestFunction &entry = kernel->getFunction();
  OperandReader reader(operands, numWords);
  std::vector<ArgumentValue> arguments(entry.arguments.size());
  for (ArgumentValue &argument : arguments)
    if (Status status = reader.read(argument); !status.ok())
      return status;
  std::vector<TensorView> results;
  for (const ManifestTensor &result : entry.results) {
    ArgumentValue value;
    if (Status status = reader.read(value); !status.ok())
      return status;
    auto *view = std::get_if<TensorView>(&value);
    if (!view)
      return Error{"expected a tensor for result '" + result.name +
                   "', got a scalar"};
    results.push_back(std::move(*view));
  }
  if (!reader.isAtEnd())
    return Error{"expected words for " +
                 std::to_string(entry.arguments.size()) + " arguments and " +
                 std::to_string(entry.results.size()) +
                 " results, got more"};
  return kernel->launch(reinterpret_cast<CUstream>(stream), arguments, results);
}
} // namespace

int32_t attnfuseHostGetVersion() { return ATTNFUSE_HOST_VERSION; }

void attnfuseHostLaunch(AttnFuseHostImage *image, const char *function,
                        int64_t stream, int64_t numWords,
                        const int64_t *operands) {
  Status status = launch(*image, function, stream, numWords, operands);
  if (status.ok())
    return;
  std::string message = "attnfuse: launching '" + std::string(function) +
                        "': " + status.error().message;
  HostRuntime &runtime = getRuntime();
  AttnFuseHostErrorHandler handler;
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

void attnfuseHostSetErrorHandler(AttnFuseHostErrorHandler handler,
                                 void *userData) {
  HostRuntime &runtime = getRuntime();
  std::lock_guard<std::mutex> lock(runtime.mutex);
  runtime.handler = handler;
  runtime.userData = userData;
}
