//===- Builders.h - Linalg of the parts of an attention ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per part of an attention, on tensors. The building blocks and
// the fused op lower through the same ones, so that they cannot differ.
//
// Between the parts, scores and probabilities are f32 tensors [B, Hq, Nq, Nkv]
// and a score of -inf is a masked key. Every part that changes scores keeps
// -inf: masking is sticky.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNFUSETOLINALG_BUILDERS_H
#define ATTNFUSE_LIB_CONVERSION_ATTNFUSETOLINALG_BUILDERS_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::attnfuse::detail {

//===----------------------------------------------------------------------===//
// Tensors and scalars (TensorBuilders.cpp)
//===----------------------------------------------------------------------===//

using Sizes = SmallVector<OpFoldResult, 4>;
/// Computes one element from the elements of the inputs; linalg.index gives the
/// indices.
using ElementFn =
    function_ref<Value(ImplicitLocOpBuilder &, ValueRange elements)>;

/// The sizes of a ranked tensor; constants where the type knows them.
Sizes getSizes(ImplicitLocOpBuilder &b, Value tensor);
/// One size as an index value.
Value getSize(ImplicitLocOpBuilder &b, Value tensor, int64_t dim);
Value getValue(ImplicitLocOpBuilder &b, OpFoldResult size);

Value constantIndex(ImplicitLocOpBuilder &b, int64_t value);
Value constantF32(ImplicitLocOpBuilder &b, double value);
/// A float element of any type as f32.
Value toF32(ImplicitLocOpBuilder &b, Value element);
/// An f32 value rounded once to `type`.
Value fromF32(ImplicitLocOpBuilder &b, Value value, Type type);
/// True iff the score is -inf. False for NaN.
Value isMasked(ImplicitLocOpBuilder &b, Value score);

/// `index`, or 0 where dimension `dim` of `tensor` has the static size 1 and is
/// broadcast (S13: a dynamic size never is).
Value buildBroadcastIndex(ImplicitLocOpBuilder &b, Value tensor, int64_t dim,
                          Value index);

/// A tensor of `type`; `sizes` gives the dimensions that the type leaves open.
Value buildEmpty(ImplicitLocOpBuilder &b, RankedTensorType type,
                 ArrayRef<OpFoldResult> sizes);
Value buildFilled(ImplicitLocOpBuilder &b, RankedTensorType type,
                  ArrayRef<OpFoldResult> sizes, double value);
/// A tensor of `type` computed element by element from inputs of its shape.
Value buildMap(ImplicitLocOpBuilder &b, RankedTensorType type,
               ArrayRef<OpFoldResult> sizes, ValueRange inputs, ElementFn fn);
/// `scores` changed element by element.
Value buildScoreMap(ImplicitLocOpBuilder &b, Value scores, ElementFn fn);
/// A float tensor with its elements as f32.
Value buildToF32(ImplicitLocOpBuilder &b, Value tensor);

//===----------------------------------------------------------------------===//
// The parts
//===----------------------------------------------------------------------===//

/// Where the rows of the rotary tables are; `offset` (i64) and `positions` may
/// be null.
struct Rotation {
  Pairing pairing;
  int64_t staticOffset;
  Value cos, sin, offset, positions;
};
/// `input` [B, H, N, D] rotated, in its own type. Positions beyond the tables
/// read the nearest row.
Value buildRotation(ImplicitLocOpBuilder &b, Value input,
                    const Rotation &rotation);

/// scale * q k^T, of type `type`.
Value buildScaledProduct(ImplicitLocOpBuilder &b, RankedTensorType type,
                         Value query, Value key, double scale);
/// The product of probabilities and v, of type `type`.
Value buildWeightedSum(ImplicitLocOpBuilder &b, RankedTensorType type,
                       Value probs, Value value);

/// Masks the keys outside a band of diagonals; an absent bound is unbounded.
Value buildBand(ImplicitLocOpBuilder &b, Value scores, Alignment align,
                std::optional<int64_t> left, std::optional<int64_t> right);
/// Masks the keys outside the listed blocks.
Value buildBlocks(ImplicitLocOpBuilder &b, Value scores, Value rowOffsets,
                  Value colIndices, int64_t queryBlock, int64_t keyBlock);

/// `slopes` ([Hq] or [B, Hq]) is null for the standard ones.
Value buildAlibi(ImplicitLocOpBuilder &b, Value scores, Alignment align,
                 Value slopes);
Value buildAdditiveBias(ImplicitLocOpBuilder &b, Value scores, Value bias);
/// The score region of attnfuse.attention, inlined for every element.
Value buildScoreRegion(ImplicitLocOpBuilder &b, Value scores, Region &region,
                       ValueRange operands);

/// Probabilities, and the log-sum-exp of type `lseType` unless that is null.
std::pair<Value, Value> buildSoftmax(ImplicitLocOpBuilder &b, Value scores,
                                     RankedTensorType lseType);
Value buildRelu(ImplicitLocOpBuilder &b, Value scores, ReluNorm norm);

/// j - i - off for the element at hand of a map over `scores`: 0 on the
/// diagonal that `align` names.
Value buildDiagonalDistance(ImplicitLocOpBuilder &b, Value scores,
                            Alignment align);

//===----------------------------------------------------------------------===//
// Patterns by category
//===----------------------------------------------------------------------===//

void populateRotatePatterns(RewritePatternSet &patterns);
void populateProductPatterns(RewritePatternSet &patterns);
void populateMaskPatterns(RewritePatternSet &patterns);
void populateScorePatterns(RewritePatternSet &patterns);
void populateNormalizePatterns(RewritePatternSet &patterns);
void populateAttentionPatterns(RewritePatternSet &patterns);

} // namespace mlir::attnfuse::detail

#endif // ATTNFUSE_LIB_CONVERSION_ATTNFUSETOLINALG_BUILDERS_H
