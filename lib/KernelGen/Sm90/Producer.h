//===- Producer.h - The loading warpgroup -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_KERNELGEN_SM90_PRODUCER_H
#define ATTNFUSE_LIB_KERNELGEN_SM90_PRODUCER_H

#include "BlockContext.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// Loads the tiles of Q, K and V in the order in which consumers want them: V
/// is one step behind K. One thread issues; all rotate K, or those of other
/// warps copy what the tables of Q's rotation have for a tile.
class Producer {
public:
  Producer(KernelBuilder &b, const BlockContext &context);
  void build();

private:
  void buildRounds();
  /// The rounds of the spare warps.
  void buildTableRounds();
  /// Hands over the tile of a round, and loads its Q or has what it needs of
  /// the rotation's tables brought to the cache: a tile ahead, so that after
  /// the first one no one waits for memory.
  void handOver(Value round, const TileRecord &record);
  void loadQuery(Value round, const QueryTile &query);
  void prefetchTables(const QueryTile &query);
  /// Loads the tiles of one query tile, the n-th key tile of the block being
  /// the first; returns the next round, the number of its first key tile, and
  /// its query tile.
  Values buildTile(Value round, const QueryTile &query, Value number);
  void rotateKey(const QueryTile &query, Value firstKey, Value number);
  /// Waits for the slot of a ring's n-th tile, of which `bytes` will be
  /// written; its address.
  Value beginLoad(const StageRing &ring, Value number, int64_t bytes);
  /// Loads panels of 64 columns from `firstColumn` on to `tile`.
  void loadPanels(Value tile, Value map, int64_t panels, int64_t panelBytes,
                  Value firstColumn, ValueRange rowHeadBatch, Value full);
  /// Loads a whole tile.
  void load(const StageRing &ring, Value number, Value map, int64_t rows,
            ValueRange rowHeadBatch);
  void loadStaged(const QueryTile &query, Value firstKey, Value number);
  /// Emits `body` for the issuing thread.
  void asLoader(function_ref<void()> body);

  KernelBuilder &b;
  const BlockContext &context;
  const AttentionProblem &problem;
  Value queryMap, keyMap, valueMap;
  Values stagedMaps; ///< by staged operand
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_LIB_KERNELGEN_SM90_PRODUCER_H
