//===- TileWalk.h - Which key tiles a query tile visits --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bands limit the visible keys of query i to [i + lower, i + upper]; block
// lists limit them to listed blocks. A tile that is masked as a whole is never
// visited, and only a tile that a limit cuts is a boundary tile, for which the
// kernel runs mask code.
//
// Tiles are walked from the last key to the first. What a diagonal or the end
// of the keys cuts comes first then, and what the lower limit cuts comes last:
// boundary tiles, inner tiles, boundary tiles. That holds for a part of the
// walk, too, where several blocks share the keys of a query tile.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_TILEWALK_H
#define ATTNFUSE_KERNELGEN_TILEWALK_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen {

/// The largest Nq and Nkv, which the manifest's checks guarantee at a launch:
/// sums of two lengths or bounds of bands fit in i32.
inline constexpr int64_t kMaxLength = (int64_t(1) << 30) - 1;

/// The intersection of all bands: key j is visible to query i iff
/// i + lower <= j <= i + upper. A null bound does not limit.
struct BandLimits {
  Value lower, upper;

  static BandLimits get(KernelBuilder &b, ArrayAttr bands, Value nq, Value nkv);
};

/// The list of key blocks of the query tile's block: entries [begin, end) of
/// `indices`, which ascend.
struct BlockList {
  Value indices; ///< pointer to the i32 column of the first entry
  Value stride;  ///< i64 stride of the columns, in elements
  Value begin, end;
  /// Tiles in a key block.
  int64_t tilesPerBlock;
};

/// Part `index` of `count` (i32, below 2^11) of a walk.
struct WalkPart {
  Value index, count;
};

class TileWalk {
public:
  /// The walk of query rows [firstRow, firstRow + tileM) over keys [0, nkv), or
  /// a part of it: of the tiles that the bands leave or, with a list, of those
  /// listed. Numbers of tiles of two parts differ by at most one; parts may be
  /// empty.
  TileWalk(KernelBuilder &b, BandLimits limits, std::optional<BlockList> blocks,
           Value firstRow, int64_t tileM, int64_t tileN, Value nq, Value nkv,
           std::optional<WalkPart> part = std::nullopt);

  // A position in the walk is a list of i32 values that a loop can carry.
  Values begin(KernelBuilder &b);
  /// `count` tiles on from a valid position, which may be beyond the end.
  Values next(KernelBuilder &b, ValueRange position, int64_t count = 1);
  Value isValid(KernelBuilder &b, ValueRange position);
  /// First key of the tile at a valid position.
  Value getFirstKey(KernelBuilder &b, ValueRange position);
  /// Whether a limit cuts the tile that starts at `firstKey`.
  Value isBoundary(KernelBuilder &b, Value firstKey);

private:
  /// Limits the list to a part of its tiles.
  void takePartOfList(KernelBuilder &b, const WalkPart &part);
  /// The list entry and the tile in its block that come before a position's.
  Values stepBack(KernelBuilder &b, ValueRange position);
  /// The tile of a list entry.
  Value loadTile(KernelBuilder &b, Value entry, Value inBlock);

  BandLimits limits;
  std::optional<BlockList> blocks;
  Value firstRow, lastRow, nkv;
  int64_t tileN;
  /// The tiles that the bands leave.
  Value firstTile, endTile;
  /// Of a part of a list: the first tile in the block of its first entry, and
  /// the place behind its last tile, as stepBack takes it. Null where all of it
  /// is walked.
  Value firstInBlock;
  Values endOfList;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_TILEWALK_H
