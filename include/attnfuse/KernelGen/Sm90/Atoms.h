//===- Atoms.h - Instructions of sm_90a -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per instruction, as inline PTX: its names are those of the PTX
// ISA. Shared memory is addressed by i32 everywhere. Operands of warpgroup-wide
// products are tiles of 64-column panels with the 128-byte swizzle
// (SharedLayout.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM90_ATOMS_H
#define ATTNFUSE_KERNELGEN_SM90_ATOMS_H

#include "attnfuse/KernelGen/KernelBuilder.h"
#include "attnfuse/KernelGen/KernelResources.h"

namespace mlir::attnfuse::kernelgen::sm90 {

inline constexpr int64_t kMmaK = 16;
/// Bytes of a row of a panel, and of one matrix of 8 rows.
inline constexpr int64_t kPanelPitch = 2 * kPanelColumns;
/// A descriptor counts in these bytes.
inline constexpr int64_t kDescriptorUnit = 16;

// Barriers in shared memory (mbarrier). Conditions are i32, 0 or 1: an
// instruction under a condition is no control flow.
void initBarrier(KernelBuilder &b, Value barrier, int64_t count);
/// Makes initialised barriers visible to the tensor memory accelerator.
void fenceBarrierInit(KernelBuilder &b);
void waitBarrier(KernelBuilder &b, Value barrier, Value parity);
void waitBarrierIf(KernelBuilder &b, Value condition, Value barrier,
                   Value parity);
/// Waits once `value`, an f32 that is not negative, is known. The assembler is
/// free to move what makes a value behind a wait that does not depend on it.
void waitBarrierAfter(KernelBuilder &b, Value barrier, Value parity,
                      Value value);
void arrive(KernelBuilder &b, Value barrier);
void arriveIf(KernelBuilder &b, Value condition, Value barrier);
/// Arrives, and has the phase also wait for `bytes` of copies.
void arriveExpecting(KernelBuilder &b, Value barrier, int64_t bytes);

// Named barriers of `threads` threads.
void syncNamed(KernelBuilder &b, Value id, int64_t threads);
void arriveNamed(KernelBuilder &b, Value id, int64_t threads);
void syncWarp(KernelBuilder &b);

/// Starts a copy of 8 or 16 bytes, by pointers that are multiples of as much.
void copyAsync(KernelBuilder &b, Value shared, Value global, int64_t bytes);
/// Has this thread arrive once all copies that it has started have landed.
void arriveAfterCopies(KernelBuilder &b, Value barrier);

/// Has `bytes` from a global address on, both multiples of 16, brought to the
/// L2 cache.
void prefetchToCache(KernelBuilder &b, Value address, Value bytes);

// Tensor memory accelerator: boxes of a [B, H, N, D] tensor. `at` is (column,
// row, head, batch).
void loadBox(KernelBuilder &b, Value shared, Value map, ValueRange at,
             Value barrier);
void storeBox(KernelBuilder &b, Value map, ValueRange at, Value shared);
void commitStores(KernelBuilder &b);
/// Waits until the committed stores of this thread have read shared memory.
void waitStoresRead(KernelBuilder &b);
void waitStoresReadIf(KernelBuilder &b, Value condition);
/// Orders this thread's accesses to shared memory before those of the
/// accelerator and of warpgroup-wide products.
void fenceAsyncProxy(KernelBuilder &b);

/// Gives up registers, or takes them from what others gave up.
void decreaseRegisters(KernelBuilder &b, int64_t count);
void increaseRegisters(KernelBuilder &b, int64_t count);

/// ldmatrix.x4 and stmatrix.x4 of 16-bit elements: 4 i32.
Values loadMatrix(KernelBuilder &b, Value shared);
void storeMatrix(KernelBuilder &b, Value shared, ValueRange registers);

/// An i32 from shared memory.
Value loadWord(KernelBuilder &b, Value shared);

/// Low half of the descriptor of an operand that starts at `address`.
/// `leadingBytes` is the distance of panels where columns run along n, and 16
/// where they run along k (ignored then).
Value getDescriptor(KernelBuilder &b, Value address, int64_t leadingBytes);

/// One product of a warpgroup: 64 x n += 64 x k by k x n, in steps of 16 of k.
struct WarpgroupProduct {
  Type elementType; ///< f16 or bf16
  int64_t n;
  /// Whether rows of B run along k, as those of V do.
  bool transposedB;
  /// By step, distance of B from its descriptor in units of 16 bytes; the same
  /// for an A in shared memory, else empty.
  SmallVector<int64_t> bOffsets, aOffsets;
  /// Whether earlier writes of registers that the product reads are to be
  /// ordered before it.
  bool fences = true;

  /// Issues the product as one group. `a` is a descriptor or 4 registers a
  /// step. Without `accumulators` it starts from 0. The results may be used
  /// after waitProducts.
  Values emit(KernelBuilder &b, ValueRange accumulators, ValueRange a,
              Value bDescriptor) const {
    return emitSteps(b, accumulators, a, bDescriptor, 0, bOffsets.size());
  }
  /// The same of steps `begin` to `end` - 1 alone, as a group of its own.
  Values emitSteps(KernelBuilder &b, ValueRange accumulators, ValueRange a,
                   Value bDescriptor, int64_t begin, int64_t end) const;
};

/// Waits until at most `pending` groups are under way; returns the accumulators
/// of those that are complete.
Values waitProducts(KernelBuilder &b, int64_t pending, ValueRange accumulators);

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_KERNELGEN_SM90_ATOMS_H
