//===- Band.cpp - Arithmetic of band masks --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Band.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attnfuse;

std::optional<Band> Band::get(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Band>>(op)
      .Case([](CausalOp op) { return Band(op.getAlign(), std::nullopt, 0); })
      .Case([](SlidingWindowOp op) {
        return Band(op.getAlign(), op.getLeft(), op.getRight());
      })
      .Default(std::optional<Band>());
}

Band Band::intersect(const Band &other) const {
  auto tighter = [](std::optional<int64_t> a, std::optional<int64_t> b) {
    return !a || !b ? (a ? a : b) : std::min(*a, *b);
  };
  return Band(align, tighter(left, other.left), tighter(right, other.right));
}

Band Band::simplify(int64_t nq, int64_t nkv) const {
  auto isKnown = [](int64_t size) { return !ShapedType::isDynamic(size); };
  Band result = *this;
  if (isKnown(nq) && nq == nkv)
    result.align = Alignment::TopLeft;
  // `right` hides a key iff it hides the last one from query 0, that is, iff
  // off + right < Nkv - 1; `left` iff it hides key 0 from the last query, that
  // is, iff left < Nq - 1 + off. With either alignment off cancels one of the
  // lengths.
  bool isTopLeft = result.align == Alignment::TopLeft;
  int64_t rightLength = isTopLeft ? nkv : nq;
  int64_t leftLength = isTopLeft ? nq : nkv;
  if (result.right && isKnown(rightLength) && *result.right >= rightLength - 1)
    result.right.reset();
  if (result.left && isKnown(leftLength) && *result.left >= leftLength - 1)
    result.left.reset();
  return result;
}

SmallVector<Band> mlir::attnfuse::simplifyBands(ArrayRef<Band> bands,
                                                int64_t nq, int64_t nkv) {
  SmallVector<Band> result;
  for (const Band &band : bands) {
    Band simple = band.simplify(nq, nkv);
    if (simple.isUnbounded())
      continue;
    auto *same = llvm::find_if(
        result, [&](const Band &b) { return b.align == simple.align; });
    if (same == result.end())
      result.push_back(simple);
    else
      *same = same->intersect(simple);
  }
  return result;
}
