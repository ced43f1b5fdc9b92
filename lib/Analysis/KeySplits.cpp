//===- KeySplits.cpp - When blocks share the keys of a tile ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/KeySplits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// More rows than a launch has that splits its keys: what is beyond need not be
/// told apart, and products of sizes fit 64 bits.
constexpr int64_t kManyRows = int64_t(1) << 28;
/// No machine has so many.
constexpr int64_t kMostSms = 1024;
/// Clocks that a key tile takes a block at least, which has two products and
/// the normalization between them to wait for; an estimate, for machines of any
/// kind.
constexpr double kStepClocks = 1000;
/// Bounds of what a target's facts give, in picoseconds: so that products with
/// sizes fit.
constexpr double kLongestStep = 1e9, kLongestRow = 1e6;
} // namespace

/// floor(a / b) for a >= 0 and b >= 1.
static SizeExpression divide(const SizeExpression &a, const SizeExpression &b) {
  return ceilDiv(a - b + 1, b);
}

static int64_t toPicoseconds(double time, double longest) {
  return std::llround(std::clamp(time, 1.0, longest));
}

/// An upper bound (below) of an operation on two operands; `isNumber` says that
/// the second is one.
static std::optional<int64_t> getUpperBound(llvm::StringRef operation,
                                            std::optional<int64_t> a,
                                            std::optional<int64_t> b,
                                            bool isNumber) {
  if (operation == "min" && (a || b))
    return std::min(a ? *a : *b, b ? *b : *a);
  if (!a || !b)
    return std::nullopt;
  int64_t result;
  if (operation == "max")
    return std::max(*a, *b);
  if (operation == "add" && !llvm::AddOverflow(*a, *b, result))
    return result;
  if (operation == "sub" && isNumber && !llvm::SubOverflow(*a, *b, result))
    return result;
  if (operation == "mul" && *a >= 0 && *b >= 0 &&
      !llvm::MulOverflow(*a, *b, result))
    return result;
  if (operation == "ceildiv" && isNumber && *b > 0)
    return llvm::divideCeilSigned(*a, *b);
  return std::nullopt;
}

/// The most that the expression of sizes, which are at least 0, can be, as far
/// as numbers in it tell.
static std::optional<int64_t> getUpperBound(const llvm::json::Value &value) {
  if (std::optional<int64_t> number = value.getAsInteger())
    return number;
  const llvm::json::Array *parts = value.getAsArray();
  if (!parts)
    return value.getAsString() == llvm::StringRef("$sm_count")
               ? std::optional(kMostSms)
               : std::nullopt;
  llvm::StringRef operation = *parts->front().getAsString();
  std::optional<int64_t> bound = getUpperBound((*parts)[1]);
  for (const llvm::json::Value &operand : llvm::drop_begin(*parts, 2))
    bound = getUpperBound(operation, bound, getUpperBound(operand),
                          operand.getAsInteger().has_value());
  return bound;
}

KeySplits::KeySplits(AttentionOp op, const AttentionSizes &sizes,
                     const BlockTile &tile, const TargetInfo &target,
                     const SizeExpression &smCount)
    : count(1), gain(0), cost(0), mayPay(false) {
  TileVisits visits(op, sizes, tile.shape);
  SizeExpression slots = smCount * tile.blocksPerSm;
  count = max(min(min(divide(slots, max(visits.queryTiles, 1)),
                      ceilDiv(visits.ofLongest, kLeastTiles)),
                  kMostParts),
              1);

  // While blocks are few, each takes K and V as fast as its SM can, if no
  // slower.
  int64_t headDims = op.getHeadDim() + op.getValueHeadDim();
  double bytes = 2.0 * double(tile.shape.n * headDims);
  double clocks = std::max(bytes / double(target.l2BytesPerClock), kStepClocks);
  int64_t step = toPicoseconds(1e3 * clocks / target.clockGhz, kLongestStep);
  gain = (visits.ofLongest - ceilDiv(visits.ofLongest, count)) * step;
  // Each row of each part is written and read.
  int64_t row = toPicoseconds(2e3 * 4 * double(op.getValueHeadDim() + 2) /
                                  target.dramGbPerSecond,
                              kLongestRow);
  int64_t launch = toPicoseconds(target.combineLaunchNs * 1e3, kLongestStep);
  SizeExpression rows =
      min(sizes.batch * sizes.queryHeads * sizes.queries, kManyRows);
  cost = count * rows * row + launch;

  std::optional<int64_t> mostParts = getUpperBound(count.getJson()),
                         mostTiles = getUpperBound(visits.ofLongest.getJson());
  bool isDecided = (mostParts && *mostParts < 2) ||
                   (mostTiles && (*mostTiles - kLeastTiles) * step < launch);
  mayPay = !isDecided;
}
