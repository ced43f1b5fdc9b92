//===- HostCode.h - Machine code of one function, in memory -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_EXECUTION_HOSTCODE_H
#define ATTNFUSE_LIB_EXECUTION_HOSTCODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
}

namespace mlir::attnfuse {

/// Optimized machine code for this host, made from a module in the LLVM
/// dialect.
class HostCode {
public:
  /// `function` must have a C interface (`llvm.emit_c_interface`), and no
  /// function of the module may have the name of one of the C library or of
  /// the run-time functions. An error is what "the function" is the subject of.
  static llvm::Expected<std::unique_ptr<HostCode>> compile(ModuleOp module,
                                                           StringRef function);
  ~HostCode();

  /// Calls the C interface. Every entry points at a parameter: a memref
  /// descriptor, or the struct of descriptors for the results (first, if there
  /// are results), or a scalar. Must run inside BufferArena::call.
  void call(llvm::MutableArrayRef<void *> parameters) const {
    entry(parameters.data());
  }

private:
  HostCode();
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*entry)(void **) = nullptr;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_EXECUTION_HOSTCODE_H
