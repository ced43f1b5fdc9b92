//===- Compiler.h - From a module of building blocks to PTX -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attnfuse-compile does, for embedders. A context that is to be compiled
// with has the dialects of registerCompilerDialects.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_COMPILER_COMPILER_H
#define ATTNFUSE_COMPILER_COMPILER_H

#include "attnfuse/Dialect/AttnFuse/Transforms/RotationChoice.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>

namespace mlir {
class Diagnostic;
class DialectRegistry;
} // namespace mlir

namespace mlir::attnfuse {

/// How far to compile. All but PTX and Cubin stop for inspection.
enum class EmitLevel {
  /// Fused: MLIR. Needs no target.
  Fused,
  /// Fused, with schedules: MLIR.
  Schedule,
  /// Kernels in the llvm and nvvm dialects: MLIR.
  NVVM,
  /// Optimized LLVM IR.
  LLVM,
  PTX,
  /// PTX assembled by ptxas.
  Cubin,
  /// What the CPU path executes, as linalg on tensors: MLIR. Needs no target.
  Linalg,
};

struct CompileOptions {
  /// A machine or chip of the table (attnfuse/Target/TargetInfo.h). Empty: the
  /// module's own `attnfuse.target`.
  std::string target;
  EmitLevel emit = EmitLevel::PTX;
  /// Where q and k are rotated.
  RotationChoice rotation = RotationChoice::Auto;
  /// Blocks that share the keys of a query tile: 1 never splits them, more do
  /// so at every launch; 0 leaves it to the sizes.
  int64_t keySplits = 0;
  /// Gets every diagnostic of the passes as it comes, if it is set.
  std::function<void(const Diagnostic &)> listener;
};

struct CompiledModule {
  /// What `CompileOptions::emit` asks for: text, or for Cubin bytes.
  std::string code;
  /// The kernels' ABI (docs/manifest.md), for PTX and Cubin.
  std::string manifest;
  /// For readers: per function what was fused, the schedule and what it takes
  /// from the machine, and why a chain was not fused.
  std::string explanation;
};

/// Compiles every function of `module`, which is left as it is. Diagnostics of
/// the passes become the text of the error.
llvm::Expected<CompiledModule> compileModule(ModuleOp module,
                                             const CompileOptions &options);

/// Assembles PTX by the ptxas of $CUDA_HOME/bin or $PATH.
llvm::Expected<std::string> assemblePTX(StringRef ptx, StringRef chip);

/// The newest chip of the table whose code runs on a device of this compute
/// capability (ten times the major plus the minor number); empty if none does.
std::string findChip(int capability);

/// The dialects, interfaces and translations of compileModule.
void registerCompilerDialects(DialectRegistry &registry);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_COMPILER_COMPILER_H
