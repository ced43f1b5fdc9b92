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
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_NORMALIZER_H
#define ATTNFUSE_KERNELGEN_NORMALIZER_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen {

class OnlineNormalizer {
public:
  /// State of one row in one thread of the four that share it: the reference is
  /// the row's, the sum this thread's part.
  struct Row {
    Value reference, sum;
  };

  /// Scores are to be multiplied by `scale`, which is positive.
  OnlineNormalizer(Normalizer kind, double scale) : kind(kind), scale(scale) {}

  Row getInitial(KernelBuilder &b) const;
  /// Replaces the thread's scores of a row (-inf where masked) by their
  /// weights; returns the factor for what was accumulated before.
  Value update(KernelBuilder &b, Row &row, MutableArrayRef<Value> scores) const;
  /// Completes the sum over the four threads; the functions below want a
  /// finished row.
  void finish(KernelBuilder &b, Row &row) const;
  /// The factor that turns the accumulated output into the result; 0 for an
  /// empty row.
  Value getOutputFactor(KernelBuilder &b, const Row &row, Value nkv) const;
  /// Softmax only: the natural logarithm of the row's sum of exponentials; -inf
  /// if empty.
  Value getLogSumExp(KernelBuilder &b, const Row &row) const;

private:
  bool isSoftmax() const { return kind == Normalizer::Softmax; }

  Normalizer kind;
  double scale;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_NORMALIZER_H
