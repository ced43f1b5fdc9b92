//===- CpuExecutable.h - Executes a function on the host --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_EXECUTION_CPUEXECUTABLE_H
#define ATTNFUSE_EXECUTION_CPUEXECUTABLE_H

#include "attnfuse/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace mlir::attnfuse {

/// A function lowered through linalg and LLVM and compiled for this machine.
class CpuExecutable {
public:
  /// Compiles `function` of a copy of `module`; the module itself is not
  /// changed.
  static llvm::Expected<std::unique_ptr<CpuExecutable>>
  compile(ModuleOp module, StringRef function);
  virtual ~CpuExecutable() = default;

  /// Runs on `arguments`, in the function's order (a scalar is a rank-0
  /// tensor). The result tensors come shaped (by the caller, who knows the
  /// sizes) and are overwritten.
  virtual llvm::Error
  run(llvm::ArrayRef<::attnfuse::HostTensor> arguments,
      llvm::MutableArrayRef<::attnfuse::HostTensor> results) = 0;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_EXECUTION_CPUEXECUTABLE_H
