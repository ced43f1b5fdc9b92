//===- StageRing.h - Tiles between producer and consumers -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring of equal tiles in shared memory. Tile number n, counted over the whole
// life of the block, lies in slot n mod stages; the barriers of its slot are in
// the phase of parity (n / stages) mod 2. A producer waits until the slot's
// earlier tile is released, a consumer until the tile has landed; both walk the
// same numbers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_STAGERING_H
#define ATTNFUSE_KERNELGEN_SM90_STAGERING_H

#include "attnfuse/KernelGen/Sm90/Atoms.h"

namespace mlir::attnfuse::kernelgen::sm90 {

class StageRing {
public:
  /// `tiles`, and `full` and `empty`, `stages` barriers each, are addresses;
  /// `stages` is a power of 2.
  StageRing(Value tiles, int64_t tileBytes, Value full, Value empty,
            int64_t stages)
      : tiles(tiles), full(full), empty(empty), tileBytes(tileBytes),
        stages(stages) {}

  /// Each barrier is initialised once, though two rings may share `empty`.
  void initFull(KernelBuilder &b, int64_t producers) const;
  void initEmpty(KernelBuilder &b, int64_t consumers) const;

  Value getTile(KernelBuilder &b, Value number) const;
  Value getFull(KernelBuilder &b, Value number) const;
  Value getParity(KernelBuilder &b, Value number) const;
  int64_t getTileBytes() const { return tileBytes; }

  void waitEmpty(KernelBuilder &b, Value number) const;
  void waitFull(KernelBuilder &b, Value number) const;
  /// The same, under a condition (i32, 0 or 1).
  void waitFullIf(KernelBuilder &b, Value condition, Value number) const;
  /// Releases what products have read that have been waited for.
  void releaseIf(KernelBuilder &b, Value condition, Value number) const;
  /// Releases what all lanes of a warp have loaded, and the tensor memory
  /// accelerator will overwrite. An arrival alone does not order the two: loads
  /// that are slow, because products keep the shared memory busy, would read
  /// the next tile. Every lane fences its own loads, before the warp meets.
  void releaseLoadedIf(KernelBuilder &b, Value condition, Value number) const;

private:
  Value getSlot(KernelBuilder &b, Value number) const;
  Value getBarrier(KernelBuilder &b, Value barriers, Value number) const;

  Value tiles, full, empty;
  int64_t tileBytes, stages;
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_STAGERING_H
