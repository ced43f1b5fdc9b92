//===- AttnFuseVerifyAttention.cpp - Verifier of the fused op -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules have the numbers of docs/spec.md, as have the functions of
// test/Dialect/AttnFuse/invalid-attention.mlir.
//
//===----------------------------------------------------------------------===//

#include "ShapeChecker.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// attention_c5 and attention_c6.
LogicalResult verifyOptionalRotation(ShapeChecker &shapes,
                                     RotationAttr rotation, Value cos,
                                     Value sin, Value offset, Value positions,
                                     StringRef prefix, StringRef lengthDim) {
  Operation *op = shapes.getOperation();
  // attention_c5: a rotation has its attribute and both tables, or nothing.
  if (!rotation && !cos && !sin && !offset && !positions)
    return success();
  if (!rotation || !cos || !sin)
    return op->emitOpError("expected '")
           << prefix << "rotation', '" << prefix << "cos' and '" << prefix
           << "sin' together, or none of them and no position";
  // attention_c6: the rules of rope.
  return verifyRotation(shapes,
                        {cos, sin, offset, positions, rotation.getOffset(),
                         prefix, "B", lengthDim, "D"});
}
} // namespace

LogicalResult AttentionOp::verify() {
  ShapeChecker shapes(*this);
  // attention_c1: the shapes agree, and D and Dv are static.
  if (failed(shapes.bind("query", getQuery(), {"B", "Hq", "Nq", "D"})) ||
      failed(shapes.bind("key", getKey(), {"B", "Hkv", "Nkv", "D"})) ||
      failed(shapes.bind("value", getValue(), {"B", "Hkv", "Nkv", "Dv"})) ||
      failed(shapes.bind("output", getOutput(), {"B", "Hq", "Nq", "Dv"})) ||
      (getLse() && failed(shapes.bind("lse", getLse(), {"B", "Hq", "Nq"}))) ||
      failed(shapes.checkStatic("D")) || failed(shapes.checkStatic("Dv")))
    return failure();
  // attention_c2: Hq is a multiple of Hkv.
  if (failed(shapes.checkHeadGroups()))
    return failure();
  // attention_c3: q, k and v have one element type; the output has it or f32.
  Type element = getElementType();
  Type key = getKey().getType().getElementType();
  Type value = getValue().getType().getElementType();
  if (element != key || element != value)
    return emitOpError("expected 'query', 'key' and 'value' of one element "
                       "type, got ")
           << element << ", " << key << " and " << value;
  if (failed(verifyOutputType(*this, value,
                              getOutput().getType().getElementType())))
    return failure();
  // attention_c4: the scale is finite.
  if (failed(verifyScale(*this, getScale())))
    return failure();

  if (failed(verifyOptionalRotation(shapes, getQRotationAttr(), getQCos(),
                                    getQSin(), getQOffset(), getQPositions(),
                                    "q_", "Nq")) ||
      failed(verifyOptionalRotation(shapes, getKRotationAttr(), getKCos(),
                                    getKSin(), getKOffset(), getKPositions(),
                                    "k_", "Nkv")))
    return failure();

  // attention_c7: block sizes and both lists, or nothing.
  BlocksAttr blocks = getBlocksAttr();
  bool hasAll = blocks && getRowOffsets() && getColIndices();
  if (!hasAll && (blocks || getRowOffsets() || getColIndices()))
    return emitOpError("expected 'blocks', 'row_offsets' and 'col_indices' "
                       "together, or none of them");
  // attention_c8: the rules of block_sparse.
  if (hasAll &&
      failed(verifyBlocks(shapes, getRowOffsets(), blocks.getQueryBlock(),
                          blocks.getKeyBlock())))
    return failure();

  // attention_c9: only softmax has a log-sum-exp.
  if (getLse() && getNormalizer() != Normalizer::Softmax)
    return emitOpError("expected no 'lse' result with normalizer ")
           << stringifyNormalizer(getNormalizer()) << "; only softmax has one";
  return success();
}

LogicalResult AttentionOp::verifyRegions() {
  // attention_c10: score operands have a region that reads them.
  if (getScore().empty()) {
    if (getScoreOperands().empty())
      return success();
    return emitOpError("expected no score operands without a score region, "
                       "got ")
           << getScoreOperands().size();
  }

  // attention_c11: the region's arguments are the score (f32), 7 indices and
  // the score operands.
  Block &block = getScore().front();
  Builder builder(getContext());
  SmallVector<Type> expected(NumFixedScoreArgs, builder.getIndexType());
  expected[Score] = builder.getF32Type();
  llvm::append_range(expected, getScoreOperands().getTypes());
  if (block.getNumArguments() != expected.size())
    return emitOpError("expected the score region to have ")
           << expected.size() << " arguments, got " << block.getNumArguments();
  for (auto [index, type, argument] :
       llvm::enumerate(expected, block.getArguments()))
    if (argument.getType() != type) {
      InFlightDiagnostic diag = emitOpError("expected argument ")
                                << index << " of the score region to be "
                                << type << ", got " << argument.getType();
      diag.attachNote(argument.getLoc()) << "the argument is here";
      return diag;
    }

  // attention_c12: the region ends with a yield.
  if (!isa<YieldOp>(block.getTerminator())) {
    InFlightDiagnostic diag =
        emitOpError("expected the score region to end with attnfuse.yield");
    diag.attachNote(block.getTerminator()->getLoc()) << "it ends here";
    return diag;
  }

  // attention_c13: the region has no side effects, since it is evaluated any
  // number of times and in any order.
  for (Operation &op : block)
    if (!isMemoryEffectFree(&op)) {
      InFlightDiagnostic diag =
          emitOpError("expected a score region without side effects");
      diag.attachNote(op.getLoc())
          << "'" << op.getName() << "' may have side effects";
      return diag;
    }
  return success();
}
