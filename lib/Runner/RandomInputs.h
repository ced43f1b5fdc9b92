//===- RandomInputs.h - Arguments by role and seed --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_RANDOMINPUTS_H
#define ATTNFUSE_LIB_RUNNER_RANDOMINPUTS_H

#include "AttentionUses.h"
#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Support/HostTensor.h"

namespace mlir::attnfuse {

/// Random numbers that are the same on every machine: each is a function of
/// the seed and of how many were drawn before.
class RandomStream {
public:
  RandomStream(uint64_t seed, uint64_t stream);
  uint64_t next();
  /// In [0, 1).
  double uniform();
  /// In [low, high].
  int64_t between(int64_t low, int64_t high);
  /// Mean 0, variance 1, nearly normal: a sum of uniform numbers, since that
  /// needs no library function that rounds differently elsewhere.
  double normal();

private:
  uint64_t state;
};

class RandomInputs {
public:
  RandomInputs(const DimensionClasses &classes, uint64_t seed);

  /// Chooses small sizes for all classes that have none, but for `later` ones.
  llvm::Error chooseSizes(DimensionSizes &sizes, ArrayRef<unsigned> later);
  /// Sets the lengths of tables and block lists that have no size yet.
  llvm::Error completeSizes(DimensionSizes &sizes);

  /// The argument number `index`.
  llvm::Expected<::attnfuse::HostTensor> make(unsigned index,
                                              const DimensionSizes &sizes);

private:
  RandomStream getStream(Value argument) const;
  llvm::Expected<int64_t> makeOffset(Value argument,
                                     const DimensionSizes &sizes) const;
  void fillTable(::attnfuse::HostTensor &table, bool isSin) const;
  llvm::Error fillBlocks(::attnfuse::HostTensor &tensor, Value argument,
                         bool isOffsets, const DimensionSizes &sizes) const;

  const DimensionClasses &classes;
  func::FuncOp function;
  uint64_t seed;
  SmallVector<RotationUse> rotations;
  SmallVector<BlockUse> blockUses;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_RANDOMINPUTS_H
