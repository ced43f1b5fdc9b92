//===- FoldUtils.h - What the folds share -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_IR_FOLDUTILS_H
#define ATTNFUSE_LIB_IR_FOLDUTILS_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/Matchers.h"

namespace mlir::attnfuse {

/// Constants with more elements are left alone: a fold must stay cheap.
constexpr int64_t kMaxFoldedElements = int64_t(1) << 20;

inline bool isMask(Operation *op) {
  return isa_and_nonnull<FullOp, CausalOp, SlidingWindowOp, BlockSparseOp>(op);
}

/// True if `first` is before `second` in one block. Walks up def-use chains ask
/// for it, since it ends them even on a cycle, which a graph region allows.
inline bool isInOrder(Operation *first, Operation *second) {
  return first->getBlock() == second->getBlock() &&
         first->isBeforeInBlock(second);
}

/// The score op before `op` in its chain and block, or null.
inline Operation *getEarlierScoreOp(Operation *op) {
  Operation *up = op->getOperand(0).getDefiningOp();
  bool isScoreOp = isMask(up) || isa_and_nonnull<AlibiOp, AdditiveBiasOp>(up);
  return isScoreOp && isInOrder(up, op) ? up : nullptr;
}

/// The fold of `op` to its first operand; none if that is its own result,
/// which a graph region allows.
inline OpFoldResult foldToFirstOperand(Operation *op) {
  Value operand = op->getOperand(0);
  return operand == op->getResult(0) ? OpFoldResult() : OpFoldResult(operand);
}

/// The constant that `value` is, if it is one of floats of moderate size.
inline DenseFPElementsAttr getFloatConstant(Value value) {
  DenseFPElementsAttr constant;
  if (!value || !matchPattern(value, m_Constant(&constant)) ||
      (!constant.isSplat() && constant.getNumElements() > kMaxFoldedElements))
    return {};
  return constant;
}

/// True if every element of `constant` satisfies `predicate`.
template <typename Predicate>
bool allElements(DenseFPElementsAttr constant, Predicate predicate) {
  if (constant.isSplat())
    return predicate(constant.getSplatValue<APFloat>());
  return llvm::all_of(constant.getValues<APFloat>(), predicate);
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_IR_FOLDUTILS_H
