//===- AttributeNames.h - Attributes on other dialects' ops -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTRIBUTENAMES_H
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTRIBUTENAMES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

// The dialect verifies that there are no others, and their types.
namespace mlir::attnfuse {

/// On an argument or result of a function, a string: overrides its name.
inline constexpr StringLiteral kNameAttr = "attnfuse.name";

/// On an i64 argument of a function: the CUDA stream for the launches in it.
inline constexpr StringLiteral kStreamAttr = "attnfuse.stream";

/// On a module, a TargetAttr: the machine that code is generated for.
inline constexpr StringLiteral kTargetAttrName = "attnfuse.target";

/// On a gpu.module, a string, or an array of them: the manifest's entry of each
/// function whose kernels it holds. On a gpu.binary, the manifest. No other
/// gpu.module is the project's business.
inline constexpr StringLiteral kManifestAttrName = "attnfuse.manifest";

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTRIBUTENAMES_H
