//===- Kernel.cpp - Compiled functions on a device ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runtime/Kernel.h"
#include "TensorMapCache.h"
#include <algorithm>
#include <cctype>
#include <map>

using namespace attnfuse;

/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
static constexpr int kProgrammaticStreamSerialization = 6;

namespace {
/// One launch, with the memory that its parameters are read from.
struct PreparedLaunch {
  std::array<unsigned, 3> grid;
  std::vector<uint64_t> words;
  std::vector<CUtensorMap> maps;
  /// Of each parameter, into `words` and `maps`.
  std::vector<void *> addresses;
};
} // namespace

static bool takesTensorMaps(const ManifestKernel &kernel) {
  return std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                     [](const ManifestParameter &parameter) {
                       return parameter.kind ==
                              ManifestParameter::Kind::TensorMap;
                     });
}

/// The dynamic shared memory that each kernel must be allowed: the driver keeps
/// one number for all launches of a kernel.
static std::map<std::string_view, int64_t>
getSharedMemory(const ManifestFunction &function) {
  std::map<std::string_view, int64_t> bytes;
  for (const ManifestVersion &version : function.versions)
    for (const ManifestKernel &kernel : version.kernels) {
      int64_t &most = bytes[kernel.name];
      most = std::max(most, kernel.sharedMemory);
    }
  return bytes;
}

/// Stores the values; `cache` encodes the tensor maps.
static Status storeParameters(const ManifestFunction &function,
                              const ManifestKernel &kernel,
                              const std::vector<ParameterValue> &values,
                              TensorMapCache *cache, PreparedLaunch &launch) {
  // Addresses are taken while the vectors grow.
  launch.words.reserve(values.size());
  launch.maps.reserve(values.size());
  launch.addresses.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (const auto *word = std::get_if<uint64_t>(&values[i])) {
      launch.addresses.push_back(&launch.words.emplace_back(*word));
      continue;
    }
    CUtensorMap &map = launch.maps.emplace_back();
    if (Status status = cache->get(std::get<TensorMapRequest>(values[i]), map);
        !status.ok())
      return Error{function.describeTensor(kernel.parameters[i].tensor) + ": " +
                   status.error().message};
    launch.addresses.push_back(&map);
  }
  return {};
}

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
  const CudaDeviceRef &owner = self.module->getDevice();
  std::map<std::string_view, int64_t> sharedMemory = getSharedMemory(**entry);
  for (const ManifestVersion &version : self.function.versions) {
    std::vector<LoadedKernel> &loaded = self.kernels.emplace_back();
    for (const ManifestKernel &kernel : version.kernels) {
      if (takesTensorMaps(kernel)) {
        if (!owner->getDriver().tensorMapEncodeTiled)
          return Error{"kernel '" + kernel.name +
                       "' takes tensor maps, which the CUDA driver cannot "
                       "encode (it has no function cuTensorMapEncodeTiled); "
                       "install a driver of version 525 (CUDA 12.0) or newer"};
        if (!self.tensorMaps)
          self.tensorMaps = std::make_shared<TensorMapCache>(owner);
      }
      Result<CUfunction> handle =
          self.module->getKernel(kernel.name, sharedMemory[kernel.name]);
      if (!handle)
        return handle.error();
      loaded.push_back({*handle, "launching kernel '" + kernel.name + "'"});
    }
  }
  return self;
}

