//===- Scores.cpp - Rows of the score matrix ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scores.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;

double reference::getStandardSlope(int64_t head, int64_t numHeads) {
  int64_t power = 1;
  while (power * 2 <= numHeads)
    power *= 2;
  if (head < power)
    return std::exp2(-8.0 * double(head + 1) / double(power));
  return std::exp2(-4.0 * double(2 * (head - power) + 1) / double(power));
}

static constexpr double kLargestF32 = 0x1.fffffep127;

namespace {
/// The diagonal's key index minus its query index.
int64_t getOffset(Alignment align, const Row &row) {
  return align == Alignment::BottomRight ? row.nkv - row.nq : 0;
}

class Product : public ScoreNode {
public:
  Product(ArrayPtr q, ArrayPtr k, double scale)
      : q(std::move(q)), k(std::move(k)), scale(scale) {}

  void mask(Row &) const override {}

  void score(Row &row) const override {
    int64_t headDim = q->shape[3], keyHeads = k->shape[1];
    int64_t keyHead = row.h / (row.hq / keyHeads);
    const double *query =
        &q->floats[((row.b * row.hq + row.h) * row.nq + row.i) * headDim];
    const double *keys =
        &k->floats[(row.b * keyHeads + keyHead) * row.nkv * headDim];
    // The rotations round each factor; the sum over D rounds in f32.
    double relative = std::hypot(q->relativeError, k->relativeError) +
                      kRoundoffF32 * double(headDim);
    for (int64_t j = 0; j < row.nkv; ++j) {
      if (!row.visible[j])
        continue;
      double sum = 0, squares = 0;
      for (int64_t d = 0; d < headDim; ++d) {
        double product = query[d] * keys[j * headDim + d];
        sum += product;
        squares += product * product;
      }
      row.score[j] = scale * sum;
      if (row.wantErrors)
        row.error[j] = std::abs(scale) * relative * std::sqrt(squares);
    }
  }

private:
  ArrayPtr q, k;
  double scale;
};

class GivenScores : public ScoreNode {
public:
  explicit GivenScores(ArrayPtr scores) : scores(std::move(scores)) {}

  void mask(Row &row) const override {
    for (int64_t j = 0; j < row.nkv; ++j)
      row.visible[j] &= at(row, j) != -INFINITY;
  }
  void score(Row &row) const override {
    for (int64_t j = 0; j < row.nkv; ++j)
      row.score[j] = at(row, j);
  }

private:
  double at(const Row &row, int64_t j) const {
    return scores
        ->floats[((row.b * row.hq + row.h) * row.nq + row.i) * row.nkv + j];
  }
  ArrayPtr scores;
};

/// A node that follows another.
class Successor : public ScoreNode {
public:
  explicit Successor(ScoreNodePtr input) : input(std::move(input)) {}
  void mask(Row &row) const override { input->mask(row); }
  void score(Row &row) const override { input->score(row); }

private:
  ScoreNodePtr input;
};

class Band : public Successor {
public:
  Band(ScoreNodePtr input, Alignment align, std::optional<int64_t> left,
       std::optional<int64_t> right)
      : Successor(std::move(input)), align(align), left(left), right(right) {}

  void mask(Row &row) const override {
    Successor::mask(row);
    int64_t diagonal = row.i + getOffset(align, row);
    for (int64_t j = 0; j < row.nkv; ++j) {
      // Bounds may be as large as an int64_t holds.
      __int128 distance = j - diagonal;
      if ((left && distance < -__int128(*left)) || (right && distance > *right))
        row.visible[j] = 0;
    }
  }

private:
  Alignment align;
  std::optional<int64_t> left, right;
};

class Blocks : public Successor {
public:
  Blocks(ScoreNodePtr input, ArrayPtr rowOffsets, ArrayPtr colIndices,
         int64_t queryBlock, int64_t keyBlock)
      : Successor(std::move(input)), rowOffsets(std::move(rowOffsets)),
        colIndices(std::move(colIndices)), queryBlock(queryBlock),
        keyBlock(keyBlock) {}

