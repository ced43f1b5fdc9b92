//===- HostTypes.h - Element types in host memory ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_EXECUTION_HOSTTYPES_H
#define ATTNFUSE_EXECUTION_HOSTTYPES_H

#include "attnfuse/Support/HostTensor.h"
#include "mlir/IR/Types.h"

namespace mlir::attnfuse {

/// The element type of a ranked tensor or scalar in host memory; none if there
/// is no such type.
std::optional<::attnfuse::ElementType> getHostElementType(Type type);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_EXECUTION_HOSTTYPES_H
