//===- ScoreChain.cpp - The score region, per element ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ScoreChain.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

static constexpr double kLog2E = 1.4426950408889634;
static constexpr double kLn2 = 0.6931471805599453;

LogicalResult ScoreChain::verify(AttentionOp op) {
  if (op.getScore().empty())
    return success();
  for (Operation &operation : op.getScore().front()) {
    bool known = isa<tensor::ExtractOp, YieldOp>(operation) ||
                 isa<arith::ArithDialect>(operation.getDialect()) ||
                 isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op,
                     math::AbsFOp, math::AbsIOp, math::FmaOp, math::SqrtOp,
                     math::TanhOp, math::CountLeadingZerosOp>(operation);
    if (!known || operation.getNumRegions() != 0 ||
        (operation.getNumResults() != 1 && !isa<YieldOp>(operation)))
      return operation.emitOpError("has no device form in a score region");
    for (Type type : operation.getResultTypes())
      if (!type.isIntOrIndex() && !type.isF16() && !type.isBF16() &&
          !type.isF32())
        return operation.emitOpError(
                   "expected an integer, index, f16, bf16 or f32, got ")
               << type;
    bool isMathOfFloats = isa<math::MathDialect>(operation.getDialect()) &&
                          isa<FloatType>(operation.getResult(0).getType());
    if (isMathOfFloats && !operation.getResult(0).getType().isF32())
      return operation.emitOpError("expected f32 on the device, got ")
             << operation.getResult(0).getType()
             << "; extend the operand first";
    if (isa<tensor::ExtractOp>(operation)) {
      Type type = operation.getResult(0).getType();
      if (type.isIndex() || type.getIntOrFloatBitWidth() % 8 != 0)
        return operation.emitOpError("expected elements of whole bytes, got ")
               << type;
    }
  }
  return success();
}

Value ScoreChain::getHidingSum(AttentionOp op, Operation *load) {
  auto yield = cast<YieldOp>(op.getScore().front().getTerminator());
  auto select = yield.getScore().getDefiningOp<arith::SelectOp>();
  if (!select || !matchPattern(select.getTrueValue(), m_NegInfFloat()))
    return {};
  auto isHidden = select.getCondition().getDefiningOp<arith::CmpFOp>();
  auto bounded = select.getFalseValue().getDefiningOp<arith::MaximumFOp>();
  FloatAttr bound;
  if (!isHidden || isHidden.getPredicate() != arith::CmpFPredicate::OEQ ||
      !matchPattern(isHidden.getRhs(), m_NegInfFloat()) || !bounded ||
      !matchPattern(bounded.getRhs(), m_Constant(&bound)) ||
      bound.getValueAsDouble() != kLowestScore)
    return {};
  Value element = isHidden.getLhs();
  auto sum = bounded.getLhs().getDefiningOp<arith::AddFOp>();
  if (!sum || !llvm::is_contained(sum->getOperands(), element))
    return {};
  if (auto extended = element.getDefiningOp<arith::ExtFOp>())
    element = extended.getIn();
  return element.getDefiningOp() == load ? sum.getResult() : Value();
}

Value ScoreChain::apply(KernelBuilder &b, Value score,
                        const ScorePosition &position,
                        ArrayRef<KnownLoad> known, Value result) const {
  Block &block = op.getScore().front();
  Value key = b.add(position.firstKey, position.keyOffset);
  Offsets offsets{{key, {position.firstKey, position.keyOffset}}};
  IRMapping map;
  map.map(ValueRange(
              block.getArguments().take_front(AttentionOp::NumFixedScoreArgs)),
          ValueRange{score, position.batch, position.head, position.query, key,
                     position.nq, position.nkv, position.numHeads});
  if (!result)
    result = cast<YieldOp>(block.getTerminator()).getScore();
  for (Operation &operation : block.without_terminator()) {
    if (map.contains(result))
      break;
    auto isAtHand = [&](const KnownLoad &load) {
      return load.load == &operation;
    };
    const KnownLoad *here = llvm::find_if(known, isAtHand);
    Value value = here != known.end()
                      ? here->value
                      : emitByOffset(b, operation, map, offsets);
    map.map(operation.getResult(0), value ? value : emit(b, operation, map));
  }
  return map.lookup(result);
}

Value ScoreChain::emitByOffset(KernelBuilder &b, Operation &operation,
                               const IRMapping &map, Offsets &offsets) const {
  auto find = [&](unsigned index) {
    return offsets.lookup(map.lookup(operation.getOperand(index)));
  };
  // Sums of indices stay small (IndexRanges), those of other integers may wrap
  // around.
  if (isa<arith::AddIOp, arith::SubIOp>(operation) &&
      operation.getResult(0).getType().isIndex() &&
      !ranges.isComputedWide(&operation)) {
    Value x = map.lookup(operation.getOperand(0));
    Value y = map.lookup(operation.getOperand(1));
    auto [xBase, xOffset] = find(0);
    auto [yBase, yOffset] = find(1);
    if (bool(xBase) == bool(yBase))
      return {};
    bool adds = isa<arith::AddIOp>(operation);
    Value base = adds ? b.add(xBase ? xBase : x, yBase ? yBase : y)
                      : b.sub(xBase ? xBase : x, yBase ? yBase : y);
    int64_t offset = xBase ? xOffset : adds ? yOffset : -yOffset;
    Value value = b.add(base, offset);
    offsets[value] = {base, offset};
    return value;
  }
  if (isa<arith::IndexCastOp>(operation) &&
      operation.getResult(0).getType().isInteger(32)) {
    Value operand = map.lookup(operation.getOperand(0));
    return find(0).base ? operand : Value();
  }
  // Off by one rounding at most, of a distance of more than 2^24.
  if (isa<arith::SIToFPOp>(operation) &&
      operation.getResult(0).getType().isF32()) {
    auto [base, offset] = find(0);
    if (!base || offset == 0)
      return {};
    return b.addF(b.fromInt(base), b.f32(offset));
  }
  return {};
}

