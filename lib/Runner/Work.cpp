//===- Work.cpp - What a call has to do at least --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Work.h"
#include "AttentionUses.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::HostTensor;

namespace {
/// Counts the visible pairs of one attention.
class PairCounter {
public:
  PairCounter(const AttentionUse &use, const DimensionSizes &sizes,
              ArrayRef<HostTensor> arguments)
      : use(use), arguments(arguments) {
    std::vector<int64_t> output = sizes.getShape(use.output);
    batch = output[0];
    heads = output[1];
    nq = output[2];
    nkv = sizes.getShape(use.value)[2];
  }

  double count() const {
    const HostTensor *offsets = nullptr, *columns = nullptr;
    if (!use.blocks.empty()) {
      offsets = find(use.blocks.front().rowOffsets);
      columns = find(use.blocks.front().colIndices);
    }
    if (!offsets || !columns)
      return double(batch) * double(heads) * countBands();
    // A pattern counts for all batch entries and heads that share it.
    int64_t perPattern = offsets->getShape().back();
    int64_t numPatterns = offsets->getNumElements() / perPattern;
    double pairs = 0;
    for (int64_t pattern = 0; pattern < numPatterns; ++pattern)
      pairs += countBlocks(*offsets, *columns, pattern * perPattern);
    return pairs * double(batch * heads) / double(numPatterns);
  }

private:
  const HostTensor *find(Value value) const {
    auto argument = dyn_cast<BlockArgument>(skipCasts(value));
    return argument ? &arguments[argument.getArgNumber()] : nullptr;
  }

  /// The keys [first, last) of query i that the bands leave visible.
  std::pair<int64_t, int64_t> getRange(int64_t i) const {
    int64_t first = 0, last = nkv;
    for (BandAttr band : use.bands) {
      int64_t diagonal = i + getDiagonalOffset(band.getAlign(), nq, nkv);
      // Bounds may be as large as an int64_t holds.
      if (band.getLeft())
        first = std::max<__int128>(first, __int128(diagonal) - *band.getLeft());
      if (band.getRight())
        last =
            std::min<__int128>(last, __int128(diagonal) + *band.getRight() + 1);
    }
    return {first, std::max(first, last)};
  }

  double countBands() const {
    double pairs = 0;
    for (int64_t i = 0; i < nq; ++i) {
      auto [first, last] = getRange(i);
      pairs += double(last - first);
    }
    return pairs;
  }

  double countBlocks(const HostTensor &offsets, const HostTensor &columns,
                     int64_t patternStart) const {
    const BlockUse &blocks = use.blocks.front();
    double pairs = 0;
    for (int64_t i = 0; i < nq; ++i) {
      auto [first, last] = getRange(i);
      int64_t row = patternStart + i / blocks.queryBlock;
      for (int64_t entry = offsets.getInt(row); entry < offsets.getInt(row + 1);
           ++entry) {
        int64_t begin = columns.getInt(entry) * blocks.keyBlock;
        int64_t end = std::min(begin + blocks.keyBlock, nkv);
        pairs += double(
            std::max<int64_t>(std::min(end, last) - std::max(begin, first), 0));
      }
    }
    return pairs;
  }

  const AttentionUse &use;
  ArrayRef<HostTensor> arguments;
  int64_t batch, heads, nq, nkv;
};
} // namespace

Work mlir::attnfuse::countWork(const DimensionClasses &classes,
                               const Call &call) {
  Work work;
  for (const AttentionUse &use : getAttentions(classes.getFunction())) {
    int64_t features =
        cast<RankedTensorType>(use.value.getType()).getDimSize(3);
    if (use.query)
      features += cast<RankedTensorType>(use.query.getType()).getDimSize(3);
    work.flops += 2.0 * double(features) *
                  PairCounter(use, call.sizes, call.arguments).count();
  }
  for (const HostTensor &tensor : call.arguments)
    work.bytes += double(tensor.getNumBytes());
  for (const HostTensor &tensor : call.results)
    work.bytes += double(tensor.getNumBytes());
  return work;
}
