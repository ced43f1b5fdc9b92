//===- RotationChoice.h - Where q and k shall be rotated --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_ROTATIONCHOICE_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_ROTATIONCHOICE_H

#include "llvm/Support/CommandLine.h"

namespace mlir::attnfuse {

/// What to write into rotation plans.
enum class RotationChoice { Auto, Fused, Split, SplitBoth };

/// Their names, for options of passes and tools.
inline llvm::cl::ValuesClass getRotationChoices() {
  return llvm::cl::values(
      clEnumValN(RotationChoice::Auto, "auto", "by predicted times (default)"),
      clEnumValN(RotationChoice::Fused, "fused", "both in the kernel"),
      clEnumValN(RotationChoice::Split, "split", "k before the kernel"),
      clEnumValN(RotationChoice::SplitBoth, "split_both",
                 "both before the kernel"));
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_ROTATIONCHOICE_H
