//===- Schedule.h - Schedules of attention ops ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SCHEDULE_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SCHEDULE_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/ScheduleChoice.h"

namespace mlir::attnfuse {

/// What the choice of a tile for `op` depends on. Emits an error if the GPU
/// kernels do not serve the op's types or sizes.
FailureOr<ScheduleProblem> getScheduleProblem(AttentionOp op);

KernelTile getKernelTile(ScheduleAttr schedule);
/// What decides the resources of the op's kernels.
KernelTraits getKernelTraits(AttentionOp op);
ScheduleAttr getScheduleAttr(MLIRContext *context, const KernelTile &tile);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_SCHEDULE_H
