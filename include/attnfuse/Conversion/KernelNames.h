//===- KernelNames.h - How a function's kernels are named -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of function f are f and f with one or more of these suffixes,
// which no function's own name holds. docs/python.md lists what they mean.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_CONVERSION_KERNELNAMES_H
#define ATTNFUSE_CONVERSION_KERNELNAMES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attnfuse {

/// Rotates a tensor for the kernels after it; those of the second tensor on
/// have its number behind this.
inline constexpr llvm::StringLiteral kRotateSuffix = "$rotate";
/// Rotates k itself, where another version has it rotated before.
inline constexpr llvm::StringLiteral kFusedSuffix = "$fused";
/// Has smaller tiles, for few queries.
inline constexpr llvm::StringLiteral kFewRowsSuffix = "$few_rows";
/// Takes any strides of a bias.
inline constexpr llvm::StringLiteral kAnyStridesSuffix = "$any_strides";
/// Splits the keys of a query tile in parts; their number is known at a launch.
inline constexpr llvm::StringLiteral kSplitKeysSuffix = "$split_keys";
/// Puts the parts of the kernel before it together.
inline constexpr llvm::StringLiteral kCombineSuffix = "$combine";

} // namespace mlir::attnfuse

#endif // ATTNFUSE_CONVERSION_KERNELNAMES_H
