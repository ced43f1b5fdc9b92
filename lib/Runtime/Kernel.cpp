//===- Kernel.cpp - Compiled functions on a device ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/Kernel.h"
#include <algorithm>
#include <cctype>

using namespace attnfuse;

Status attnfuse::checkChip(std::string_view chip, int capability) {
  // sm_90a: the digits, and a letter where code serves that chip only.
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  size_t i = kPrefix.size();
  if (chip.substr(0, i) == kPrefix)
    while (i < chip.size() && i < 8 && std::isdigit((unsigned char)chip[i]))
      number = 10 * number + (chip[i++] - '0');
  if (number == 0)
    return Error{"expected a chip such as sm_80 in the manifest, got '" +
                 std::string(chip) + "'"};
  bool exact = i < chip.size();
  if (exact ? capability == number : capability >= number)
    return {};
  return Error{"the kernel was compiled for " + std::string(chip) +
               ", the device is sm_" + std::to_string(capability) +
               "; compile with --chip=sm_" + std::to_string(capability)};
}

Result<Kernel> Kernel::load(CudaDeviceRef device, const Manifest &manifest,
                            std::string_view function,
                            const std::string &image) {
  Result<const ManifestFunction *> entry = manifest.getFunction(function);
  if (!entry)
    return entry.error();
  if (Status status = checkChip(manifest.chip, device->getCapability());
      !status.ok())
    return status.error();
  Result<std::shared_ptr<const CudaModule>> module =
      CudaModule::load(std::move(device), image);
  if (!module)
    return module.error();

  Kernel self;
  self.function = **entry;
  self.module = *module;
  for (const ManifestKernel &kernel : self.function.kernels) {
    Result<CUfunction> handle =
        self.module->getKernel(kernel.name, kernel.sharedMemory);
    if (!handle)
      return handle.error();
    self.kernels.push_back(*handle);
  }
  return self;
}

Status Kernel::launch(CUstream stream,
                      const std::vector<ArgumentValue> &arguments,
                      const std::vector<TensorView> &results) const {
  Result<Environment> environment = bindArguments(function, arguments);
  if (!environment)
    return environment.error();
  const CudaDevice &device = *module->getDevice();
  environment->emplace(kSmCountName, device.getNumMultiprocessors());
  if (Status status = bindResults(function, results, *environment);
      !status.ok())
    return status;
  if (Status status = evaluateChecks(function, *environment); !status.ok())
    return status;
  if (std::all_of(results.begin(), results.end(),
                  [](const TensorView &result) { return result.isEmpty(); }))
    return {};

  std::vector<std::array<unsigned, 3>> grids;
  std::vector<std::vector<uint64_t>> parameters;
  for (const ManifestKernel &kernel : function.kernels) {
    Result<std::array<unsigned, 3>> grid = evaluateGrid(kernel, *environment);
    if (!grid)
      return grid.error();
    Result<std::vector<uint64_t>> words =
        evaluateParameters(kernel, arguments, results, *environment);
    if (!words)
      return words.error();
    grids.push_back(*grid);
    parameters.push_back(std::move(*words));
  }

  for (size_t i = 0; i < function.kernels.size(); ++i) {
    const ManifestKernel &kernel = function.kernels[i];
    std::vector<void *> pointers;
    for (uint64_t &word : parameters[i])
      pointers.push_back(&word);
    Status status = device.call("launching kernel '" + kernel.name + "'", [&] {
      return device.getDriver().launchKernel(
          kernels[i], grids[i][0], grids[i][1], grids[i][2],
          unsigned(kernel.block[0]), unsigned(kernel.block[1]),
          unsigned(kernel.block[2]), unsigned(kernel.sharedMemory), stream,
          pointers.data(), nullptr);
    });
    if (!status.ok())
      return status;
  }
  return {};
}
