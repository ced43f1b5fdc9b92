//===- Atoms.h - Instructions and fragments of sm_80 ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync m16n8k16, ldmatrix and cp.async, which every chip from sm_80 on has.
//
// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point
// type"), lane l, g = l / 4, q = l mod 4:
//
//   accumulator, 4 f32      e: row g + 8 (e / 2), column 2 q + e mod 2
//   A, 4 registers of 2     (g, 2q), (g + 8, 2q), (g, 2q + 8), (g + 8, 2q + 8)
//   B, 2 registers of 2     (k 2q, n g), (k 2q + 8, n g)
//
// So two neighbouring accumulators, packed, are an A fragment of 16 columns.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_SM80_ATOMS_H
#define ATTNFUSE_KERNELGEN_SM80_ATOMS_H

#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen::sm80 {

inline constexpr int64_t kMmaM = 16, kMmaN = 8, kMmaK = 16;
/// Which row, and which of two neighbouring chunks, a lane addresses so that
/// ldmatrix.x4 returns whole fragments.
struct LanePosition {
  Value row;
  Value chunkLowBit;
};
/// One A fragment of 16 rows by 16 columns, rows in shared-memory rows.
LanePosition getLanePositionA(KernelBuilder &b, Value lane);
/// Two B fragments from 16 rows that run along n (n, k in rows): n 0-7 and
/// 8-15, k 16.
LanePosition getLanePositionB(KernelBuilder &b, Value lane);
/// Two B fragments from 16 rows that run along k (k, n in rows; needs .trans):
/// n 0-7 and 8-15.
LanePosition getLanePositionBTransposed(KernelBuilder &b, Value lane);

/// ldmatrix.x4: 4 i32.
Values loadMatrix(KernelBuilder &b, Value ptr, bool transposed);

/// accumulator += a b; `type` is f16 or bf16.
void multiplyAccumulate(KernelBuilder &b, Type type, ValueRange a,
                        ValueRange bFragment,
                        MutableArrayRef<Value> accumulator);

/// Copies 16 bytes from global to shared memory; where `valid` is false, writes
/// zeros and reads nothing.
void copyAsync(KernelBuilder &b, Value shared, Value global, Value valid);
/// Closes the group of the copies issued so far.
void commitCopies(KernelBuilder &b);
/// Waits until at most `pending` groups of this thread are in flight.
void waitCopies(KernelBuilder &b, int64_t pending);

} // namespace mlir::attnfuse::kernelgen::sm80

#endif // ATTNFUSE_KERNELGEN_SM80_ATOMS_H
