//===- ScoreRegionBuilder.cpp - Score ops to a score region ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreRegionBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attnfuse;

ScoreRegionBuilder::ScoreRegionBuilder(MLIRContext *context, Location loc)
    : body(std::make_unique<Block>()), builder(context), loc(loc) {
  builder.setInsertionPointToEnd(body.get());
  for (unsigned arg = 0; arg < AttentionOp::NumFixedScoreArgs; ++arg)
    body->addArgument(arg == AttentionOp::Score ? Type(builder.getF32Type())
                                                : builder.getIndexType(),
                      loc);
  score = getArgument(AttentionOp::Score);
}

Value ScoreRegionBuilder::getArgumentFor(Value tensor) {
  if (operands.insert(tensor))
    return body->addArgument(tensor.getType(), loc);
  unsigned position = llvm::find(operands, tensor) - operands.begin();
  return getArgument(AttentionOp::NumFixedScoreArgs + position);
}

Value ScoreRegionBuilder::createF32Constant(double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(value));
}

Value ScoreRegionBuilder::createSplat(Value tensor) {
  DenseFPElementsAttr constant;
  if (!tensor || !matchPattern(tensor, m_Constant(&constant)) ||
      !constant.isSplat())
    return {};
  return createF32Constant(constant.getSplatValue<APFloat>().convertToDouble());
}

Value ScoreRegionBuilder::readSlope(AlibiOp op) {
  if (!op.getSlopes())
    return AlibiSlopeOp::create(builder, loc, builder.getF32Type(),
                                getArgument(AttentionOp::H),
                                getArgument(AttentionOp::Hq));
  if (Value splat = createSplat(op.getSlopes()))
    return splat;
  SmallVector<Value> indices{getArgument(AttentionOp::H)};
  if (op.getSlopes().getType().getRank() == 2)
    indices.insert(indices.begin(), getArgument(AttentionOp::B));
  return tensor::ExtractOp::create(builder, loc, getArgumentFor(op.getSlopes()),
                                   indices);
}

void ScoreRegionBuilder::add(AlibiOp op) {
  loc = op.getLoc();
  Value slope = readSlope(op);
  Value diagonal = getArgument(AttentionOp::I);
  if (op.getAlign() == Alignment::BottomRight) {
    Value offset =
        arith::SubIOp::create(builder, loc, getArgument(AttentionOp::Nkv),
                              getArgument(AttentionOp::Nq));
    diagonal = arith::AddIOp::create(builder, loc, diagonal, offset);
  }
  Value distance = arith::SubIOp::create(builder, loc, diagonal,
                                         getArgument(AttentionOp::J));
  distance =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), distance);
  distance =
      arith::SIToFPOp::create(builder, loc, builder.getF32Type(), distance);
  distance = math::AbsFOp::create(builder, loc, distance);
  Value penalty = arith::MulFOp::create(builder, loc, slope, distance);
  score = arith::SubFOp::create(builder, loc, score, penalty);
}

Value ScoreRegionBuilder::readBias(AdditiveBiasOp op) {
  if (Value splat = createSplat(op.getBias()))
    return splat;
  Value tensor = getArgumentFor(op.getBias());
  RankedTensorType type = op.getBias().getType();
  // A bias of rank r covers the last r of these. A static size of 1 is
  // broadcast; a dynamic size never is (spec S13).
  constexpr unsigned dims[] = {AttentionOp::B, AttentionOp::H, AttentionOp::I,
                               AttentionOp::J};
  SmallVector<Value> indices;
  Value zero;
  for (auto [dim, size] : llvm::zip_equal(
           ArrayRef(dims).take_back(type.getRank()), type.getShape())) {
    if (size != 1) {
      indices.push_back(getArgument(dim));
      continue;
    }
    if (!zero)
      zero = arith::ConstantOp::create(builder, loc, builder.getIndexAttr(0));
    indices.push_back(zero);
  }
  Value bias = tensor::ExtractOp::create(builder, loc, tensor, indices);
  if (!type.getElementType().isF32())
    bias = arith::ExtFOp::create(builder, loc, builder.getF32Type(), bias);
  return bias;
}

void ScoreRegionBuilder::add(AdditiveBiasOp op) {
  loc = op.getLoc();
  Value bias = readBias(op);
  Value minusInf = createF32Constant(-std::numeric_limits<float>::infinity());
  Value isMask = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ,
                                       bias, minusInf);
  score = arith::AddFOp::create(builder, loc, score, bias);
  masked = masked ? arith::OrIOp::create(builder, loc, masked, isMask) : isMask;
  // Sums of f16 values stay far from the limits of f32.
  mayOverflow |= !op.getBias().getType().getElementType().isF16();
}

void ScoreRegionBuilder::finish(Region &region) {
  if (body->empty())
    return;
  if (mayOverflow)
    score = arith::MaximumFOp::create(builder, loc, score,
                                      createF32Constant(kLowestScore));
  if (masked) {
    Value minusInf = createF32Constant(-std::numeric_limits<float>::infinity());
    score = arith::SelectOp::create(builder, loc, masked, minusInf, score);
  }
  YieldOp::create(builder, loc, score);
  region.push_back(body.release());
}
