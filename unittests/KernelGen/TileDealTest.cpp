//===- TileDealTest.cpp - Every tile once, blocks equally long ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic is emitted for constants and evaluated as it stands.
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/TileDeal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

namespace {
/// The value of straight-line arithmetic on constants.
Attribute fold(Value value, DenseMap<Value, Attribute> &known) {
  if (Attribute constant = known.lookup(value))
    return constant;
  Operation *op = value.getDefiningOp();
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(fold(operand, known));
  SmallVector<OpFoldResult> results;
  Attribute constant;
  if (succeeded(op->fold(operands, results)) && !results.empty()) {
    constant = dyn_cast<Attribute>(results[0]);
    if (!constant)
      constant = fold(cast<Value>(results[0]), known);
  }
  if (!constant)
    ADD_FAILURE() << op->getName().getStringRef().str()
                  << " has no value: a division by 0?";
  return known[value] = constant;
}
int64_t evaluate(Value value) {
  DenseMap<Value, Attribute> known;
  auto constant = dyn_cast_or_null<IntegerAttr>(fold(value, known));
  return constant ? constant.getValue().getZExtValue() : 0;
}

struct Sizes {
  int64_t gridSize, heads, rowBlocks, headsPerSection;
};

class TileDealTest : public testing::TestWithParam<Sizes> {
protected:
  using Tile = std::pair<int64_t, int64_t>;

  /// The tiles (head, row block) of a block, in their order.
  std::vector<Tile> getTiles(int64_t block, TileLengths lengths) {
    const Sizes &sizes = GetParam();
    MLIRContext context;
    context.loadDialect<arith::ArithDialect>();
    Location loc = UnknownLoc::get(&context);
    std::vector<Tile> tiles;
    while (true) {
      OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
      KernelBuilder b(loc, OpBuilder::atBlockBegin(module->getBody()));
      TileDeal deal(b, b.i32(block), b.i32(sizes.gridSize), b.i32(sizes.heads),
                    b.i32(sizes.rowBlocks), b.i32(sizes.headsPerSection),
                    lengths);
      Value count = b.i32(tiles.size());
      if (!evaluate(deal.hasTile(b, count)))
        return tiles;
      TileDeal::Tile tile = deal.getTile(b, count);
      tiles.push_back({evaluate(tile.head), evaluate(tile.rowBlock)});
    }
  }

  /// Checks that every tile is dealt out once, and returns the sums of
  /// `length` by block.
  std::vector<int64_t> getLoads(TileLengths lengths,
                                function_ref<int64_t(int64_t)> length) {
    const Sizes &sizes = GetParam();
    std::set<Tile> all;
    std::vector<int64_t> loads(sizes.gridSize, 0);
    for (int64_t block = 0; block < sizes.gridSize; ++block)
      for (Tile tile : getTiles(block, lengths)) {
        EXPECT_LT(tile.first, sizes.heads);
        EXPECT_LT(tile.second, sizes.rowBlocks);
        EXPECT_TRUE(all.insert(tile).second)
            << "head " << tile.first << ", row block " << tile.second
            << " comes twice";
        loads[block] += length(tile.second);
      }
    EXPECT_EQ(int64_t(all.size()), sizes.heads * sizes.rowBlocks);
    return loads;
  }
};

TEST_P(TileDealTest, EqualTilesAreDealtOnce) {
  std::vector<int64_t> loads =
      getLoads(TileLengths::Equal, [](int64_t) { return 1; });
  auto [least, most] = std::minmax_element(loads.begin(), loads.end());
  EXPECT_LE(*most - *least, 1);
}

TEST_P(TileDealTest, TilesOfAnyLengthAreDealtOnce) {
  getLoads(TileLengths::Any, [](int64_t) { return 1; });
}

TEST_P(TileDealTest, GrowingTilesAreDealtOnceAndEvenly) {
  auto length = [](int64_t rowBlock) { return rowBlock + 1; };
  std::vector<int64_t> loads = getLoads(TileLengths::Growing, length);
  int64_t most = *std::max_element(loads.begin(), loads.end()), sum = 0;
  for (int64_t load : loads)
    sum += load;
  const Sizes &sizes = GetParam();
  double mean = double(sum) / sizes.gridSize, longest = sizes.rowBlocks;
  EXPECT_LE(most, std::max(mean, longest) + longest / 2 + 1);
  if (mean > 7 * longest)
    EXPECT_LE(most, 1.03 * mean + 1);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, TileDealTest,
    testing::Values(Sizes{132, 64, 32, 13}, Sizes{132, 16, 128, 4},
                    Sizes{132, 128, 22, 25}, Sizes{132, 32, 86, 7},
                    Sizes{132, 128, 16, 100}, Sizes{132, 32, 64, 28},
                    // Odd numbers of tiles, which have a middle.
                    Sizes{132, 77, 33, 11}, Sizes{132, 99, 11, 10},
                    Sizes{7, 5, 3, 2}, Sizes{7, 50, 1, 2}, Sizes{3, 9, 5, 1},
                    // Fewer tiles than blocks, one block, one section.
                    Sizes{132, 3, 7, 1}, Sizes{1, 4, 6, 2},
                    Sizes{132, 48, 4, 1000}, Sizes{264, 1, 1, 1},
                    // Nothing at all.
                    Sizes{4, 0, 8, 1}, Sizes{4, 8, 0, 2}));
} // namespace