  void mask(Row &row) const override {
    Successor::mask(row);
    const std::vector<int64_t> &shape = rowOffsets->shape;
    int64_t pattern = 0;
    if (shape.size() == 3)
      pattern =
          (shape[0] == 1 ? 0 : row.b) * shape[1] + (shape[1] == 1 ? 0 : row.h);
    const int64_t *offsets =
        &rowOffsets->ints[pattern * shape.back() + row.i / queryBlock];
    std::vector<char> listed(row.nkv, 0);
    int64_t count = colIndices->ints.size();
    int64_t numKeyBlocks = (row.nkv + keyBlock - 1) / keyBlock;
    for (int64_t entry = std::max<int64_t>(offsets[0], 0);
         entry < std::min(offsets[1], count); ++entry) {
      int64_t block = colIndices->ints[entry];
      if (block < 0 || block >= numKeyBlocks)
        continue;
      int64_t end = std::min((block + 1) * keyBlock, row.nkv);
      std::fill(listed.begin() + block * keyBlock, listed.begin() + end, 1);
    }
    for (int64_t j = 0; j < row.nkv; ++j)
      row.visible[j] &= listed[j];
  }

private:
  ArrayPtr rowOffsets, colIndices;
  int64_t queryBlock, keyBlock;
};

class Alibi : public Successor {
public:
  Alibi(ScoreNodePtr input, Alignment align, ArrayPtr slopes)
      : Successor(std::move(input)), align(align), slopes(std::move(slopes)) {}

  void score(Row &row) const override {
    Successor::score(row);
    double slope = getSlope(row);
    int64_t diagonal = row.i + getOffset(align, row);
    for (int64_t j = 0; j < row.nkv; ++j) {
      double penalty = slope * double(std::abs(diagonal - j));
      row.score[j] -= penalty;
      if (row.wantErrors)
        row.error[j] +=
            kRoundoffF32 * (2 * std::abs(penalty) + std::abs(row.score[j]));
    }
  }

private:
  double getSlope(const Row &row) const {
    if (!slopes)
      return getStandardSlope(row.h, row.hq);
    bool isPerBatch = slopes->shape.size() == 2 && slopes->shape[0] != 1;
    return slopes->floats[(isPerBatch ? row.b * row.hq : 0) + row.h];
  }

  Alignment align;
  ArrayPtr slopes;
};

class Bias : public Successor {
public:
  Bias(ScoreNodePtr input, ArrayPtr bias)
      : Successor(std::move(input)), bias(std::move(bias)) {}

  void mask(Row &row) const override {
    Successor::mask(row);
    for (int64_t j = 0; j < row.nkv; ++j)
      if (at(row, j) == -INFINITY)
        row.visible[j] = 0;
  }

  void score(Row &row) const override {
    Successor::score(row);
    for (int64_t j = 0; j < row.nkv; ++j) {
      if (!row.visible[j])
        continue;
      row.score[j] += at(row, j);
      // Finite biases never add up to a mask (spec S5).
      if (std::isfinite(row.score[j]) && row.score[j] < -kLargestF32)
        row.score[j] = -kLargestF32;
      if (row.wantErrors)
        row.error[j] += kRoundoffF32 * std::abs(row.score[j]);
    }
  }

private:
  double at(const Row &row, int64_t j) const {
    const int64_t indices[] = {row.b, row.h, row.i, j};
    int64_t rank = bias->shape.size(), offset = 0;
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t size = bias->shape[dim];
      offset = offset * size + (size == 1 ? 0 : indices[4 - rank + dim]);
    }
    return bias->floats[offset];
  }

  ArrayPtr bias;
};
} // namespace

ScoreNodePtr reference::makeProduct(ArrayPtr q, ArrayPtr k, double scale) {
  return std::make_shared<Product>(std::move(q), std::move(k), scale);
}

ScoreNodePtr reference::makeGivenScores(ArrayPtr scores) {
  return std::make_shared<GivenScores>(std::move(scores));
}

ScoreNodePtr reference::makeBand(ScoreNodePtr input, Alignment align,
                                 std::optional<int64_t> left,
                                 std::optional<int64_t> right) {
  return std::make_shared<Band>(std::move(input), align, left, right);
}

ScoreNodePtr reference::makeBlocks(ScoreNodePtr input, ArrayPtr rowOffsets,
                                   ArrayPtr colIndices, int64_t queryBlock,
                                   int64_t keyBlock) {
  return std::make_shared<Blocks>(std::move(input), std::move(rowOffsets),
                                  std::move(colIndices), queryBlock, keyBlock);
}

ScoreNodePtr reference::makeAlibi(ScoreNodePtr input, Alignment align,
                                  ArrayPtr slopes) {
  return std::make_shared<Alibi>(std::move(input), align, std::move(slopes));
}

ScoreNodePtr reference::makeBias(ScoreNodePtr input, ArrayPtr bias) {
  return std::make_shared<Bias>(std::move(input), std::move(bias));
}
