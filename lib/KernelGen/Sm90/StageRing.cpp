//===- StageRing.cpp - Tiles between producer and consumers ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/StageRing.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

void StageRing::initFull(KernelBuilder &b, int64_t producers) const {
  for (int64_t slot = 0; slot < stages; ++slot)
    initBarrier(b, b.add(full, 8 * slot), producers);
}
void StageRing::initEmpty(KernelBuilder &b, int64_t consumers) const {
  for (int64_t slot = 0; slot < stages; ++slot)
    initBarrier(b, b.add(empty, 8 * slot), consumers);
}

Value StageRing::getSlot(KernelBuilder &b, Value number) const {
  return stages == 1 ? b.i32(0) : b.andI(number, stages - 1);
}
Value StageRing::getBarrier(KernelBuilder &b, Value barriers,
                            Value number) const {
  return b.add(barriers, b.shl(getSlot(b, number), 3));
}
Value StageRing::getTile(KernelBuilder &b, Value number) const {
  return b.add(tiles, b.mul(getSlot(b, number), tileBytes));
}
Value StageRing::getFull(KernelBuilder &b, Value number) const {
  return getBarrier(b, full, number);
}
Value StageRing::getParity(KernelBuilder &b, Value number) const {
  return b.andI(b.shrU(number, llvm::Log2_64(stages)), 1);
}

void StageRing::waitEmpty(KernelBuilder &b, Value number) const {
  // A barrier counts as being past the odd phase before its first.
  waitBarrier(b, getBarrier(b, empty, number), b.xorI(getParity(b, number), 1));
}
void StageRing::waitFull(KernelBuilder &b, Value number) const {
  waitBarrier(b, getFull(b, number), getParity(b, number));
}
void StageRing::waitFullIf(KernelBuilder &b, Value condition,
                           Value number) const {
  waitBarrierIf(b, condition, getFull(b, number), getParity(b, number));
}
void StageRing::releaseIf(KernelBuilder &b, Value condition,
                          Value number) const {
  arriveIf(b, condition, getBarrier(b, empty, number));
}
void StageRing::releaseLoadedIf(KernelBuilder &b, Value condition,
                                Value number) const {
  fenceAsyncProxy(b);
  syncWarp(b);
  releaseIf(b, condition, number);
}
