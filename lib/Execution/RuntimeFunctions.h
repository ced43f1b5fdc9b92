//===- RuntimeFunctions.h - What compiled code calls by name -*- C++ -*-
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_EXECUTION_RUNTIMEFUNCTIONS_H
#define ATTNFUSE_LIB_EXECUTION_RUNTIMEFUNCTIONS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::attnfuse {

/// Calls `define` with the name and the address of every function that the
/// lowering or the host's code generator may call and that the C library does
/// not have: buffers (of BufferArena), copies between layouts, and on x86-64
/// conversions of 16-bit floats for processors that lack them.
void forEachRuntimeFunction(
    llvm::function_ref<void(llvm::StringRef name, void *address)> define);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_EXECUTION_RUNTIMEFUNCTIONS_H
