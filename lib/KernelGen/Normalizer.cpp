//===- Normalizer.cpp - Scores to weights, tile by tile -------------------===//
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

OnlineNormalizer::OnlineNormalizer(AttentionOp op)
    : kind(op.getNormalizer()),
      scale(scalesScores(op) ? 1.0 : float(op.getScale().convertToDouble())) {}

bool OnlineNormalizer::scalesScores(AttentionOp op) {
  return op.hasScoreChain() || float(op.getScale().convertToDouble()) <= 0;
}

Values OnlineNormalizer::flatten(ArrayRef<Row> rows) {
  Values values;
  for (const Row &row : rows)
    values.append({row.reference, row.sum});
  return values;
}
OnlineNormalizer::Rows OnlineNormalizer::takeRows(ValueRange &values,
                                                  size_t count) {
  Rows rows;
  for (size_t row = 0; row < count; ++row) {
    ValueRange pair = takeFront(values, 2);
    rows.push_back({pair[0], pair[1]});
  }
  return rows;
}

OnlineNormalizer::Row OnlineNormalizer::getInitial(KernelBuilder &b) const {
  return {b.f32(isSoftmax() ? -kInfinity : kSmallestReluReference), b.f32(0)};
}

/// The combination of `first`, if there is one, and all values, in `count`
/// independent chains.
static Value reduceInChains(KernelBuilder &b, Value first,
                            ArrayRef<Value> values, int64_t count,
                            function_ref<Value(Value, Value)> combine) {
  Values chains(count);
  chains[0] = first;
  for (auto [index, value] : llvm::enumerate(values)) {
    Value &chain = chains[index % count];
    chain = chain ? combine(chain, value) : value;
  }
  Value result = chains[0];
  for (Value chain : ArrayRef(chains).drop_front())
    if (chain)
      result = combine(result, chain);
  return result;
}

Value OnlineNormalizer::getFiniteReference(KernelBuilder &b, const Row &row,
                                           const Style &style) const {
  if (!style.mayBeEmpty)
    return row.reference;
  return b.select(b.eqF(row.reference, b.f32(-kInfinity)), b.f32(0),
                  row.reference);
}

OnlineNormalizer::Rescale OnlineNormalizer::advance(KernelBuilder &b, Row &row,
                                                    ArrayRef<Value> scores,
                                                    const Style &style) const {
  auto max = [&](Value x, Value y) { return b.maxF(x, y); };
  // Pairs first: half the length of the chain.
  Values pairs;
  for (size_t index = 0; index + 1 < scores.size(); index += 2)
    pairs.push_back(max(scores[index], scores[index + 1]));
  Value largest = reduceQuad(
      b, reduceInChains(b, {}, pairs, style.partialMaxima, max), max);

  Rescale rescale;
  Value old = row.reference;
  if (isSoftmax()) {
    Value c = b.f32(scale * llvm::numbers::log2e);
    Value reference = max(old, largest);
    if (style.skipsRescale) {
      Value growth = b.mulF(b.subF(reference, old), c);
      rescale.isNeeded = b.anyLane(b.ltF(b.f32(8), growth));
      reference = b.select(rescale.isNeeded, reference, old);
    }
    row.reference = reference;
    // By the difference, so that an unchanged reference gives exactly 1.
    rescale.factor =
        b.exp2(b.mulF(b.subF(old, getFiniteReference(b, row, style)), c));
  } else {
    row.reference = max(old, b.mulF(largest, b.f32(scale)));
    rescale.factor = b.mulF(old, b.rcp(row.reference));
  }
  row.sum = b.mulF(row.sum, rescale.factor);
  return rescale;
}

Values OnlineNormalizer::rescale(KernelBuilder &b, ArrayRef<Rescale> rows,
                                 const AccumulatorTile &shape,
                                 ArrayRef<Value> output) {
  auto getRescaled = [&] {
    Values rescaled(output);
    for (auto [r, row] : llvm::enumerate(rows))
      for (int64_t index : shape.getRowIndices(r))
        rescaled[index] = b.mulF(rescaled[index], row.factor);
    return rescaled;
  };
  Value isNeeded;
  for (const Rescale &row : rows)
    if (row.isNeeded)
      isNeeded = isNeeded ? b.orI(isNeeded, row.isNeeded) : row.isNeeded;
  if (!isNeeded)
    return getRescaled();
  return b.ifElse(isNeeded, ValueRange(output).getTypes(), getRescaled,
                  [&] { return Values(output); });
}

void OnlineNormalizer::weigh(KernelBuilder &b, const Row &row,
                             MutableArrayRef<Value> scores,
                             const Style &style) const {
  if (isSoftmax()) {
    // exp(scale (s - r)) = exp2(c s - c r): one fma and one exp2 per element.
    Value c = b.f32(scale * llvm::numbers::log2e);
    Value shift = b.negF(b.mulF(getFiniteReference(b, row, style), c));
    for (Value &score : scores)
      score = b.exp2(b.fma(score, c, shift));
  } else {
    Value toWeight = b.mulF(b.rcp(row.reference), b.f32(scale));
    for (Value &score : scores)
      score = b.mulF(b.maxOrNaN(score, b.f32(0)), toWeight);
  }
}

void OnlineNormalizer::accumulate(KernelBuilder &b, Row &row,
                                  ArrayRef<Value> weights,
                                  const Style &style) const {
  row.sum = reduceInChains(b, row.sum, weights, style.partialSums,
                           [&](Value x, Value y) { return b.addF(x, y); });
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

bool OnlineNormalizer::weighsParts() const {
  return kind == Normalizer::Softmax || kind == Normalizer::ReluSum;
}

Value OnlineNormalizer::getSumAt(KernelBuilder &b, const Row &part,
                                 Value reference) const {
  if (!isSoftmax())
    return b.mulF(part.sum, b.mulF(part.reference, b.rcp(reference)));
  Value c = b.f32(scale * llvm::numbers::log2e);
  Value finite = getFiniteReference(b, {reference, {}}, Style());
  return b.mulF(part.sum, b.exp2(b.mulF(b.subF(part.reference, finite), c)));
}
