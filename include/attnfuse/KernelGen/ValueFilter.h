//===- ValueFilter.h - Infinite and NaN elements of V -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight of 0 adds nothing though its V be infinite or NaN (spec S7), which
// no product of matrices gives. Two products do: of the weights with the finite
// elements, and with marks of the others; the result is NaN where the second is
// not 0.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_VALUEFILTER_H
#define ATTNFUSE_KERNELGEN_VALUEFILTER_H

#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen {

/// Of an i32 of two elements of `type` (f16 or bf16): the finite ones, with 0
/// for the others, if `keepsFinite`, else 1 for the others and 0 for them.
Value filterValues(KernelBuilder &b, Value pair, Type type, Value keepsFinite);

/// Of two such i32, element by element: that of `pair` where it is finite, else
/// that of `other`.
Value replaceNonFinite(KernelBuilder &b, Value pair, Value other, Type type);

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_VALUEFILTER_H
