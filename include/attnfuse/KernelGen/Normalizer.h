//===- Normalizer.h - Scores to weights, tile by tile -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The online form of softmax (Milakov and Gimelshein, arXiv 1805.02867) and,
// in the same shape, of ReLU attention. Per row, a reference r that only grows
// and the sum of the weights relative to it:
//
//   softmax  r = max score,                weight = exp(score - r)
//   ReLU     r = max(score, 2^-64),        weight = max(score, 0) / r
//
// so that weights are at most 1 and fit 16 bits whatever the scores. When r
// grows, what was accumulated is multiplied by weight(r_old) / weight(r_new).
// Softmax may let r lag behind the maximum by a factor of 2^8 (Style); weights
// are at most 2^8 then.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_NORMALIZER_H
#define ATTNFUSE_KERNELGEN_NORMALIZER_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/AccumulatorTile.h"
#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen {

class OnlineNormalizer {
public:
  /// State of one row in one thread of the four that share it: the reference is
  /// the row's, the sum this thread's part.
  struct Row {
    Value reference, sum;
  };
  using Rows = SmallVector<Row>;

  // Rows as a list that a loop can carry: two values each.
  static Values flatten(ArrayRef<Row> rows);
  /// Takes `count` rows from the front of `values`.
  static Rows takeRows(ValueRange &values, size_t count);

  /// How the same is computed.
  struct Style {
    /// Accumulators per row of the thread's sum and maximum.
    int64_t partialSums = 1, partialMaxima = 1;
    /// The reference stays until a row of the warp outgrows it by 2^8.
    bool skipsRescale = false;
    /// A row may have seen no visible key yet. If one has not where this is
    /// false, its weights are NaN.
    bool mayBeEmpty = true;
  };

  /// What a new reference means for what was accumulated: multiply by `factor`;
  /// with skipsRescale, only if `isNeeded`, else it is null.
  struct Rescale {
    Value factor, isNeeded;
  };

  /// Scores are to be multiplied by `scale`, which is positive.
  OnlineNormalizer(Normalizer kind, double scale) : kind(kind), scale(scale) {}
  /// That of the op's kernels.
  explicit OnlineNormalizer(AttentionOp op);
  /// Whether the op's scores are scaled one by one, before the chain, and not
  /// by the normalizer.
  static bool scalesScores(AttentionOp op);

  Row getInitial(KernelBuilder &b) const;
  /// Moves the row's reference to cover the thread's scores (-inf where
  /// masked) and rescales its sum.
  Rescale advance(KernelBuilder &b, Row &row, ArrayRef<Value> scores,
                  const Style &style) const;
  /// The accumulated output, rescaled by row of `shape`.
  static Values rescale(KernelBuilder &b, ArrayRef<Rescale> rows,
                        const AccumulatorTile &shape, ArrayRef<Value> output);
  /// Replaces the scores, which the reference covers, by their weights.
  void weigh(KernelBuilder &b, const Row &row, MutableArrayRef<Value> scores,
             const Style &style) const;
  /// Adds weights to the row's sum.
  void accumulate(KernelBuilder &b, Row &row, ArrayRef<Value> weights,
                  const Style &style) const;
  /// Completes the sum over the four threads; the functions below want a
  /// finished row.
  void finish(KernelBuilder &b, Row &row) const;
  /// The factor that turns the accumulated output into the result; 0 for an
  /// empty row.
  Value getOutputFactor(KernelBuilder &b, const Row &row, Value nkv) const;
  /// Softmax only: the natural logarithm of the row's sum of exponentials; -inf
  /// if empty.
  Value getLogSumExp(KernelBuilder &b, const Row &row) const;

  // Of finished rows of parts of the keys, whose outputs have been multiplied
  // by their factors (getOutputFactor). The whole row's reference is the
  // largest of the parts', its sum that of their sums at this reference.
  /// Whether the output is the mean of the parts' weighed by their sums; else
  /// it is their sum.
  bool weighsParts() const;
  Value getSumAt(KernelBuilder &b, const Row &part, Value reference) const;

private:
  bool isSoftmax() const { return kind == Normalizer::Softmax; }
  /// Softmax: the reference, 0 in place of the -inf of an empty row, which
  /// keeps -inf - -inf away.
  Value getFiniteReference(KernelBuilder &b, const Row &row,
                           const Style &style) const;

  Normalizer kind;
  double scale;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_NORMALIZER_H
