//===- IndexRanges.cpp - Index values of a score region that fit 32 bits
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/IndexRanges.h"
#include "attnfuse/KernelGen/TileWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

/// The largest value of argument number `argument` of the region.
static int64_t getMaximum(AttentionOp op, unsigned argument) {
  ArrayRef<int64_t> query = op.getQuery().getType().getShape();
  int64_t nkv = op.getKey().getType().getDimSize(2);
  auto atMost = [](int64_t size, int64_t limit) {
    return ShapedType::isDynamic(size) ? limit : size;
  };
  switch (argument) {
  case AttentionOp::B:
    return atMost(query[0], INT32_MAX);
  case AttentionOp::H:
  case AttentionOp::Hq:
    return atMost(query[1], INT32_MAX);
  case AttentionOp::I:
  case AttentionOp::Nq:
    return atMost(query[2], kMaxLength);
  default:
    return atMost(nkv, kMaxLength);
  }
}

static bool fits(const ConstantIntRanges &range) {
  return range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32);
}

/// Negative numbers mean other numbers in other widths.
static bool isUnsigned(Operation *op) {
  return isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ShRUIOp,
             arith::IndexCastUIOp>(op);
}

IndexRanges::IndexRanges(AttentionOp op) {
  if (op.getScore().empty())
    return;
  llvm::DenseMap<Value, ConstantIntRanges> ranges;
  auto getRange = [&](Value value) {
    auto known = ranges.find(value);
    return known != ranges.end()
               ? known->second
               : ConstantIntRanges::maxRange(
                     ConstantIntRanges::getStorageBitwidth(value.getType()));
  };
  Block &block = op.getScore().front();
  for (BlockArgument argument : block.getArguments().slice(
           AttentionOp::B, AttentionOp::NumFixedScoreArgs - AttentionOp::B)) {
    APInt maximum(64, getMaximum(op, argument.getArgNumber()));
    ranges.insert(
        {argument, ConstantIntRanges::fromUnsigned(APInt(64, 0), maximum)});
  }

  for (Operation &inner : block.without_terminator()) {
    auto isIndex = [](Type type) { return type.isIndex(); };
    bool touchesIndex = llvm::any_of(inner.getOperandTypes(), isIndex) ||
                        llvm::any_of(inner.getResultTypes(), isIndex);
    Value result = inner.getResult(0);
    auto inferable = dyn_cast<InferIntRangeInterface>(inner);
    if (inferable && result.getType().isIntOrIndex())
      inferable.inferResultRanges(
          llvm::map_to_vector(inner.getOperands(), getRange),
          [&](Value value, const ConstantIntRanges &range) {
            ranges.insert_or_assign(value, range);
          });
    if (!touchesIndex)
      continue;
    auto needsWide = [&](Value value) {
      return value.getType().isIndex() && !fits(getRange(value));
    };
    auto isNegative = [&](Value value) {
      return value.getType().isIndex() && getRange(value).smin().isNegative();
    };
    if (needsWide(result))
      wideValues.insert(result);
    if (needsWide(result) || llvm::any_of(inner.getOperands(), needsWide) ||
        (isUnsigned(&inner) && llvm::any_of(inner.getOperands(), isNegative)) ||
        !inferable)
      wideOps.insert(&inner);
  }
}
