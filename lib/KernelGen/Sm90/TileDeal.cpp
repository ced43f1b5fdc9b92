//===- TileDeal.cpp - Dealing query tiles out to blocks -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/TileDeal.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

TileDeal::TileDeal(KernelBuilder &b, Value block, Value gridSize, Value heads,
                   Value rowBlocks, Value headsPerSection, TileLengths lengths)
    : block(block), gridSize(gridSize), heads(heads), rowBlocks(rowBlocks),
      headsPerSection(b.min(headsPerSection, heads)), lengths(lengths) {
  if (!hasPairs()) {
    total = b.mul(heads, rowBlocks);
    return;
  }
  pairsPerHead = b.divU(rowBlocks, 2);
  Value rounds = b.divU(b.mul(heads, pairsPerHead), gridSize);
  Value wholeRounds = b.max(b.sub(rounds, 1), 0);
  Value wholeHeads =
      b.divU(b.mul(wholeRounds, gridSize), b.max(pairsPerHead, 1));
  // A single section needs none.
  pairedHeads = b.select(b.le(heads, headsPerSection), b.i32(0), wholeHeads);
  numPairs = b.mul(pairedHeads, pairsPerHead);
  firstSingle = b.add(numPairs, b.mul(pairedHeads, b.remU(rowBlocks, 2)));
  total = b.add(firstSingle, b.mul(b.sub(heads, pairedHeads), rowBlocks));
  // All rounds but the last deal out a pair to every block.
  Value full = b.divU(numPairs, gridSize);
  pairRounds = b.add(
      full, b.select(b.lt(getNumber(b, full), numPairs), b.i32(1), b.i32(0)));
}

Value TileDeal::getNumber(KernelBuilder &b, Value round) const {
  Value backwards = b.sub(b.sub(gridSize, 1), block);
  Value isOdd = b.eq(b.andI(round, 1), 1);
  return b.add(b.mul(round, gridSize), b.select(isOdd, backwards, block));
}

TileDeal::Place TileDeal::getPlace(KernelBuilder &b, Value count) const {
  if (!hasPairs())
    return {getNumber(b, count), b.i1(false)};
  Value isPair = b.lt(count, b.shl(pairRounds, 1));
  Value round = b.select(isPair, b.shrU(count, 1), b.sub(count, pairRounds));
  return {getNumber(b, round), b.andI(isPair, b.eq(b.andI(count, 1), 1))};
}

Value TileDeal::hasTile(KernelBuilder &b, Value count) const {
  return b.lt(getPlace(b, count).number, total);
}

TileDeal::Share TileDeal::getShare(KernelBuilder &b, Value number) const {
  Share share{b.i32(0),  b.i32(0),        heads,
              rowBlocks, headsPerSection, b.sub(rowBlocks, 1)};
  if (!hasPairs())
    return share;
  auto choose = [&](Value condition, const Share &x, const Share &y) {
    auto of = [&](Value Share::*member) {
      return b.select(condition, x.*member, y.*member);
    };
    return Share{of(&Share::firstNumber), of(&Share::firstHead),
                 of(&Share::heads),       of(&Share::perHead),
                 of(&Share::perSection),  of(&Share::lastRowBlock)};
  };
  Share pairs = share, middles = share, singles = share;
  pairs.heads = pairedHeads;
  pairs.perHead = pairsPerHead;
  middles.firstNumber = numPairs;
  middles.heads = middles.perSection = pairedHeads;
  middles.perHead = b.i32(1);
  middles.lastRowBlock = pairsPerHead;
  singles.firstNumber = firstSingle;
  singles.firstHead = pairedHeads;
  singles.heads = singles.perSection = b.sub(heads, pairedHeads);
  return choose(b.lt(number, numPairs), pairs,
                choose(b.lt(number, firstSingle), middles, singles));
}

TileDeal::Tile TileDeal::getTile(KernelBuilder &b, Value count) const {
  auto [number, isSecond] = getPlace(b, count);
  Share share = getShare(b, number);
  number = b.sub(number, share.firstNumber);
  Value inAll = b.mul(share.perSection, share.perHead);
  Value firstHead = b.mul(b.divU(number, inAll), share.perSection);
  Value inSection = b.remU(number, inAll);
  Value sectionHeads = b.min(share.perSection, b.sub(share.heads, firstHead));
  Value rowBlock = b.divU(inSection, sectionHeads);
  Value head =
      b.add(b.add(share.firstHead, firstHead), b.remU(inSection, sectionHeads));
  Value fromEnd = b.sub(share.lastRowBlock, rowBlock);
  switch (lengths) {
  case TileLengths::Equal:
    return {head, rowBlock};
  case TileLengths::Any:
    return {head, fromEnd};
  case TileLengths::Growing:
    return {head, b.select(isSecond, rowBlock, fromEnd)};
  }
  llvm_unreachable("all lengths are handled");
}