Value ScoreChain::emit(KernelBuilder &b, Operation &operation,
                       IRMapping &map) const {
  if (isa<tensor::ExtractOp>(operation))
    return emitExtract(b, operation, map);

  auto operand = [&](int64_t index) {
    return map.lookup(operation.getOperand(index));
  };
  // Approximations for what the device computes in base 2.
  if (isa<math::ExpOp>(operation))
    return b.exp2(b.mulF(operand(0), b.f32(kLog2E)));
  if (isa<math::Exp2Op>(operation))
    return b.exp2(operand(0));
  if (isa<math::LogOp>(operation))
    return b.mulF(b.log2(operand(0)), b.f32(kLn2));
  if (isa<math::Log2Op>(operation))
    return b.log2(operand(0));

  if (isa<math::TanhOp>(operation)) {
    // 1 - 2 / (exp(2 x) + 1): saturates to +-1 where the exponential does to
    // inf and 0.
    Value exponential = b.exp2(b.mulF(operand(0), b.f32(2 * kLog2E)));
    return b.fma(b.rcp(b.addF(exponential, b.f32(1))), b.f32(-2), b.f32(1));
  }

  auto isIndex = [](Type type) { return type.isIndex(); };
  if (llvm::any_of(operation.getOperandTypes(), isIndex) ||
      llvm::any_of(operation.getResultTypes(), isIndex))
    return emitIndexOp(b, operation, map);
  Operation *clone = b.clone(operation, map);
  clone->setLoc(b.getLoc());
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(clone)) {
    auto flags = cast<arith::ArithFastMathInterface>(clone);
    clone->setAttr(
        flags.getFastMathAttrName(),
        arith::FastMathFlagsAttr::get(clone->getContext(),
                                      flags.getFastMathFlagsAttr().getValue() |
                                          arith::FastMathFlags::contract));
  }
  return clone->getResult(0);
}

Value ScoreChain::emitIndexOp(KernelBuilder &b, Operation &operation,
                              IRMapping &map) const {
  Value result = operation.getResult(0);
  if (auto constant = dyn_cast<arith::ConstantOp>(operation)) {
    int64_t value = cast<IntegerAttr>(constant.getValue()).getInt();
    return ranges.isWide(result) ? b.i64(value) : b.i32(value);
  }

  bool isWide = ranges.isComputedWide(&operation);
  IRMapping operands(map);
  if (isWide)
    for (Value operand : operation.getOperands())
      if (operand.getType().isIndex())
        operands.map(operand, b.toI64(map.lookup(operand)));

  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(operation)) {
    Value operand = operands.lookup(operation.getOperand(0));
    Type to = result.getType();
    unsigned toWidth = !to.isIndex()           ? to.getIntOrFloatBitWidth()
                       : ranges.isWide(result) ? 64
                                               : 32;
    unsigned fromWidth = operand.getType().getIntOrFloatBitWidth();
    Type type = b.getIntegerType(toWidth);
    if (fromWidth == toWidth)
      return operand;
    if (fromWidth > toWidth)
      return b.create<arith::TruncIOp>(type, operand);
    return isa<arith::IndexCastOp>(operation)
               ? Value(b.create<arith::ExtSIOp>(type, operand))
               : Value(b.create<arith::ExtUIOp>(type, operand));
  }

  Operation *clone = b.clone(operation, operands);
  clone->setLoc(b.getLoc());
  Value value = clone->getResult(0);
  if (!result.getType().isIndex())
    return value;
  value.setType(b.getIntegerType(isWide ? 64 : 32));
  return isWide && !ranges.isWide(result) ? b.toI32(value) : value;
}

Value ScoreChain::emitExtract(KernelBuilder &b, Operation &operation,
                              IRMapping &map) const {
  auto extract = cast<tensor::ExtractOp>(operation);
  auto argument = cast<BlockArgument>(extract.getTensor());
  Value tensor = op.getScoreOperands()[argument.getArgNumber() -
                                       AttentionOp::NumFixedScoreArgs];
  Value offset = b.i64(0);
  for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
    Value stride = abi.getStride(b, tensor, dim);
    offset = b.add(offset, b.mul(b.toI64(map.lookup(index)), stride));
  }
  Type type = extract.getType();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  Value address = b.offsetPtr(abi.getPointer(b, tensor), b.mul(offset, bytes));
  return b.load(type, address, bytes);
}
