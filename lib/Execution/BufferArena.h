//===- BufferArena.h - Buffers of one call of compiled code -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_EXECUTION_BUFFERARENA_H
#define ATTNFUSE_LIB_EXECUTION_BUFFERARENA_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <csetjmp>
#include <cstddef>

namespace mlir::attnfuse {

/// Owns every buffer that compiled code allocates while it runs in `call`, so
/// that nothing outlives the arena, and turns an allocation that fails into an
/// early return.
class BufferArena {
public:
  BufferArena() = default;
  BufferArena(const BufferArena &) = delete;
  BufferArena &operator=(const BufferArena &) = delete;
  ~BufferArena();

  /// Runs compiled code. Returns false if it stopped because memory ran out;
  /// see getFailedSize. The code's frames are left without unwinding, so it
  /// must hold nothing but buffers of this arena.
  bool call(llvm::function_ref<void()> code);

  /// Bytes asked for by the allocation that failed.
  size_t getFailedSize() const { return failedSize; }

  /// What compiled code calls: buffers of the arena whose `call` runs on this
  /// thread.
  static void *allocate(size_t size);
  static void release(void *buffer);

private:
  llvm::DenseSet<void *> buffers;
  std::jmp_buf outOfMemory;
  size_t failedSize = 0;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_EXECUTION_BUFFERARENA_H
