//===- HostTypes.cpp - Element types in host memory -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Execution/HostTypes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using ::attnfuse::ElementType;

std::optional<ElementType> mlir::attnfuse::getHostElementType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = tensor.getElementType();
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  if (type.isSignlessInteger(32))
    return ElementType::I32;
  if (type.isSignlessInteger(64) || type.isIndex())
    return ElementType::I64;
  return std::nullopt;
}
