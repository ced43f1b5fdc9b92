//===- BandTest.cpp - Band arithmetic against counting --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Band.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
constexpr int64_t kMaxLength = 4;

/// Every band whose bounds can make a difference for lengths up to kMaxLength.
std::vector<Band> getAllBands() {
  std::vector<std::optional<int64_t>> bounds{std::nullopt};
  for (int64_t bound = 0; bound <= 2 * kMaxLength; ++bound)
    bounds.push_back(bound);
  std::vector<Band> bands;
  for (Alignment align : {Alignment::TopLeft, Alignment::BottomRight})
    for (auto left : bounds)
      for (auto right : bounds)
        bands.emplace_back(align, left, right);
  return bands;
}

/// Spec S8 and S9, word for word.
bool isVisible(const Band &band, int64_t i, int64_t j, int64_t nq,
               int64_t nkv) {
  int64_t off = band.align == Alignment::BottomRight ? nkv - nq : 0;
  return (!band.left || i + off - *band.left <= j) &&
         (!band.right || j <= i + off + *band.right);
}

/// Which keys all of `bands` keep, row by row.
std::vector<bool> getMask(ArrayRef<Band> bands, int64_t nq, int64_t nkv) {
  std::vector<bool> mask;
  for (int64_t i = 0; i < nq; ++i)
    for (int64_t j = 0; j < nkv; ++j)
      mask.push_back(llvm::all_of(bands, [&](const Band &band) {
        return isVisible(band, i, j, nq, nkv);
      }));
  return mask;
}

template <typename Callable>
void forEachLength(Callable callable) {
  for (int64_t nq = 0; nq <= kMaxLength; ++nq)
    for (int64_t nkv = 0; nkv <= kMaxLength; ++nkv)
      callable(nq, nkv);
}

TEST(BandTest, SimplifyKeepsTheMaskWhateverIsKnown) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  for (const Band &band : getAllBands())
    forEachLength([&](int64_t nq, int64_t nkv) {
      std::vector<bool> expected = getMask(band, nq, nkv);
      for (int64_t knownNq : {nq, dynamic})
        for (int64_t knownNkv : {nkv, dynamic})
          EXPECT_EQ(getMask(band.simplify(knownNq, knownNkv), nq, nkv),
                    expected);
    });
}

TEST(BandTest, SimplifyLeavesNoBoundThatHidesNothing) {
  for (const Band &band : getAllBands())
    forEachLength([&](int64_t nq, int64_t nkv) {
      // Without a row or a key nothing can be hidden.
      if (nq * nkv == 0)
        return;
      Band simple = band.simplify(nq, nkv);
      for (auto bound : {&Band::left, &Band::right}) {
        Band alone(simple.align, std::nullopt, std::nullopt);
        if (!(alone.*bound = simple.*bound))
          continue;
        std::vector<bool> mask = getMask(alone, nq, nkv);
        EXPECT_TRUE(llvm::is_contained(mask, false));
      }
    });
}

TEST(BandTest, SimplifyBandsKeepsTheMask) {
  std::vector<Band> all = getAllBands();
  // Pairs that meet every band with every stride of partners.
  for (auto [index, first] : llvm::enumerate(all))
    for (size_t other = index % 7; other < all.size(); other += 7)
      forEachLength([&, first = first](int64_t nq, int64_t nkv) {
        SmallVector<Band> pair{first, all[other]};
        SmallVector<Band> simple = simplifyBands(pair, nq, nkv);
        EXPECT_LE(simple.size(), nq == nkv ? 1u : 2u);
        EXPECT_EQ(getMask(simple, nq, nkv), getMask(pair, nq, nkv));
      });
}
} // namespace
