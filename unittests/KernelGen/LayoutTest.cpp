//===- LayoutTest.cpp - Shared layouts and fragments ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/AccumulatorTile.h"
#include "attnfuse/KernelGen/SharedLayout.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

namespace {
class SharedLayoutTest : public testing::TestWithParam<int64_t> {};

TEST_P(SharedLayoutTest, EveryChunkHasItsOwnSixteenBytes) {
  SharedLayout layout(32, GetParam());
  std::set<int64_t> offsets;
  for (int64_t row = 0; row < layout.getRows(); ++row)
    for (int64_t chunk = 0; chunk < layout.getChunks(); ++chunk)
      offsets.insert(layout.getOffset(row, chunk));
  EXPECT_EQ(int64_t(offsets.size()), layout.getRows() * layout.getChunks());
  EXPECT_EQ(*offsets.begin(), 0);
  EXPECT_EQ(*offsets.rbegin(), layout.getBytes() - 16);
  for (int64_t offset : offsets)
    EXPECT_EQ(offset % 16, 0);
}

TEST_P(SharedLayoutTest, EightRowsOfAMatrixHitDifferentBanks) {
  SharedLayout layout(32, GetParam());
  for (int64_t firstRow = 0; firstRow < layout.getRows(); firstRow += 8)
    for (int64_t chunk = 0; chunk < layout.getChunks(); ++chunk) {
      std::set<int64_t> bankGroups;
      for (int64_t row = 0; row < 8; ++row)
        bankGroups.insert(layout.getOffset(firstRow + row, chunk) / 16 % 8);
      EXPECT_EQ(bankGroups.size(), 8u)
          << "rows from " << firstRow << ", chunk " << chunk;
    }
}

TEST_P(SharedLayoutTest, RunTimeOffsetsAreTheCompileTimeOnes) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  KernelBuilder b(module->getLoc(), OpBuilder::atBlockEnd(module->getBody()));
  SharedLayout layout(24, GetParam());
  // Multiples of 8, where the swizzle repeats, and others.
  for (int64_t rowOffset : {0, 8, 12})
    for (int64_t row = 0; row + rowOffset < layout.getRows(); ++row)
      for (int64_t chunk = 0; chunk < layout.getChunks(); ++chunk) {
        // Constants fold, so the emitted arithmetic is evaluated while it is
        // built.
        Value offset = layout.getOffset(b, b.i32(row), b.i32(chunk), rowOffset);
        APInt value;
        ASSERT_TRUE(matchPattern(offset, m_ConstantInt(&value)));
        EXPECT_EQ(value.getSExtValue(),
                  layout.getOffset(row + rowOffset, chunk))
            << "row " << row << " + " << rowOffset << ", chunk " << chunk;
      }
}

INSTANTIATE_TEST_SUITE_P(Columns, SharedLayoutTest,
                         testing::Values(16, 32, 48, 64, 80, 96, 112, 128, 144,
                                         160, 192, 224, 240, 256));

TEST(AccumulatorTile, LanesCoverTheTileOnce) {
  AccumulatorTile shape{2, 4};
  std::set<std::pair<int64_t, int64_t>> places;
  std::set<int64_t> indices;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t r = 0; r < shape.getNumRows(); ++r)
      for (auto [n, index] : llvm::enumerate(shape.getRowIndices(r))) {
        places.insert({lane / 4 + AccumulatorTile::getRowOffset(r),
                       2 * (lane % 4) + AccumulatorTile::getColumnOffset(n)});
        indices.insert(index);
      }
  EXPECT_EQ(places.size(), 32u * 32u);
  EXPECT_EQ(*places.rbegin(), std::pair(int64_t(31), int64_t(31)));
  EXPECT_EQ(int64_t(indices.size()), shape.getSize());
  EXPECT_EQ(*indices.rbegin(), shape.getSize() - 1);
}

/// The chunk that lane `lane` addresses, evaluated by folding.
std::pair<int64_t, int64_t>
evaluate(function_ref<sm80::LanePosition(KernelBuilder &, Value)> position,
         int64_t lane) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  KernelBuilder b(module->getLoc(), OpBuilder::atBlockEnd(module->getBody()));
  sm80::LanePosition result = position(b, b.i32(lane));
  APInt row, chunk;
  EXPECT_TRUE(matchPattern(result.row, m_ConstantInt(&row)));
  EXPECT_TRUE(matchPattern(result.chunkLowBit, m_ConstantInt(&chunk)));
  return {row.getSExtValue(), chunk.getSExtValue()};
}

TEST(Fragments, LoadedMatricesAreInFragmentOrder) {
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t matrix = lane / 8, row = lane % 8;
    // A: (rows 0-7, k low), (rows 8-15, k low), (rows 0-7, k high), (rows 8-15,
    // k high).
    EXPECT_EQ(evaluate(sm80::getLanePositionA, lane),
              std::pair(row + matrix % 2 * 8, matrix / 2));
    // B: (n 0-7, k low), (n 0-7, k high), (n 8-15, k low), (n 8-15, k high).
    EXPECT_EQ(evaluate(sm80::getLanePositionB, lane),
              std::pair(row + matrix / 2 * 8, matrix % 2));
    // Transposed: (k low, n 0-7), (k high, n 0-7), (k low, n 8-15), (k high, n
    // 8-15).
    EXPECT_EQ(evaluate(sm80::getLanePositionBTransposed, lane),
              std::pair(row + matrix % 2 * 8, matrix / 2));
  }
}
} // namespace
