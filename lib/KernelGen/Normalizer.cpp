//===- Normalizer.cpp - Scores to weights, tile by tile
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Normalizer.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Smallest reference of ReLU attention: its reciprocal is finite, and no score
/// of weight within f32's normal range lies below.
static constexpr double kSmallestReluReference = 0x1p-64;

/// Reduces over the four threads that share a row.
static Value reduceQuad(KernelBuilder &b, Value value,
                        function_ref<Value(Value, Value)> combine) {
  for (int64_t mask : {1, 2})
    value = combine(value, b.shuffleXor(value, mask));
  return value;
}

OnlineNormalizer::Row OnlineNormalizer::getInitial(KernelBuilder &b) const {
  return {b.f32(isSoftmax() ? -kInfinity : kSmallestReluReference), b.f32(0)};
}

Value OnlineNormalizer::update(KernelBuilder &b, Row &row,
                               MutableArrayRef<Value> scores) const {
  Value largest = scores.front();
  for (Value score : scores.drop_front())
    largest = b.maxF(largest, score);
  largest =
      reduceQuad(b, largest, [&](Value x, Value y) { return b.maxF(x, y); });

  Value factor, sum;
  auto accumulate = [&](Value weight) {
    sum = sum ? b.addF(sum, weight) : weight;
  };
  if (isSoftmax()) {
    // exp(scale (s - r)) = exp2(c s - c r): one fma and one exp2 per element.
    Value c = b.f32(scale * llvm::numbers::log2e);
    Value reference = b.maxF(row.reference, largest);
    // As long as no key is visible the reference is -inf; 0 in its place keeps
    // -inf - -inf away.
    Value empty = b.eqF(reference, b.f32(-kInfinity));
    Value shift = b.negF(b.mulF(b.select(empty, b.f32(0), reference), c));
    factor = b.exp2(b.fma(row.reference, c, shift));
    for (Value &score : scores) {
      score = b.exp2(b.fma(score, c, shift));
      accumulate(score);
    }
    row.reference = reference;
  } else {
    Value reference = b.maxF(row.reference, b.mulF(largest, b.f32(scale)));
    Value inverse = b.rcp(reference);
    factor = b.mulF(row.reference, inverse);
    Value toWeight = b.mulF(inverse, b.f32(scale));
    for (Value &score : scores) {
      score = b.mulF(b.maxOrNaN(score, b.f32(0)), toWeight);
      accumulate(score);
    }
    row.reference = reference;
  }
  row.sum = b.fma(row.sum, factor, sum);
  return factor;
}

void OnlineNormalizer::finish(KernelBuilder &b, Row &row) const {
  row.sum =
      reduceQuad(b, row.sum, [&](Value x, Value y) { return b.addF(x, y); });
}

Value OnlineNormalizer::getOutputFactor(KernelBuilder &b, const Row &row,
                                        Value nkv) const {
  auto inverseOrZero = [&](Value divisor) {
    return b.select(b.eqF(divisor, b.f32(0)), b.f32(0), b.rcp(divisor));
  };
  switch (kind) {
  case Normalizer::Softmax:
  case Normalizer::ReluSum:
    return inverseOrZero(row.sum);
  case Normalizer::ReluLength:
    return b.mulF(row.reference, inverseOrZero(b.fromInt(nkv)));
  case Normalizer::ReluNone:
    return row.reference;
  }
  llvm_unreachable("all normalizers are handled");
}

Value OnlineNormalizer::getLogSumExp(KernelBuilder &b, const Row &row) const {
  assert(isSoftmax() && "only softmax has a log-sum-exp");
  // An empty row has sum 0, so both terms are -inf.
  return b.fma(row.reference, b.f32(scale),
               b.mulF(b.log2(row.sum), b.f32(llvm::numbers::ln2)));
}
