//===- Work.h - What a call has to do at least ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_WORK_H
#define ATTNFUSE_LIB_RUNNER_WORK_H

#include "attnfuse/Runner/Inputs.h"

namespace mlir::attnfuse {

struct Work {
  /// 2 (D + Dv) for every pair of a query and a key that bands and block
  /// lists leave visible.
  double flops = 0;
  /// Every argument read once, every result written once.
  double bytes = 0;
};

Work countWork(const DimensionClasses &classes, const Call &call);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_WORK_H
