//===- Interpreter.h - The fp64 reference -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A slow, obvious interpreter of functions of attnfuse building blocks, in
// fp64 and straight from docs/spec.md. It shares no code with the lowerings
// that it judges.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_REFERENCE_INTERPRETER_H
#define ATTNFUSE_REFERENCE_INTERPRETER_H

#include "attnfuse/Support/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir::attnfuse {

/// Interprets `function` on `arguments` (a scalar is a rank-0 tensor).
/// Everything is fp64, intermediate tensors too; nothing is rounded to the
/// types in the IR. The results are F64. Fails on an op that it does not know
/// and on arguments whose shapes or types the function does not take.
llvm::Expected<std::vector<::attnfuse::HostTensor>>
interpret(func::FuncOp function,
          llvm::ArrayRef<::attnfuse::HostTensor> arguments);

/// Results, and for each of their elements the error that an implementation
/// in the types of the IR is expected to stay around (docs/numerics.md): one
/// unit of what its roundings add up to, not yet a bound. Infinity where the
/// result cannot be compared.
struct Interpretation {
  std::vector<::attnfuse::HostTensor> results;
  std::vector<::attnfuse::HostTensor> errors;
};

/// As interpret(), with the expected errors.
llvm::Expected<Interpretation>
interpretWithErrors(func::FuncOp function,
                    llvm::ArrayRef<::attnfuse::HostTensor> arguments);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_REFERENCE_INTERPRETER_H
