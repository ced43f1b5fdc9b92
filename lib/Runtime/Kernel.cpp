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
#include <limits>
#include <map>

using namespace attnfuse;

/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
static constexpr int kProgrammaticStreamSerialization = 6;

/// One launch, with the memory that its parameters are read from.
struct attnfuse::PreparedLaunch {
  std::array<unsigned, 3> grid;
  std::vector<uint64_t> words;
  std::vector<CUtensorMap> maps;
  /// Of each parameter, into `words` and `maps`.
  std::vector<void *> addresses;
};

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

/// The launches of a version's kernels.
static Result<std::vector<PreparedLaunch>>
prepare(const ManifestFunction &function, const ManifestVersion &version,
        const std::vector<ArgumentValue> &arguments,
        const std::vector<TensorView> &results,
        const std::vector<TensorView> &workspace,
        const Environment &environment, TensorMapCache *cache) {
  std::vector<PreparedLaunch> launches;
  launches.reserve(version.kernels.size());
  for (const ManifestKernel &kernel : version.kernels) {
    Result<std::array<unsigned, 3>> grid = evaluateGrid(kernel, environment);
    if (!grid)
      return grid.error();
    Result<std::vector<ParameterValue>> values = evaluateParameters(
        function, kernel, arguments, results, workspace, environment);
    if (!values)
      return values.error();
    PreparedLaunch &launch = launches.emplace_back();
    launch.grid = *grid;
    if (Status status =
            storeParameters(function, kernel, *values, cache, launch);
        !status.ok())
      return status.error();
  }
  return launches;
}

/// Everything about a launch that does not depend on the version.
static Result<Environment>
bindLaunch(const ManifestFunction &function, const CudaDevice &device,
           const std::vector<ArgumentValue> &arguments,
           const std::vector<TensorView> &results) {
  Result<Environment> environment = bindArguments(function, arguments);
  if (!environment)
    return environment;
  environment->set(kSmCountName, device.getNumMultiprocessors());
  if (Status status = bindResults(function, results, *environment);
      !status.ok())
    return status.error();
  if (Status status = evaluateChecks(function, *environment); !status.ok())
    return status.error();
  return environment;
}

static bool areEmpty(const std::vector<TensorView> &tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const TensorView &tensor) { return tensor.isEmpty(); });
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

/// The workspace of a launch: the caller's, or memory that `pooled` then holds.
static Result<CUdeviceptr> getWorkspace(const CudaDeviceRef &device,
                                        CUstream stream, int64_t bytes,
                                        CUdeviceptr given,
                                        std::optional<PooledMemory> &pooled) {
  if (given % kWorkspaceAlignment != 0)
    return Error{"expected a workspace at a multiple of " +
                 std::to_string(kWorkspaceAlignment) + " bytes"};
  if (given > std::numeric_limits<CUdeviceptr>::max() - uint64_t(bytes))
    return Error{"expected a workspace of " + std::to_string(bytes) +
                 " bytes, got an address with fewer bytes after it"};
  if (given != 0 || bytes == 0)
    return given;
  Result<PooledMemory> memory =
      PooledMemory::allocate(device, size_t(bytes), stream);
  if (!memory)
    return memory.error();
  pooled.emplace(std::move(*memory));
  return pooled->get();
}

static std::vector<TensorView> placeWorkspace(const WorkspaceLayout &layout,
                                              CUdeviceptr start) {
  std::vector<TensorView> tensors = layout.tensors;
  for (TensorView &tensor : tensors)
    tensor.data += start;
  return tensors;
}

Result<const ManifestVersion *>
Kernel::getVersion(const std::vector<ArgumentValue> &arguments,
                   const std::vector<TensorView> &results) const {
  Result<Environment> environment =
      bindLaunch(function, *module->getDevice(), arguments, results);
  if (!environment)
    return environment.error();
  Result<size_t> index = chooseVersion(function, *environment);
  if (!index)
    return index.error();
  return &function.versions[*index];
}

Result<int64_t>
Kernel::getWorkspaceSize(const std::vector<ArgumentValue> &arguments,
                         const std::vector<TensorView> &results) const {
  if (function.workspace.empty())
    return int64_t(0);
  Result<Environment> environment =
      bindLaunch(function, *module->getDevice(), arguments, results);
  if (!environment)
    return environment.error();
  if (areEmpty(results))
    return int64_t(0);
  Result<size_t> index = chooseVersion(function, *environment);
  if (!index)
    return index.error();
  Result<WorkspaceLayout> layout =
      layOutWorkspace(function, function.versions[*index], *environment);
  if (!layout)
    return layout.error();
  return layout->bytes;
}

