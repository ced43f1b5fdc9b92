//===- CudaFunction.cpp - A function on an NVIDIA GPU ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaFunction.h"
#include "attnfuse/Conversion/KernelNames.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ArgumentValue;
using ::attnfuse::BoundLaunch;
using ::attnfuse::CudaEvent;
using ::attnfuse::DeviceBuffer;
using ::attnfuse::HostTensor;
using ::attnfuse::Status;
using ::attnfuse::TensorView;

namespace {
/// More than any L2 cache, and about what a timing takes in all.
constexpr size_t kFlushBytes = size_t(256) << 20;
constexpr double kTimedSeconds = 0.1;
} // namespace

llvm::Error CudaFunction::run(ArrayRef<HostTensor> arguments,
                              MutableArrayRef<HostTensor> results,
                              int numRuns) {
  llvm::Expected<CudaCall> call = createCall(arguments, results);
  if (!call)
    return call.takeError();
  return runCall(*call, results, numRuns);
}

llvm::Error CudaFunction::runCall(CudaCall &call,
                                  MutableArrayRef<HostTensor> results,
                                  int numRuns) {
  auto bytes = kernel.getWorkspaceSize(call.values, call.resultViews);
  if (!bytes)
    return toError(bytes.error());
  if (llvm::Error error = call.growWorkspace(device, *bytes))
    return error;
  for (int run = 0; run < numRuns; ++run) {
    if (llvm::Error error = call.poison())
      return error;
    if (llvm::Error error = toError(launch(call)))
      return error;
    if (llvm::Error error = toError(stream.synchronize()))
      return error;
    if (llvm::Error error = readResults(call, results, run == 0))
      return error;
  }
  if (llvm::Error error = call.checkArguments())
    return error;
  return call.checkWorkspace();
}

llvm::Expected<DeviceFunction::Timing>
CudaFunction::time(ArrayRef<HostTensor> arguments,
                   ArrayRef<HostTensor> results) {
  llvm::Expected<CudaCall> call = createCall(arguments, results);
  if (!call)
    return call.takeError();
  llvm::Expected<DeviceBuffer> flush = createFlush();
  if (!flush)
    return flush.takeError();
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
  llvm::Expected<double> backToBack =
      timeBackToBack(numRuns, [&] { return launch(*call); });
  if (!backToBack)
    return backToBack.takeError();
  return Timing{std::move(*runs), *backToBack};
}

llvm::Expected<CudaCall>
CudaFunction::createCall(ArrayRef<HostTensor> arguments,
                         ArrayRef<HostTensor> results) {
  auto call = CudaCall::create(device, kernel.getFunction(), layout, arguments,
                               results);
  if (!call)
    return call.takeError();
  auto bytes = kernel.getWorkspaceSize(call->values, call->resultViews);
  if (!bytes)
    return toError(bytes.error());
  if (llvm::Error error = call->growWorkspace(device, *bytes))
    return std::move(error);
  return call;
}

llvm::Expected<double> CudaFunction::sample(const CudaCall &call, int numRuns,
                                            DeviceBuffer &flush) {
  // Bound, so that the host keeps ahead of short kernels.
  auto bound = BoundLaunch::create(kernel, call.values, call.resultViews);
  if (!bound)
    return toError(bound.error());
  std::vector<uint64_t> addresses;
  for (const ArgumentValue &value : call.values) {
    auto *tensor = std::get_if<TensorView>(&value);
    addresses.push_back(tensor ? tensor->data : 0);
  }
  for (const TensorView &view : call.resultViews)
    addresses.push_back(view.data);
  if (llvm::Error error = toError(flush.fill(0, stream.get())))
    return std::move(error);
  return timeBackToBack(numRuns, [&] {
    return (*bound)->launch(stream.get(), addresses.data(),
                            call.getWorkspace());
  });
}

llvm::Expected<std::string>
CudaFunction::getKernelName(const CudaCall &call) const {
  auto version = kernel.getVersion(call.values, call.resultViews);
  if (!version)
    return toError(version.error());
  // Rotations come before it; what combines its parts comes after.
  StringRef name = (*version)->kernels.back().name;
  name.consume_back(kCombineSuffix);
  return name.str();
}

llvm::Expected<DeviceBuffer> CudaFunction::createFlush() const {
  auto flush = DeviceBuffer::allocate(device, kFlushBytes);
  if (!flush)
    return toError(flush.error());
  return std::move(*flush);
}

Status CudaFunction::launch(const CudaCall &call) {
  return kernel.launch(stream.get(), call.values, call.resultViews,
                       call.getWorkspace());
}

llvm::Error CudaFunction::readResults(CudaCall &call,
                                      MutableArrayRef<HostTensor> results,
                                      bool isFirst) {
  for (auto [tensor, result, description] :
       llvm::zip_equal(call.results, results, kernel.getFunction().results)) {
    if (llvm::Error error = tensor.download(call.downloaded))
      return error;
    if (!tensor.image.hasIntactGuards(call.downloaded))
      return llvm::createStringError("the kernel wrote beside result '" +
                                     description.name + "'");
    HostTensor values = tensor.image.unpack(call.downloaded);
    if (isFirst)
      result = std::move(values);
    else if (!isSame(result, values))
      return llvm::createStringError("two runs gave different values of '" +
                                     description.name + "'");
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<CudaEvent>> CudaFunction::createEvents(int count) {
  std::vector<CudaEvent> events;
  for (int event = 0; event < count; ++event) {
    auto created = CudaEvent::create(device);
    if (!created)
      return toError(created.error());
    events.push_back(std::move(*created));
  }
  return events;
}

static llvm::Expected<double> getSeconds(const CudaEvent &start,
                                         const CudaEvent &end) {
  auto ms = end.getMillisecondsSince(start);
  if (!ms)
    return toError(ms.error());
  return std::max(double(*ms), 1e-6) * 1e-3;
}

/// Each run after `flush` has been written, which empties the L2 cache.
llvm::Expected<std::vector<double>>
CudaFunction::timeRuns(const CudaCall &call, int numRuns, DeviceBuffer &flush) {
  llvm::Expected<std::vector<CudaEvent>> events = createEvents(2 * numRuns);
  if (!events)
    return events.takeError();
  for (int run = 0; run < numRuns; ++run) {
    if (llvm::Error error = toError(flush.fill(0, stream.get())))
      return std::move(error);
    if (llvm::Error error = toError((*events)[2 * run].record(stream.get())))
      return std::move(error);
    if (llvm::Error error = toError(launch(call)))
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

llvm::Expected<double>
CudaFunction::timeBackToBack(int numRuns,
                             llvm::function_ref<Status()> launchOnce) {
  llvm::Expected<std::vector<CudaEvent>> events = createEvents(2);
  if (!events)
    return events.takeError();
  if (llvm::Error error = toError((*events)[0].record(stream.get())))
    return std::move(error);
  for (int run = 0; run < numRuns; ++run)
    if (llvm::Error error = toError(launchOnce()))
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
