//===- CudaDevice.cpp - Runs functions on an NVIDIA GPU -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "DeviceImage.h"
#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Runtime/Kernel.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ArgumentValue;
using ::attnfuse::CudaDeviceRef;
using ::attnfuse::CudaEvent;
using ::attnfuse::CudaStream;
using ::attnfuse::CUdeviceptr;
using ::attnfuse::DeviceBuffer;
using ::attnfuse::DeviceImage;
using ::attnfuse::HostTensor;
using ::attnfuse::ImageLayout;
using ::attnfuse::Kernel;
using ::attnfuse::ManifestFunction;
using ::attnfuse::MemoryLayout;
using ::attnfuse::TensorView;

static llvm::Error toError(const ::attnfuse::Error &error) {
  return llvm::createStringError(error.message);
}

static llvm::Error toError(const ::attnfuse::Status &status) {
  return status.ok() ? llvm::Error::success() : toError(status.error());
}

namespace {
/// More than any L2 cache, and about what a timing takes in all.
constexpr size_t kFlushBytes = size_t(256) << 20;
constexpr double kTimedSeconds = 0.1;

/// A tensor on the device, and what its buffer held when it was filled.
struct DeviceTensor {
  DeviceImage image;
  std::vector<std::byte> contents;
  DeviceBuffer buffer;
  TensorView view;

  static llvm::Expected<DeviceTensor> create(CudaDeviceRef device,
                                             const HostTensor &tensor,
                                             const ImageLayout &layout,
                                             bool isPoison) {
    DeviceTensor result{
        DeviceImage(tensor.getType(), tensor.getShape(), layout), {}, {}, {}};
    result.contents =
        isPoison ? result.image.makePoison() : result.image.pack(tensor);
    auto buffer =
        DeviceBuffer::allocate(std::move(device), result.contents.size());
    if (!buffer)
      return toError(buffer.error());
    result.buffer = std::move(*buffer);
    result.view = {result.buffer.get() + result.image.getOffset(),
                   tensor.getType(), tensor.getShape(),
                   result.image.getStrides()};
    if (llvm::Error error = result.upload())
      return std::move(error);
    return result;
  }

  llvm::Error upload() {
    return toError(buffer.copyFromHost(contents.data(), contents.size()));
  }
  llvm::Expected<std::vector<std::byte>> download() const {
    std::vector<std::byte> bytes(contents.size());
    if (llvm::Error error =
            toError(buffer.copyToHost(bytes.data(), bytes.size())))
      return std::move(error);
    return bytes;
  }
};

/// The operands of launches of one call.
struct DeviceCall {
  std::vector<DeviceTensor> arguments, results;
  /// Names of `arguments`, which leave out the scalars.
  std::vector<std::string> names;
  std::vector<ArgumentValue> values;
  std::vector<TensorView> resultViews;
  /// Poisoned as results are.
  std::optional<DeviceTensor> workspace;

  CUdeviceptr getWorkspace() const {
    return workspace ? workspace->view.data : 0;
  }

  static llvm::Expected<DeviceCall> create(CudaDeviceRef device,
                                           const ManifestFunction &function,
                                           MemoryLayout layout,
                                           ArrayRef<HostTensor> arguments,
                                           ArrayRef<HostTensor> results) {
    DeviceCall call;
    if (function.arguments.size() != arguments.size() ||
        function.results.size() != results.size())
      return llvm::createStringError(
          "the manifest has other arguments or results than the function");
    for (auto [argument, tensor] :
         llvm::zip_equal(function.arguments, arguments)) {
      if (argument.isScalar()) {
        call.values.push_back(tensor.getInt(0));
        continue;
      }
      auto onDevice = DeviceTensor::create(
          device, tensor, getImageLayout(layout, argument), false);
      if (!onDevice)
        return onDevice.takeError();
      call.values.push_back(onDevice->view);
      call.arguments.push_back(std::move(*onDevice));
      call.names.push_back(argument.name);
    }
    for (auto [result, tensor] : llvm::zip_equal(function.results, results)) {
      auto onDevice = DeviceTensor::create(
          device, tensor, getImageLayout(layout, result), true);
      if (!onDevice)
        return onDevice.takeError();
      call.resultViews.push_back(onDevice->view);
      call.results.push_back(std::move(*onDevice));
    }
    return call;
  }

