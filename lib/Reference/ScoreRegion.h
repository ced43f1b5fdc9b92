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

namespace mlir::attnfuse::reference {

/// The score region of `op` as a node; a yielded -inf masks its key. `tensors`
/// has the op's score operands. Fails on an op in the region that it does not
/// know.
llvm::Expected<ScoreNodePtr>
makeScoreRegion(ScoreNodePtr input, AttentionOp op,
                const llvm::DenseMap<Value, ArrayPtr> &tensors);

} // namespace mlir::attnfuse::reference

#endif // ATTNFUSE_LIB_REFERENCE_SCOREREGION_H
