//===- Lanes.h - Scalar ops on many values at once --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_LANES_H
#define ATTNFUSE_LIB_REFERENCE_LANES_H

#include "Array.h"
#include "mlir/IR/Operation.h"

namespace mlir::attnfuse::reference {

/// One scalar value for each of many keys: one of the vectors is used.
/// Integers are held sign-extended to 64 bits, an i1 as 0 or 1.
struct Lanes {
  std::vector<double> floats;
  std::vector<int64_t> ints;
};

/// Evaluates an arith or math op, or attnfuse.alibi_slope, on every lane.
/// Whatever the values, it returns: a division by zero gives 0. Fails on an op
/// that it does not know.
FailureOr<Lanes> evaluateLanes(Operation *op, ArrayRef<const Lanes *> operands,
                               size_t count);

/// True if the op's result is rounded, in a float type: not for constants,
/// selections and sign changes.
bool isRounding(Operation *op);

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_LANES_H
