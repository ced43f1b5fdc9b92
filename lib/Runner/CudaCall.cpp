//===- CudaCall.cpp - The tensors of a call on a GPU ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaCall.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::CudaDeviceRef;
using ::attnfuse::DeviceBuffer;
using ::attnfuse::DeviceImage;
using ::attnfuse::HostTensor;
using ::attnfuse::ImageLayout;
using ::attnfuse::ManifestFunction;
using ::attnfuse::MemoryLayout;

llvm::Expected<DeviceTensor> DeviceTensor::create(CudaDeviceRef device,
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

llvm::Error DeviceTensor::upload() {
  return toError(buffer.copyFromHost(contents.data(), contents.size()));
}

llvm::Error DeviceTensor::download(std::vector<std::byte> &bytes) const {
  bytes.resize(contents.size());
  return toError(buffer.copyToHost(bytes.data(), bytes.size()));
}

llvm::Expected<CudaCall> CudaCall::create(CudaDeviceRef device,
                                          const ManifestFunction &function,
                                          MemoryLayout layout,
                                          llvm::ArrayRef<HostTensor> arguments,
                                          llvm::ArrayRef<HostTensor> results) {
  CudaCall call;
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
    auto onDevice = DeviceTensor::create(device, tensor,
                                         getImageLayout(layout, result), true);
    if (!onDevice)
      return onDevice.takeError();
    call.resultViews.push_back(onDevice->view);
    call.results.push_back(std::move(*onDevice));
  }
  return call;
}

llvm::Error CudaCall::growWorkspace(CudaDeviceRef device, int64_t bytes) {
  if (bytes == 0 || (workspace && workspace->view.shape[0] * 4 >= bytes))
    return llvm::Error::success();
  HostTensor unknown(::attnfuse::ElementType::I32, {bytes / 4});
  auto larger = DeviceTensor::create(std::move(device), unknown, {}, true);
  if (!larger)
    return larger.takeError();
  workspace = std::move(*larger);
  return llvm::Error::success();
}

llvm::Error CudaCall::poison() {
  for (DeviceTensor &tensor : results)
    if (llvm::Error error = tensor.upload())
      return error;
  return workspace ? workspace->upload() : llvm::Error::success();
}

llvm::Error CudaCall::checkArguments() {
  for (auto [tensor, name] : llvm::zip_equal(arguments, names)) {
    if (llvm::Error error = tensor.download(downloaded))
      return error;
    if (downloaded != tensor.contents)
      return llvm::createStringError("the kernel wrote to argument '" + name +
                                     "' or beside it");
  }
  return llvm::Error::success();
}

llvm::Error CudaCall::checkWorkspace() {
  if (!workspace)
    return llvm::Error::success();
  if (llvm::Error error = workspace->download(downloaded))
    return error;
  if (!workspace->image.hasIntactGuards(downloaded))
    return llvm::createStringError("the kernel wrote beside the workspace");
  return llvm::Error::success();
}
