//===- RunSetup.cpp - What the flags of attnfuse-run ask for --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunSetup.h"
#include "attnfuse/Runner/Npy.h"
#include "attnfuse/Support/MakeError.h"
#include "attnfuse/Target/TargetInfo.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::HostTensor;
using ::attnfuse::MemoryLayout;
using ::attnfuse::OutputFiles;

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

static llvm::Expected<MemoryLayout> getLayout(const RunOptions &options) {
  if (!options.chip.empty())
    if (auto target = lookupTarget(options.chip); !target)
      return target.takeError();
  auto layout = ::attnfuse::parseMemoryLayout(options.layout);
  if (!layout)
    return makeError("expected layout bhnd, bnhd or strided, got '" +
                     options.layout + "'");
  return *layout;
}

llvm::Expected<std::unique_ptr<CudaDevice>>
mlir::attnfuse::openCudaDevice(const RunOptions &options) {
  llvm::Expected<MemoryLayout> layout = getLayout(options);
  if (!layout)
    return layout.takeError();
  StringRef name = options.device;
  int ordinal = 0;
  if (!name.consume_front("cuda") ||
      (!name.empty() && (!name.consume_front(":") ||
                         name.getAsInteger(10, ordinal) || ordinal < 0)))
    return makeError(Twine(options.tune ? "--tune measures on a GPU: expected "
                                          "device "
                                        : "expected device cpu, ") +
                     "cuda or cuda:N, got '" + options.device + "'");
  return CudaDevice::open(ordinal, options.chip, options.rotation,
                          options.keySplits, *layout);
}

llvm::Expected<std::unique_ptr<Device>>
mlir::attnfuse::openDevice(const RunOptions &options) {
  if (options.device != "cpu")
    return openCudaDevice(options);
  llvm::Expected<MemoryLayout> layout = getLayout(options);
  if (!layout)
    return layout.takeError();
  if (*layout != MemoryLayout::BHND)
    return makeError("layout " + options.layout +
                     " is for GPUs: expected --device=cuda, or layout bhnd");
  return makeCpuDevice();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<func::FuncOp>>
mlir::attnfuse::selectFunctions(ModuleOp module, const RunOptions &options) {
  std::vector<func::FuncOp> all, selected;
  std::vector<StringRef> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      all.push_back(function);
      names.push_back(function.getName());
    }
  for (const std::string &name : options.functions) {
    auto found = llvm::find(names, name);
    if (found == names.end())
      return makeError("unknown function '" + name + "': the module has " +
                       (names.empty() ? "none" : llvm::join(names, ", ")));
    func::FuncOp function = all[found - names.begin()];
    // Named twice it runs once.
    if (!llvm::is_contained(selected, function))
      selected.push_back(function);
  }
  if (!selected.empty())
    return selected;
  if (all.empty())
    return makeError("the module has no function with a body");
  return all;
}

OwningOpRef<ModuleOp> mlir::attnfuse::isolate(ModuleOp module,
                                              StringRef function) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (auto other : llvm::make_early_inc_range(copy->getOps<func::FuncOp>()))
    if (other.getName() != function)
      other.erase();
  return copy;
}

//===----------------------------------------------------------------------===//
// Files and sizes
//===----------------------------------------------------------------------===//

/// "NAME=FILE" to (NAME, FILE).
static llvm::Expected<std::map<std::string, std::string>>
parseFiles(ArrayRef<std::string> flags, StringRef flag) {
  std::map<std::string, std::string> files;
  for (StringRef entry : flags) {
    auto [name, file] = entry.split('=');
    if (name.empty() || file.empty())
      return makeError("expected --" + flag + " NAME=FILE, got '" + entry +
                       "'");
    if (!files.emplace(name, file).second)
      return makeError("--" + flag + " gives '" + name + "' twice");
  }
  return files;
}

llvm::Expected<std::map<std::string, std::string>>
mlir::attnfuse::parseOutputs(const RunOptions &options) {
  return parseFiles(options.outputs, "output");
}

llvm::Error mlir::attnfuse::declareOutputs(const RunOptions &options,
                                           ArrayRef<std::string> outputs,
                                           OutputFiles &files) {
  auto inputs = parseFiles(options.inputs, "input");
  if (!inputs)
    return inputs.takeError();
  files.protectInput(options.source);
  for (const auto &[name, file] : *inputs)
    files.protectInput(file);
  for (const std::string &file : outputs)
    if (::attnfuse::Status status = files.add(file); !status.ok())
      return makeError(status.error().message);
  return llvm::Error::success();
}

/// Finds the flags that are meant for some of the functions only.
static void findForeignNames(ArrayRef<func::FuncOp> functions,
                             const RunOptions &options, InputSpec &spec) {
  for (func::FuncOp function : functions) {
    llvm::Expected<DimensionClasses> classes =
        DimensionClasses::analyze(function);
    if (!classes) {
      // Whoever compiles the function reports it.
      llvm::consumeError(classes.takeError());
      continue;
    }
    for (StringRef dims : options.dims)
      for (StringRef key : getDimsKeys(dims))
        if (hasDimension(*classes, key))
          spec.foreignDims.insert(key.str());
    for (const ArgumentRole &role : classes->getArguments())
      if (spec.given.count(role.name))
        spec.foreignArguments.insert(role.name);
  }
}

llvm::Expected<InputSpec>
mlir::attnfuse::readInputs(ArrayRef<func::FuncOp> functions,
                           const RunOptions &options) {
  auto files = parseFiles(options.inputs, "input");
  if (!files)
    return files.takeError();
  InputSpec spec;
  spec.seed = options.seed;
  for (const auto &[name, file] : *files) {
    ::attnfuse::Result<HostTensor> tensor = ::attnfuse::readNpy(file);
    if (!tensor)
      return makeError(tensor.error().message);
    spec.given.emplace(name, std::move(*tensor));
  }
  findForeignNames(functions, options, spec);
  return spec;
}

std::vector<std::string> mlir::attnfuse::getCalls(const RunOptions &options) {
  return options.dims.empty() ? std::vector<std::string>{""} : options.dims;
}

std::string mlir::attnfuse::describeSizes(const DimensionClasses &classes,
                                          const DimensionSizes &sizes) {
  SmallVector<std::string> parts;
  for (auto [index, entry] : llvm::enumerate(classes.getClasses()))
    if (!entry.staticSize && sizes.get(index))
      parts.push_back(entry.names.front() + "=" +
                      std::to_string(*sizes.get(index)));
  return parts.empty() ? "" : "[" + llvm::join(parts, ", ") + "] ";
}
