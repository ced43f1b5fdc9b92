//===- AttnFuseEnums.h - The enums of the dialect ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On their own, for what describes kernels without IR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEENUMS_H
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEENUMS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseEnums.h.inc"

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEENUMS_H