Status Kernel::launch(CUstream stream,
                      const std::vector<ArgumentValue> &arguments,
                      const std::vector<TensorView> &results,
                      CUdeviceptr workspace) const {
  Result<Environment> environment =
      bindLaunch(function, *module->getDevice(), arguments, results);
  if (!environment)
    return environment.error();
  if (areEmpty(results))
    return {};
  Result<size_t> index = chooseVersion(function, *environment);
  if (!index)
    return index.error();
  const ManifestVersion &version = function.versions[*index];
  Result<WorkspaceLayout> layout =
      layOutWorkspace(function, version, *environment);
  if (!layout)
    return layout.error();
  std::optional<PooledMemory> pooled;
  Result<CUdeviceptr> start = getWorkspace(module->getDevice(), stream,
                                           layout->bytes, workspace, pooled);
  if (!start)
    return start.error();
  Result<std::vector<PreparedLaunch>> launches =
      prepare(function, version, arguments, results,
              placeWorkspace(*layout, *start), *environment, tensorMaps.get());
  if (!launches)
    return launches.error();
  return launchKernels(stream, *index, *launches);
}

Status Kernel::launchKernels(CUstream stream, size_t version,
                             std::vector<PreparedLaunch> &launches) const {
  const CudaDevice &device = *module->getDevice();
  for (size_t i = 0; i < launches.size(); ++i) {
    const ManifestKernel &kernel = function.versions[version].kernels[i];
    PreparedLaunch &launch = launches[i];
    const LoadedKernel &loaded = kernels[version][i];
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

//===----------------------------------------------------------------------===//
// Launches on tensors of one kind
//===----------------------------------------------------------------------===//

/// A version's kernels, and what depends on the address of a tensor.
struct BoundLaunch::Version {
  struct Place {
    /// By the index that parameters use.
    size_t tensor;
    /// Where the parameter is: a pointer, or a tensor map.
    void *storage;
    /// Of a tensor map, the last one that was encoded.
    std::optional<TensorMapRequest> request;
  };
  WorkspaceLayout layout;
  /// Where that was placed last.
  std::vector<TensorView> workspace;
  /// Empty until they are prepared.
  std::vector<PreparedLaunch> launches;
  std::vector<Place> places;
};

BoundLaunch::BoundLaunch(const Kernel &kernel)
    : kernel(kernel), versions(kernel.getFunction().versions.size()) {
  for (const ManifestTensorName &name : this->kernel.function.tensorNames)
    usesAddresses |= !name.dim;
}

BoundLaunch::~BoundLaunch() = default;

Result<std::unique_ptr<BoundLaunch>>
BoundLaunch::create(const Kernel &kernel, std::vector<ArgumentValue> arguments,
                    std::vector<TensorView> results) {
  std::unique_ptr<BoundLaunch> self(new BoundLaunch(kernel));
  Result<Environment> environment = bindLaunch(
      self->kernel.function, *kernel.module->getDevice(), arguments, results);
  if (!environment)
    return environment.error();
  self->environment = std::move(*environment);
  self->arguments = std::move(arguments);
  self->results = std::move(results);
  self->isEmpty = areEmpty(self->results);
  if (self->isEmpty)
    return self;
  Result<Version *> version = self->getVersion();
  if (!version)
    return version.error();
  // The workspace is not there yet; its own alignment serves to check.
  if (Status status =
          self->prepareVersion(**version, CUdeviceptr(kWorkspaceAlignment));
      !status.ok())
    return status.error();
  return self;
}

TensorView *BoundLaunch::getTensor(size_t index) {
  return index < arguments.size() ? std::get_if<TensorView>(&arguments[index])
                                  : &results[index - arguments.size()];
}

Status BoundLaunch::setAddresses(const uint64_t *addresses) {
  const ManifestFunction &function = kernel.function;
  size_t count = arguments.size() + results.size();
  for (size_t i = 0; i < count; ++i) {
    TensorView *tensor = getTensor(i);
    if (!tensor || tensor->data == addresses[i])
      continue;
    if (!tensor->isEmpty() &&
        (addresses[i] == 0 ||
         addresses[i] % uint64_t(function.getTensor(i).alignment) != 0))
      return Error{function.describeTensor(i) +
                   ": expected an address that is a multiple of " +
                   std::to_string(function.getTensor(i).alignment) +
                   " bytes and not null; copy the tensor to an aligned one"};
    tensor->data = addresses[i];
  }
  if (usesAddresses)
    for (const ManifestTensorName &name : function.tensorNames)
      if (!name.dim)
        environment.set(name.name, int64_t(getTensor(name.tensor)->data));
  return {};
}

Result<BoundLaunch::Version *> BoundLaunch::getVersion() {
  const ManifestFunction &function = kernel.function;
  if (usesAddresses || !versions[version]) {
    Result<size_t> index = chooseVersion(function, environment);
    if (!index)
      return index.error();
    version = *index;
  }
  std::unique_ptr<Version> &current = versions[version];
  if (!current) {
    Result<WorkspaceLayout> layout =
        layOutWorkspace(function, function.versions[version], environment);
    if (!layout)
      return layout.error();
    current = std::make_unique<Version>();
    current->layout = std::move(*layout);
  }
  return current.get();
}

Status BoundLaunch::prepareVersion(Version &current, CUdeviceptr start) {
  const ManifestFunction &function = kernel.function;
  TensorMapCache *cache = kernel.tensorMaps.get();
  const ManifestVersion &entry = function.versions[version];
  current.workspace = placeWorkspace(current.layout, start);
  if (current.launches.empty()) {
    Result<std::vector<PreparedLaunch>> launches =
        prepare(function, entry, arguments, results, current.workspace,
                environment, cache);
    if (!launches)
      return launches.error();
    current.launches = std::move(*launches);
    for (size_t i = 0; i < entry.kernels.size(); ++i) {
      const ManifestKernel &described = entry.kernels[i];
      Result<std::vector<ParameterValue>> values =
          evaluateParameters(function, described, arguments, results,
                             current.workspace, environment);
      if (!values)
        return values.error();
      for (size_t j = 0; j < described.parameters.size(); ++j) {
        const ManifestParameter &parameter = described.parameters[j];
        void *storage = current.launches[i].addresses[j];
        if (parameter.kind == ManifestParameter::Kind::Pointer)
          current.places.push_back({parameter.tensor, storage, std::nullopt});
        // The map of a tensor without elements is at the address of another.
        if (parameter.kind == ManifestParameter::Kind::TensorMap)
          current.places.push_back({parameter.tensor, storage,
                                    std::get<TensorMapRequest>((*values)[j])});
      }
    }
    return {};
  }
  size_t numGiven = arguments.size() + results.size();
  for (Version::Place &place : current.places) {
    const TensorView &tensor = place.tensor < numGiven
                                   ? *getTensor(place.tensor)
                                   : current.workspace[place.tensor - numGiven];
    if (!place.request) {
      *static_cast<uint64_t *>(place.storage) = tensor.data;
      continue;
    }
    if (tensor.isEmpty() || place.request->address == tensor.data)
      continue;
    TensorMapRequest request = *place.request;
    request.address = tensor.data;
    if (Status status =
            cache->get(request, *static_cast<CUtensorMap *>(place.storage));
        !status.ok())
      return Error{function.describeTensor(place.tensor) + ": " +
                   status.error().message};
    place.request = request;
  }
  return {};
}

Result<int64_t> BoundLaunch::getWorkspaceSize() const {
  const ManifestFunction &function = kernel.function;
  int64_t most = 0;
  if (isEmpty || function.workspace.empty())
    return most;
  for (size_t i = 0; i < function.versions.size(); ++i) {
    // Without addresses to choose by, it is always the same version.
    if (!usesAddresses && i != version)
      continue;
    Result<WorkspaceLayout> layout =
        layOutWorkspace(function, function.versions[i], environment);
    if (!layout)
      return layout.error();
    most = std::max(most, layout->bytes);
  }
  return most;
}

Status BoundLaunch::launch(CUstream stream, const uint64_t *addresses,
                           CUdeviceptr workspace) {
  if (isEmpty)
    return {};
  if (Status status = setAddresses(addresses); !status.ok())
    return status;
  Result<Version *> current = getVersion();
  if (!current)
    return current.error();
  std::optional<PooledMemory> pooled;
  Result<CUdeviceptr> start =
      getWorkspace(kernel.module->getDevice(), stream, (*current)->layout.bytes,
                   workspace, pooled);
  if (!start)
    return start.error();
  if (Status status = prepareVersion(**current, *start); !status.ok())
    return status;
  return kernel.launchKernels(stream, version, (*current)->launches);
}
