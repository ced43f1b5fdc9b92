//===- AttnFuse.h - The attnfuse dialect ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything the tensor-level dialect declares: dialect, enums, attributes,
// ops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSE_H
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSE_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseEnums.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttributeNames.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseAttrs.h.inc"

#define GET_OP_CLASSES
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseOps.h.inc"

namespace mlir::attnfuse {

/// Window bounds, constant offsets and block sizes are below this, so that
/// sums of a few of them and of lengths cannot overflow 64 bits.
constexpr int64_t kMaxExtent = int64_t(1) << 31;

/// Most blocks that may share the keys of a query tile.
constexpr int64_t kMaxKeySplits = 1024;
/// Slots for tiles of K and V of a kernel without a pipeline.
constexpr int64_t kMaxUnpipelinedStages = 4;

/// Lower scores are taken as this (spec S5). A softmax in base 2 can multiply
/// it by log2(e) without overflow, which the lowest f32 would not survive.
constexpr double kLowestScore = -0x1p127;

/// The standard ALiBi slope of `head` among `numHeads` (arXiv 2108.12409; any
/// number of heads, see attnfuse.alibi).
double getAlibiSlope(int64_t head, int64_t numHeads);

/// The difference between the key index and the query index of the diagonal.
inline int64_t getDiagonalOffset(Alignment align, int64_t nq, int64_t nkv) {
  return align == Alignment::BottomRight ? nkv - nq : 0;
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSE_H
