//===- AttnFuseVerify.cpp - Verifiers of the building blocks --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules have the numbers of docs/spec.md, as have the functions of
// test/Dialect/AttnFuse/invalid.mlir.
//
//===----------------------------------------------------------------------===//

#include "ShapeChecker.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

using namespace mlir;
using namespace mlir::attnfuse;

LogicalResult RopeOp::verify() {
  ShapeChecker shapes(*this);
  if (failed(shapes.bind("input", getInput(), {"B", "H", "N", "D"})))
    return failure();
  return verifyRotation(shapes,
                        {getCos(), getSin(), getOffset(), getPositions(),
                         static_cast<int64_t>(getStaticOffset()),
                         /*prefix=*/"", "B", "N", "D"});
}

LogicalResult ScaledDotProductOp::verify() {
  ShapeChecker shapes(*this);
  // scaled_dot_product_c1: the shapes agree, and D is static.
  if (failed(shapes.bind("query", getQuery(), {"B", "Hq", "Nq", "D"})) ||
      failed(shapes.bind("key", getKey(), {"B", "Hkv", "Nkv", "D"})) ||
      failed(shapes.bind("scores", getScores(), {"B", "Hq", "Nq", "Nkv"})) ||
      failed(shapes.checkStatic("D")))
    return failure();
  // scaled_dot_product_c2: Hq is a multiple of Hkv.
  if (failed(shapes.checkHeadGroups()))
    return failure();
  // scaled_dot_product_c3: q and k have one element type.
  Type query = getQuery().getType().getElementType();
  Type key = getKey().getType().getElementType();
  if (query != key)
    return emitOpError("expected 'query' and 'key' of one element type, got ")
           << query << " and " << key;
  // scaled_dot_product_c4: the scale is finite.
  if (std::optional<APFloat> scale = getScale())
    return verifyScale(*this, *scale);
  return success();
}

LogicalResult SlidingWindowOp::verify() {
  // sliding_window_c1: 0 <= bound < 2^31.
  return BandAttr::verify([&] { return emitOpError(); }, getAlign(), getLeft(),
                          getRight());
}

LogicalResult BlockSparseOp::verify() {
  ShapeChecker shapes(*this);
  if (failed(shapes.bind("scores", getScores(), {"B", "Hq", "Nq", "Nkv"})))
    return failure();
  return verifyBlocks(shapes, getRowOffsets(), getQueryBlock(), getKeyBlock());
}

LogicalResult AlibiOp::verify() {
  if (!getSlopes())
    return success();
  // alibi_c1: slopes are [Hq] or [B, Hq].
  ShapeChecker shapes(*this);
  SmallVector<StringRef> dims{"B", "Hq"};
  if (getSlopes().getType().getRank() == 1)
    dims.erase(dims.begin());
  if (failed(shapes.bind("scores", getScores(), {"B", "Hq", "Nq", "Nkv"})))
    return failure();
  return shapes.bind("slopes", getSlopes(), dims);
}

LogicalResult AdditiveBiasOp::verify() {
  // additive_bias_c1: from the last dimension on, each size of the bias is 1
  // or the size of the scores.
  ArrayRef<int64_t> scores = getScores().getType().getShape();
  ArrayRef<int64_t> bias = getBias().getType().getShape();
  constexpr StringRef names[] = {"B", "Hq", "Nq", "Nkv"};
  for (auto [name, expected, size] :
       llvm::zip_equal(ArrayRef(names).take_back(bias.size()),
                       scores.take_back(bias.size()), bias)) {
    if (size == 1 || ShapedType::isDynamic(size) ||
        ShapedType::isDynamic(expected) || size == expected)
      continue;
    InFlightDiagnostic diag = emitOpError("expected dimension ")
                              << name << " of 'bias' to be 1 or " << expected
                              << ", got " << size;
    diag.attachNote(getBias().getLoc())
        << "'bias' has type " << getBias().getType();
    return diag;
  }
  return success();
}

LogicalResult SoftmaxOp::verify() {
  if (!getLse())
    return success();
  // softmax_c1: the log-sum-exp is [B, Hq, Nq].
  ShapeChecker shapes(*this);
  if (failed(shapes.bind("scores", getScores(), {"B", "Hq", "Nq", "Nkv"})))
    return failure();
  return shapes.bind("lse", getLse(), {"B", "Hq", "Nq"});
}

LogicalResult WeightedSumOp::verify() {
  ShapeChecker shapes(*this);
  // weighted_sum_c1: the shapes agree, and Dv is static.
  if (failed(shapes.bind("probs", getProbs(), {"B", "Hq", "Nq", "Nkv"})) ||
      failed(shapes.bind("value", getValue(), {"B", "Hkv", "Nkv", "Dv"})) ||
      failed(shapes.bind("output", getOutput(), {"B", "Hq", "Nq", "Dv"})) ||
      failed(shapes.checkStatic("Dv")))
    return failure();
  // weighted_sum_c2: Hq is a multiple of Hkv.
  if (failed(shapes.checkHeadGroups()))
    return failure();
  // weighted_sum_c3: the output has v's element type or is f32.
  return verifyOutputType(*this, getValue().getType().getElementType(),
                          getOutput().getType().getElementType());
}