  llvm::Error checkArguments() const {
    for (auto [tensor, name] : llvm::zip_equal(arguments, names)) {
      llvm::Expected<std::vector<std::byte>> now = tensor.download();
      if (!now)
        return now.takeError();
      if (*now != tensor.contents)
        return llvm::createStringError("the kernel wrote to argument '" + name +
                                       "' or beside it");
    }
    return llvm::Error::success();
  }
};

class CudaFunction : public DeviceFunction {
public:
  CudaFunction(CudaDeviceRef device, Kernel kernel, CudaStream stream,
               MemoryLayout layout)
      : device(std::move(device)), kernel(std::move(kernel)),
        stream(std::move(stream)), layout(layout) {}

  llvm::Error run(ArrayRef<HostTensor> arguments,
                  MutableArrayRef<HostTensor> results, int numRuns) override {
    llvm::Expected<DeviceCall> call = createCall(arguments, results);
    if (!call)
      return call.takeError();
    for (int run = 0; run < numRuns; ++run) {
      for (DeviceTensor &tensor : call->results)
        if (llvm::Error error = tensor.upload())
          return error;
      if (call->workspace)
        if (llvm::Error error = call->workspace->upload())
          return error;
      if (llvm::Error error = launch(*call))
        return error;
      if (llvm::Error error = toError(stream.synchronize()))
        return error;
      if (llvm::Error error = readResults(*call, results, run == 0))
        return error;
    }
    if (llvm::Error error = call->checkArguments())
      return error;
    return checkWorkspace(*call);
  }

  llvm::Expected<Timing> time(ArrayRef<HostTensor> arguments,
                              ArrayRef<HostTensor> results) override {
    llvm::Expected<DeviceCall> call = createCall(arguments, results);
    if (!call)
      return call.takeError();
    auto flush = DeviceBuffer::allocate(device, kFlushBytes);
    if (!flush)
      return toError(flush.error());
    llvm::Expected<std::vector<double>> warmUp = timeRuns(*call, 5, *flush);
    if (!warmUp)
      return warmUp.takeError();
    double longest = *std::max_element(warmUp->begin(), warmUp->end());
    // Short enough that the chip's clock is that of a burst, as for the peers'
    // timers.
    int numRuns = int(std::clamp(kTimedSeconds / longest, 10.0, 200.0));
    llvm::Expected<std::vector<double>> runs = timeRuns(*call, numRuns, *flush);
    if (!runs)
      return runs.takeError();
    llvm::Expected<double> backToBack = timeBackToBack(*call, numRuns);
    if (!backToBack)
      return backToBack.takeError();
    return Timing{std::move(*runs), *backToBack};
  }

private:
  llvm::Expected<DeviceCall> createCall(ArrayRef<HostTensor> arguments,
                                        ArrayRef<HostTensor> results) {
    auto call = DeviceCall::create(device, kernel.getFunction(), layout,
                                   arguments, results);
    if (!call)
      return call.takeError();
    auto bytes = kernel.getWorkspaceSize(call->values, call->resultViews);
    if (!bytes)
      return toError(bytes.error());
    if (*bytes == 0)
      return call;
    HostTensor unknown(::attnfuse::ElementType::I32, {*bytes / 4});
    auto workspace = DeviceTensor::create(device, unknown, {}, true);
    if (!workspace)
      return workspace.takeError();
    call->workspace = std::move(*workspace);
    return call;
  }

  llvm::Error launch(const DeviceCall &call) {
    return toError(kernel.launch(stream.get(), call.values, call.resultViews,
                                 call.getWorkspace()));
  }

  static llvm::Error checkWorkspace(const DeviceCall &call) {
    if (!call.workspace)
      return llvm::Error::success();
    llvm::Expected<std::vector<std::byte>> bytes = call.workspace->download();
    if (!bytes)
      return bytes.takeError();
    if (!call.workspace->image.hasIntactGuards(*bytes))
      return llvm::createStringError("the kernel wrote beside the workspace");
    return llvm::Error::success();
  }

  llvm::Error readResults(const DeviceCall &call,
                          MutableArrayRef<HostTensor> results, bool isFirst) {
    for (auto [tensor, result, description] :
         llvm::zip_equal(call.results, results, kernel.getFunction().results)) {
      llvm::Expected<std::vector<std::byte>> bytes = tensor.download();
      if (!bytes)
        return bytes.takeError();
      if (!tensor.image.hasIntactGuards(*bytes))
        return llvm::createStringError("the kernel wrote beside result '" +
                                       description.name + "'");
      HostTensor values = tensor.image.unpack(*bytes);
      if (isFirst)
        result = std::move(values);
      else if (!isSame(result, values))
        return llvm::createStringError("two runs gave different values of '" +
                                       description.name + "'");
    }
    return llvm::Error::success();
  }

