//===- ScoreLoads.cpp - What a score region loads ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/ScoreLoads.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attnfuse;

SmallVector<Operation *> mlir::attnfuse::getElementLoads(AttentionOp op) {
  SmallVector<Operation *> loads;
  if (op.getScore().empty())
    return loads;
  Block &block = op.getScore().front();
  llvm::SmallDenseSet<Value> dependent{block.getArgument(AttentionOp::I),
                                       block.getArgument(AttentionOp::J)};
  for (Operation &operation : block) {
    if (llvm::none_of(operation.getOperands(), [&](Value operand) {
          return dependent.contains(operand);
        }))
      continue;
    if (isa<tensor::ExtractOp>(operation))
      loads.push_back(&operation);
    dependent.insert(operation.result_begin(), operation.result_end());
  }
  return loads;
}

/// So many tensor maps, of 128 bytes each, leave most of the 4352 bytes of a
/// kernel's parameters to the strides that all operands have.
static constexpr size_t kMostStagedOperands = 8;

/// `load` as a staged operand, if it can be one.
static std::optional<StagedOperand> getStagedOperand(AttentionOp op,
                                                     Operation *load) {
  auto extract = cast<tensor::ExtractOp>(load);
  Type type = extract.getType();
  if (extract.getIndices().size() != 4 || (!type.isF16() && !type.isBF16()))
    return std::nullopt;
  auto argument = dyn_cast<BlockArgument>(extract.getTensor());
  Block &block = op.getScore().front();
  if (!argument || argument.getOwner() != &block)
    return std::nullopt;
  Value tensor = op.getScoreOperands()[argument.getArgNumber() -
                                       AttentionOp::NumFixedScoreArgs];
  // Tensor maps are made of arguments.
  if (!isa<BlockArgument>(tensor))
    return std::nullopt;

  StagedOperand staged{extract, tensor, false, false, false};
  bool *flags[] = {&staged.perBatch, &staged.perHead, &staged.perQuery};
  AttentionOp::ScoreArg own[] = {AttentionOp::B, AttentionOp::H,
                                 AttentionOp::I};
  for (int64_t dim = 0; dim < 3; ++dim) {
    Value index = extract.getIndices()[dim];
    *flags[dim] = index == block.getArgument(own[dim]);
    if (!*flags[dim] && !matchPattern(index, m_Zero()))
      return std::nullopt;
  }
  if (extract.getIndices()[3] != block.getArgument(AttentionOp::J))
    return std::nullopt;
  return staged;
}

SmallVector<StagedOperand> mlir::attnfuse::getStagedOperands(AttentionOp op) {
  SmallVector<StagedOperand> operands;
  for (Operation *load : getElementLoads(op)) {
    std::optional<StagedOperand> operand = getStagedOperand(op, load);
    if (!operand)
      return {};
    operands.push_back(*operand);
  }
  if (operands.size() > kMostStagedOperands)
    return {};
  return operands;
}
