//===- Interpreter.h - The fp64 reference
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A slow, obvious interpreter of functions of attnfuse building blocks, in fp64 and straight
// from docs/spec.md. It shares no code with the lowerings that it judges.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_REFERENCE_INTERPRETER_H
#define ATTNFUSE_REFERENCE_INTERPRETER_H

#include "attnfuse/Support/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir::attnfuse {

/// Interprets `function` on `arguments` (a scalar is a rank-0 tensor). Everything is fp64,
/// intermediate tensors too; nothing is rounded to the types in the IR. The results are F64.
llvm::Expected<std::vector<::attnfuse::HostTensor>>
interpret(func::FuncOp function, llvm::ArrayRef<::attnfuse::HostTensor> arguments);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_REFERENCE_INTERPRETER_H