  llvm::Expected<std::vector<CudaEvent>> createEvents(int count) {
    std::vector<CudaEvent> events;
    for (int event = 0; event < count; ++event) {
      auto created = CudaEvent::create(device);
      if (!created)
        return toError(created.error());
      events.push_back(std::move(*created));
    }
    return events;
  }

  llvm::Expected<double> getSeconds(const CudaEvent &start,
                                    const CudaEvent &end) {
    auto ms = end.getMillisecondsSince(start);
    if (!ms)
      return toError(ms.error());
    return std::max(double(*ms), 1e-6) * 1e-3;
  }

  /// Each run after `flush` has been written, which empties the L2 cache.
  llvm::Expected<std::vector<double>>
  timeRuns(const DeviceCall &call, int numRuns, DeviceBuffer &flush) {
    llvm::Expected<std::vector<CudaEvent>> events = createEvents(2 * numRuns);
    if (!events)
      return events.takeError();
    for (int run = 0; run < numRuns; ++run) {
      if (llvm::Error error = toError(flush.fill(0, stream.get())))
        return std::move(error);
      if (llvm::Error error = toError((*events)[2 * run].record(stream.get())))
        return std::move(error);
      if (llvm::Error error = launch(call))
        return std::move(error);
      if (llvm::Error error =
              toError((*events)[2 * run + 1].record(stream.get())))
        return std::move(error);
    }
    if (llvm::Error error = toError(stream.synchronize()))
      return std::move(error);
    std::vector<double> seconds;
    for (int run = 0; run < numRuns; ++run) {
      llvm::Expected<double> time =
          getSeconds((*events)[2 * run], (*events)[2 * run + 1]);
      if (!time)
        return time.takeError();
      seconds.push_back(*time);
    }
    return seconds;
  }

  llvm::Expected<double> timeBackToBack(const DeviceCall &call, int numRuns) {
    llvm::Expected<std::vector<CudaEvent>> events = createEvents(2);
    if (!events)
      return events.takeError();
    if (llvm::Error error = toError((*events)[0].record(stream.get())))
      return std::move(error);
    for (int run = 0; run < numRuns; ++run)
      if (llvm::Error error = launch(call))
        return std::move(error);
    if (llvm::Error error = toError((*events)[1].record(stream.get())))
      return std::move(error);
    if (llvm::Error error = toError(stream.synchronize()))
      return std::move(error);
    llvm::Expected<double> time = getSeconds((*events)[0], (*events)[1]);
    if (!time)
      return time.takeError();
    return *time / numRuns;
  }

  CudaDeviceRef device;
  Kernel kernel;
  CudaStream stream;
  MemoryLayout layout;
};

class CudaDevice : public Device {
public:
  CudaDevice(CudaDeviceRef device, CompileOptions options, MemoryLayout layout)
      : device(std::move(device)), options(std::move(options)), layout(layout) {
  }

  std::string getName() const override {
    return "cuda:" + std::to_string(device->getOrdinal()) + " (" +
           device->getName() + ")";
  }

  llvm::Expected<std::unique_ptr<DeviceFunction>>
  compile(ModuleOp module, StringRef function) override {
    llvm::Expected<CompiledModule> compiled = compileModule(module, options);
    if (!compiled)
      return compiled.takeError();
    auto manifest = ::attnfuse::parseManifest(compiled->manifest);
    if (!manifest)
      return toError(manifest.error());
    auto kernel =
        Kernel::load(device, *manifest, function.str(), compiled->code);
    if (!kernel)
      return toError(kernel.error());
    auto stream = CudaStream::create(device);
    if (!stream)
      return toError(stream.error());
    return std::make_unique<CudaFunction>(device, std::move(*kernel),
                                          std::move(*stream), layout);
  }

private:
  CudaDeviceRef device;
  CompileOptions options;
  MemoryLayout layout;
};
} // namespace

llvm::Expected<std::unique_ptr<Device>>
mlir::attnfuse::makeCudaDevice(int ordinal, StringRef chip, StringRef rotation,
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
  return std::make_unique<CudaDevice>(
      std::move(*device),
      CompileOptions{target, EmitLevel::PTX, rotation.str(), keySplits, {}},
      layout);
}
