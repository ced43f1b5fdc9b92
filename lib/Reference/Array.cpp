//===- Array.cpp - Tensors of the interpreter -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Array.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::attnfuse::reference;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

Array Array::fromHostTensor(const HostTensor &tensor) {
  bool isInt = tensor.getType() == ElementType::I32 ||
               tensor.getType() == ElementType::I64;
  Array array = isInt ? ofInts(tensor.getShape()) : ofFloats(tensor.getShape());
  for (int64_t index = 0, end = array.getNumElements(); index < end; ++index)
    if (isInt)
      array.ints[index] = tensor.getInt(index);
    else
      array.floats[index] = tensor.getFloat(index);
  return array;
}

double mlir::attnfuse::reference::getUnitRoundoff(Type type) {
  if (type.isF16())
    return 0x1p-11;
  if (type.isBF16())
    return 0x1p-8;
  return kRoundoffF32;
}

double mlir::attnfuse::reference::getUnderflow(Type type) {
  return type.isF16() ? 0x1p-25 : 0;
}
