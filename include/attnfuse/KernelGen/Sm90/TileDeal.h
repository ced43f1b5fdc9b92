//===- TileDeal.h - Dealing query tiles out to blocks -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tiles of all heads are numbered, and block b of a grid of G takes one in
// every round: number b of the first G, then, dealt out backwards in every
// second round, one of the next G. What a block gets is known from its index
// alone: there is no counter that launches would share or have to clear.
//
// Heads come in sections, whose K and V stay in the L2 cache. Where the tiles
// of a head differ in length, sections by themselves leave blocks with unequal
// sums. Below a diagonal the first and the last tile of a head, the second and
// the last but one, ... are as long together as any other such pair, so three
// shares are dealt out, one after the other:
//
//   the pairs of most heads, all alike, in sections;
//   the tiles in the middle of these heads, if the number of tiles is odd;
//   the tiles of the other heads, the longest first: at least a round of pairs,
//   to even out what whole heads leave of a round. Where all heads are one
//   section, these are all.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_TILEDEAL_H
#define ATTNFUSE_KERNELGEN_SM90_TILEDEAL_H

#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// How the number of keys changes with the rows of a tile.
enum class TileLengths {
  Equal,
  /// In no order that is known; probably more below.
  Any,
  /// By the same number of keys from one tile to the next.
  Growing
};

class TileDeal {
public:
  /// All counts are i32: `heads` heads of `rowBlocks` tiles each to `gridSize`
  /// blocks, in sections of `headsPerSection` heads, at least 1.
  TileDeal(KernelBuilder &b, Value block, Value gridSize, Value heads,
           Value rowBlocks, Value headsPerSection, TileLengths lengths);

  struct Tile {
    Value head, rowBlock;
  };
  /// The tile that the block gets after `count` others, i32.
  Tile getTile(KernelBuilder &b, Value count) const;
  /// Whether there is one. If not, there are none after it, either.
  Value hasTile(KernelBuilder &b, Value count) const;

private:
  /// What the block gets after `count` tiles: of the pairs and single tiles
  /// number `number`, and whether it is the second tile of a pair.
  struct Place {
    Value number, isSecond;
  };
  Place getPlace(KernelBuilder &b, Value count) const;
  /// Number of what the block gets in a round.
  Value getNumber(KernelBuilder &b, Value round) const;
  bool hasPairs() const { return lengths == TileLengths::Growing; }

  /// Heads `firstHead` on, each of which has `perHead` numbers from
  /// `firstNumber` on, the first of them `lastRowBlock`.
  struct Share {
    Value firstNumber, firstHead, heads, perHead, perSection, lastRowBlock;
  };
  Share getShare(KernelBuilder &b, Value number) const;

  Value block, gridSize, heads, rowBlocks, headsPerSection;
  TileLengths lengths;
  Value pairsPerHead, pairedHeads, numPairs;
  /// In how many rounds the block gets a pair.
  Value pairRounds;
  /// Number of the first tile of the third share, and of all shares.
  Value firstSingle, total;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_TILEDEAL_H
