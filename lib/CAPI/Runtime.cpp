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

static Status launch(const Kernel &kernel, void *stream,
                     const AttnfuseValue *arguments, size_t numArguments,
                     const AttnfuseValue *results, size_t numResults) {
  const ManifestFunction &function = kernel.getFunction();
  auto describe = [&](size_t index) {
    return index < function.arguments.size() + function.results.size()
               ? function.describeTensor(index)
               : "value " + std::to_string(index);
  };
  std::vector<ArgumentValue> argumentValues;
  argumentValues.reserve(numArguments);
  for (size_t i = 0; i < numArguments; ++i) {
    if (i < function.arguments.size() && function.arguments[i].isScalar()) {
      argumentValues.push_back(arguments[i].scalar);
      continue;
    }
    Result<TensorView> view =
        getView(arguments[i], [&] { return describe(i); });
    if (!view)
      return view.error();
    argumentValues.push_back(std::move(*view));
  }
  std::vector<TensorView> resultViews;
  resultViews.reserve(numResults);
  for (size_t i = 0; i < numResults; ++i) {
    Result<TensorView> view = getView(
        results[i], [&] { return describe(function.arguments.size() + i); });
    if (!view)
      return view.error();
    resultViews.push_back(std::move(*view));
  }
  return kernel.launch(static_cast<CUstream>(stream), argumentValues,
                       resultViews);
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
  Status status = launch(kernel->kernel, stream, arguments, numArguments,
                         results, numResults);
  if (status.ok())
    return 0;
  setLastError(status.error().message);
  return 1;
}

} // extern "C"