Result<Kernel::Binding>
Kernel::bind(const std::vector<ArgumentValue> &arguments,
             const std::vector<TensorView> &results) const {
  Result<Environment> environment = bindArguments(function, arguments);
  if (!environment)
    return environment.error();
  environment->set(kSmCountName, module->getDevice()->getNumMultiprocessors());
  if (Status status = bindResults(function, results, *environment);
      !status.ok())
    return status.error();
  if (Status status = evaluateChecks(function, *environment); !status.ok())
    return status.error();
  Binding binding{std::move(*environment), 0, {}, false};
  binding.isEmpty =
      std::all_of(results.begin(), results.end(),
                  [](const TensorView &result) { return result.isEmpty(); });
  if (binding.isEmpty)
    return binding;
  Result<size_t> version = chooseVersion(function, binding.environment);
  if (!version)
    return version.error();
  binding.version = *version;
  if (function.workspace.empty())
    return binding;
  Result<WorkspaceLayout> workspace = layOutWorkspace(
      function, function.versions[*version], binding.environment);
  if (!workspace)
    return workspace.error();
  binding.workspace = std::move(*workspace);
  return binding;
}

Result<int64_t>
Kernel::getWorkspaceSize(const std::vector<ArgumentValue> &arguments,
                         const std::vector<TensorView> &results) const {
  if (function.workspace.empty())
    return int64_t(0);
  Result<Binding> binding = bind(arguments, results);
  if (!binding)
    return binding.error();
  return binding->workspace.bytes;
}

Status Kernel::launch(CUstream stream,
                      const std::vector<ArgumentValue> &arguments,
                      const std::vector<TensorView> &results,
                      CUdeviceptr workspace) const {
  Result<Binding> binding = bind(arguments, results);
  if (!binding)
    return binding.error();
  if (binding->isEmpty)
    return {};
  if (workspace % kWorkspaceAlignment != 0)
    return Error{"expected a workspace at a multiple of " +
                 std::to_string(kWorkspaceAlignment) + " bytes"};
  if (workspace != 0 || binding->workspace.bytes == 0)
    return launchBound(stream, arguments, results, *binding, workspace);
  Result<PooledMemory> pooled = PooledMemory::allocate(
      module->getDevice(), size_t(binding->workspace.bytes), stream);
  if (!pooled)
    return pooled.error();
  return launchBound(stream, arguments, results, *binding, pooled->get());
}

Status Kernel::launchBound(CUstream stream,
                           const std::vector<ArgumentValue> &arguments,
                           const std::vector<TensorView> &results,
                           Binding &binding, CUdeviceptr workspace) const {
  for (TensorView &tensor : binding.workspace.tensors)
    tensor.data += workspace;
  const std::vector<ManifestKernel> &chosen =
      function.versions[binding.version].kernels;
  std::vector<PreparedLaunch> launches;
  launches.reserve(chosen.size());
  for (const ManifestKernel &kernel : chosen) {
    Result<std::array<unsigned, 3>> grid =
        evaluateGrid(kernel, binding.environment);
    if (!grid)
      return grid.error();
    Result<std::vector<ParameterValue>> values =
        evaluateParameters(function, kernel, arguments, results,
                           binding.workspace.tensors, binding.environment);
    if (!values)
      return values.error();
    PreparedLaunch &launch = launches.emplace_back();
    launch.grid = *grid;
    if (Status status = storeParameters(function, kernel, *values,
                                        tensorMaps.get(), launch);
        !status.ok())
      return status;
  }

  const CudaDevice &device = *module->getDevice();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const ManifestKernel &kernel = chosen[i];
    PreparedLaunch &launch = launches[i];
    const LoadedKernel &loaded = kernels[binding.version][i];
    CUlaunchAttribute early{kProgrammaticStreamSerialization, {1}};
    CUlaunchConfig config{{launch.grid[0], launch.grid[1], launch.grid[2]},
                          {unsigned(kernel.block[0]), unsigned(kernel.block[1]),
                           unsigned(kernel.block[2])},
                          unsigned(kernel.sharedMemory),
                          stream,
                          &early,
                          kernel.startsEarly && i > 0 ? 1u : 0u};
    Status status = device.call(loaded.launching, [&] {
      return device.getDriver().launchKernelEx(
          &config, loaded.handle, launch.addresses.data(), nullptr);
    });
    if (!status.ok())
      return status;
  }
  return {};
}
