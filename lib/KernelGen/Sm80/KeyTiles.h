//===- KeyTiles.h - The ring of K and V tiles -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_KERNELGEN_SM80_KEYTILES_H
#define ATTNFUSE_LIB_KERNELGEN_SM80_KEYTILES_H

#include "attnfuse/KernelGen/AttentionProblem.h"
#include "attnfuse/KernelGen/SharedLayout.h"
#include "attnfuse/KernelGen/Sm80/TileCopy.h"

namespace mlir::attnfuse::kernelgen::sm80 {

/// The K and V tiles of a block's walk in shared memory, in a ring of as many
/// slots as the tile has stages. A slot goes by its byte offset from the first,
/// i32.
///
/// All threads of the block take part in all of it. Copies are in groups, which
/// a wait counts: K and V of a tile are one, with one stage one each.
class KeyTiles {
public:
  /// Of the block of `query`, whose shared memory is at `shared`.
  KeyTiles(KernelBuilder &b, const AttentionProblem &problem,
           const KernelTile &tile, const QueryTile &query, Value shared,
           Value thread);

  TileWalk &getWalk() { return walk; }
  const SharedLayout &getKeyLayout() const { return keys.layout; }
  Value getKeyTile(Value slotOffset) const { return getTile(keys, slotOffset); }
  Value getValueTile(Value slotOffset) const {
    return getTile(values, slotOffset);
  }
  Value getNextSlot(Value slotOffset) const;

  /// Issues what is under way when the walk begins, at `position`: the groups
  /// of the first `stages` - 1 tiles or, with one stage, that of the first K.
  void loadFirst(ValueRange position);
  int64_t getNumFirstGroups() const {
    return std::max<int64_t>(tile.stages - 1, 1);
  }
  /// Awaits the K of the step at `position`, and issues the loads for which
  /// there is room once every warp is done with the step before.
  void awaitKeys(ValueRange position, Value slotOffset);
  /// Awaits the V of a step, and loads the K of the `next` where that has room
  /// only then.
  void awaitValues(ValueRange next, Value slotOffset);

  /// Filters the V of a slot (ValueFilter.h), for all threads to see.
  void filterValues(Value keepsFinite, Value slotOffset);

private:
  Value getPreviousSlot(Value slotOffset) const;
  int64_t getLastSlot() const { return (tile.stages - 1) * plan.slotBytes; }
  /// K or V.
  struct Operand {
    Value tensor;
    SharedLayout layout;
    int64_t columns; ///< those that exist in memory
    Value base;      ///< of the head's matrix
    Value firstTile; ///< that of slot 0
  };
  Value getTile(const Operand &operand, Value slotOffset) const {
    return b.offsetPtr(operand.firstTile, slotOffset);
  }
  /// Of the head of `query`, with the tile of slot 0 at `firstTile`.
  Operand getOperand(Value tensor, int64_t paddedColumns,
                     const QueryTile &query, Value firstTile) const;
  TileCopy getCopy(const Operand &operand) const;
  void load(const Operand &operand, ValueRange position, Value slotOffset);
  void loadBoth(ValueRange position, Value slotOffset);
  /// A group of copies of the tiles at `position`; an empty one if the walk has
  /// ended there, so that groups can be counted.
  void loadGroup(ValueRange position, function_ref<void()> load);

  KernelBuilder &b;
  const AttentionProblem &problem;
  KernelTile tile;
  PaddedHeadDims dims;
  SharedMemoryPlan plan;
  Operand keys, values;
  Value thread;
  TileWalk walk;
};

} // namespace mlir::attnfuse::kernelgen::sm80

#endif // ATTNFUSE_LIB_KERNELGEN_SM80_KEYTILES_H
