//===- ScoreRegion.h - The region of attnfuse.attention ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_REFERENCE_SCOREREGION_H
#define ATTNFUSE_LIB_REFERENCE_SCOREREGION_H

#include "Scores.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"
#include <mutex>

namespace mlir::attnfuse::reference {

/// What a score region has done that spec S14 forbids: the first op of the
/// region that did. Rows are evaluated in parallel.
class RegionFaults {
public:
  void add(Operation *op);
  llvm::Error takeError();

private:
  std::mutex mutex;
  Operation *first = nullptr;
};

/// The score region of `op` as a node; a yielded -inf masks its key. `tensors`
/// has the op's score operands. Fails on an op in the region that it does not
/// know; evaluation adds to `faults`, which must outlive the node.
llvm::Expected<ScoreNodePtr>
makeScoreRegion(ScoreNodePtr input, AttentionOp op,
                const llvm::DenseMap<Value, ArrayPtr> &tensors,
                RegionFaults &faults);

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCOREREGION_H
