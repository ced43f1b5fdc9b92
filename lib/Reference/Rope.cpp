//===- Rope.cpp - Rotations in fp64 ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rope.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;

/// The table row of element n of batch entry b, for tables of `numRows` > 0.
static int64_t getTableRow(const RopeArguments &args, int64_t b, int64_t n,
                           int64_t numRows) {
  __int128 position = args.staticOffset;
  if (args.offset)
    position += args.offset->ints[0];
  if (!args.positions) {
    position += n;
  } else {
    const Array &positions = *args.positions;
    bool isPerBatch = positions.shape.size() == 2 && positions.shape[0] != 1;
    position += positions.ints[(isPerBatch ? b * positions.shape[1] : 0) + n];
  }
  return int64_t(std::clamp<__int128>(position, 0, __int128(numRows) - 1));
}

bool reference::isInsideTables(const RopeArguments &args) {
  __int128 start = args.staticOffset;
  if (args.offset)
    start += args.offset->ints[0];
  return start >= 0 && start + args.x->shape[2] <= args.cos->shape[0];
}

Array reference::rotate(const RopeArguments &args, double roundoff) {
  const std::vector<int64_t> &shape = args.x->shape;
  int64_t numRows = args.cos->shape[0], numPairs = args.cos->shape[1];
  int64_t headDim = shape[3];
  Array result = *args.x;
  if (numRows == 0)
    return result;
  for (int64_t vector = 0, end = shape[0] * shape[1] * shape[2]; vector < end;
       ++vector) {
    int64_t n = vector % shape[2], b = vector / (shape[1] * shape[2]);
    int64_t row = getTableRow(args, b, n, numRows);
    const double *in = &args.x->floats[vector * headDim];
    double *out = &result.floats[vector * headDim];
    for (int64_t pair = 0; pair < numPairs; ++pair) {
      bool isHalf = args.pairing == Pairing::Half;
      int64_t first = isHalf ? pair : 2 * pair;
      int64_t second = isHalf ? pair + numPairs : 2 * pair + 1;
      double cos = args.cos->floats[row * numPairs + pair];
      double sin = args.sin->floats[row * numPairs + pair];
      out[first] = in[first] * cos - in[second] * sin;
      out[second] = in[second] * cos + in[first] * sin;
    }
  }
  // Two products and a sum in f32, then the one rounding.
  result.relativeError += roundoff + 2 * kRoundoffF32;
  return result;
}
