//===- BufferArena.cpp - Buffers of one call of compiled code -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferArena.h"

#include <algorithm>
#include <cstdlib>

namespace mlir::attnfuse {

static thread_local BufferArena *currentArena = nullptr;

BufferArena::~BufferArena() {
  for (void *buffer : buffers)
    std::free(buffer);
}

bool BufferArena::call(llvm::function_ref<void()> code) {
  // No local changes between setjmp and longjmp: nothing here may live in a
  // register that the jump restores.
  currentArena = this;
  bool finished = setjmp(outOfMemory) == 0;
  if (finished)
    code();
  currentArena = nullptr;
  return finished;
}

void *BufferArena::allocate(size_t size) {
  void *buffer = std::malloc(std::max<size_t>(size, 1));
  if (!buffer) {
    currentArena->failedSize = size;
    std::longjmp(currentArena->outOfMemory, 1);
  }
  currentArena->buffers.insert(buffer);
  return buffer;
}

void BufferArena::release(void *buffer) {
  currentArena->buffers.erase(buffer);
  std::free(buffer);
}

} // namespace mlir::attnfuse
