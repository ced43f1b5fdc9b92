//===- CudaDevice.cpp - Runs functions on an NVIDIA GPU -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::CudaStream;
using ::attnfuse::Kernel;
using ::attnfuse::MemoryLayout;

llvm::Expected<std::unique_ptr<CudaDevice>>
CudaDevice::open(int ordinal, StringRef chip, RotationChoice rotation,
                 int64_t keySplits, MemoryLayout layout) {
  auto driver = ::attnfuse::CudaDriver::load();
  if (!driver)
    return toError(driver.error());
  auto device = ::attnfuse::CudaDevice::open(*driver, ordinal);
  if (!device)
    return toError(device.error());
  std::string target =
      chip.empty() ? findChip((*device)->getCapability()) : chip.str();
  if (target.empty())
    return llvm::createStringError(
        "device " + (*device)->getName() +
        " is older than every chip in the table: expected compute "
        "capability 8.0 or more");
  return std::unique_ptr<CudaDevice>(new CudaDevice(
      std::move(*device),
      CompileOptions{target, EmitLevel::PTX, rotation, keySplits, {}}, layout));
}

std::string CudaDevice::getName() const {
  return "cuda:" + std::to_string(device->getOrdinal()) + " (" +
         device->getName() + ")";
}

llvm::Expected<std::unique_ptr<DeviceFunction>>
CudaDevice::compile(ModuleOp module, StringRef function) {
  return compileFunction(module, function);
}

llvm::Expected<std::unique_ptr<CudaFunction>>
CudaDevice::compileFunction(ModuleOp module, StringRef function) const {
  llvm::Expected<CompiledModule> compiled = compileModule(module, options);
  if (!compiled)
    return compiled.takeError();
  auto manifest = ::attnfuse::parseManifest(compiled->manifest);
  if (!manifest)
    return toError(manifest.error());
  auto kernel = Kernel::load(device, *manifest, function.str(), compiled->code);
  if (!kernel)
    return toError(kernel.error());
  auto stream = CudaStream::create(device);
  if (!stream)
    return toError(stream.error());
  return std::make_unique<CudaFunction>(device, std::move(*kernel),
                                        std::move(*stream), layout);
}
