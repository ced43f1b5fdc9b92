//===- Explain.h - What the compiler decided, in words ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_COMPILER_EXPLAIN_H
#define ATTNFUSE_LIB_COMPILER_EXPLAIN_H

#include "attnfuse/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::attnfuse {

/// The building blocks of each function, in order, by mnemonic.
using BlocksByFunction = llvm::MapVector<StringRef, SmallVector<StringRef>>;

BlocksByFunction collectBlocks(ModuleOp module);

/// A paragraph for each function of the scheduled `module`. `written` are the
/// blocks as the user wrote them; `kernels` is the same module after the
/// conversion to kernels, or what that left where it failed.
std::string explain(ModuleOp module, const BlocksByFunction &written,
                    const TargetInfo &target, ModuleOp kernels);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_COMPILER_EXPLAIN_H
