//===- Array.h - Tensors of the interpreter ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_ARRAY_H
#define ATTNFUSE_LIB_REFERENCE_ARRAY_H

#include "attnfuse/Support/HostTensor.h"
#include "mlir/IR/Types.h"
#include <vector>

namespace mlir::attnfuse::reference {

/// A row-major tensor, or a scalar, of fp64 or of 64-bit integers: one of
/// `floats` and `ints` has the elements.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  /// How far an implementation's elements may be off, relative to them.
  double relativeError = 0;

  bool isFloat() const { return ints.empty() && !isInt; }
  /// True for an integer array without elements.
  bool isInt = false;

  int64_t getNumElements() const {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }

  static Array ofFloats(std::vector<int64_t> shape) {
    Array array;
    array.shape = std::move(shape);
    array.floats.resize(array.getNumElements());
    return array;
  }
  static Array ofInts(std::vector<int64_t> shape) {
    Array array;
    array.shape = std::move(shape);
    array.isInt = true;
    array.ints.resize(array.getNumElements());
    return array;
  }
  static Array fromHostTensor(const ::attnfuse::HostTensor &tensor);
};

/// Unit roundoff of a float type: half the distance from 1 to the next number.
double getUnitRoundoff(Type type);
/// Half the smallest positive number of a float type if it is large enough to
/// matter beside numbers near 1 (f16), else 0.
double getUnderflow(Type type);

inline constexpr double kRoundoffF32 = 0x1p-24;

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_ARRAY_H
