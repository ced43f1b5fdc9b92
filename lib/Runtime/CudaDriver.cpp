//===- CudaDriver.cpp - The CUDA driver, loaded at run time ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/CudaDriver.h"
#include <dlfcn.h>

using namespace attnfuse;

Status CudaDriver::check(CUresult code, std::string_view what) const {
  if (code == 0)
    return {};
  const char *name = nullptr;
  const char *description = nullptr;
  getErrorName(code, &name);
  getErrorString(code, &description);
  std::string message = std::string(what) + " failed: ";
  message += name ? name : "CUDA error " + std::to_string(code);
  if (description)
    message += " (" + std::string(description) + ")";
  return Error{message};
}

Result<std::shared_ptr<const CudaDriver>>
CudaDriver::load(const std::string &library) {
  std::shared_ptr<CudaDriver> driver(new CudaDriver);
  driver->handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver->handle) {
    const char *reason = dlerror();
    return Error{"cannot load the CUDA driver library " + library + " (" +
                 (reason ? reason : "no reason given") +
                 "); install the NVIDIA driver, or use the CPU"};
  }

#define ATTNFUSE_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                       \
  driver->MEMBER = reinterpret_cast<CUresult(*) PARAMETERS>(                   \
      dlsym(driver->handle, #SYMBOL));                                         \
  if (!driver->MEMBER)                                                         \
    return Error{"the CUDA driver library " + library +                        \
                 " has no function " #SYMBOL                                   \
                 "; install a driver of version 525 (CUDA 12.0) or newer"};
#define ATTNFUSE_CUDA_OPTIONAL_SYMBOL(MEMBER, SYMBOL, PARAMETERS)              \
  driver->MEMBER = reinterpret_cast<CUresult(*) PARAMETERS>(                   \
      dlsym(driver->handle, #SYMBOL));
#include "attnfuse/Runtime/CudaSymbols.def"

  if (Status status = driver->check(driver->init(0), "cuInit"); !status.ok())
    return Error{"no usable NVIDIA GPU: " + status.error().message +
                 "; check nvidia-smi, or use the CPU"};
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

CudaDriver::~CudaDriver() {
  if (handle)
    dlclose(handle);
}

Result<int> CudaDriver::getDeviceCount() const {
  int count = 0;
  if (Status status = check(deviceGetCount(&count), "counting the devices");
      !status.ok())
    return status.error();
  if (count < 1)
    return Error{"no NVIDIA GPU is visible; check CUDA_VISIBLE_DEVICES and "
                 "nvidia-smi, or use the CPU"};
  return count;
}
