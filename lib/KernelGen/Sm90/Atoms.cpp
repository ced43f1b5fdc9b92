//===- Atoms.cpp - Instructions of sm_90a ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/Atoms.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

/// Text without results that orders memory.
static void emitText(KernelBuilder &b, const Twine &text,
                     const Twine &constraints, ValueRange operands) {
  b.inlineAsm({}, text,
              constraints + (operands.empty() ? "~{memory}" : ",~{memory}"),
              operands);
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void sm90::initBarrier(KernelBuilder &b, Value barrier, int64_t count) {
  emitText(b, "mbarrier.init.shared::cta.b64 [$0], " + Twine(count) + ";", "r",
           barrier);
}
void sm90::fenceBarrierInit(KernelBuilder &b) {
  emitText(b, "fence.mbarrier_init.release.cluster;", "", {});
}
void sm90::waitBarrier(KernelBuilder &b, Value barrier, Value parity) {
  emitText(b,
           "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, "
           "[$0], $1; @p bra X; bra W; X: }",
           "r,r", {barrier, parity});
}
void sm90::waitBarrierIf(KernelBuilder &b, Value condition, Value barrier,
                         Value parity) {
  emitText(b,
           "{ .reg .pred p; setp.eq.b32 p, $0, 0; @p bra X; "
           "W: mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; @p bra X; "
           "bra W; X: }",
           "r,r,r", {condition, barrier, parity});
}
void sm90::waitBarrierAfter(KernelBuilder &b, Value barrier, Value parity,
                            Value value) {
  emitText(b,
           "{ .reg .pred p; .reg .b32 t; setp.lt.f32 p, $2, 0f00000000; "
           "selp.b32 t, 1, 0, p; xor.b32 t, t, $1; "
           "W: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], t; @p bra X; "
           "bra W; X: }",
           "r,r,f", {barrier, parity, value});
}
void sm90::arrive(KernelBuilder &b, Value barrier) {
  emitText(b, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", barrier);
}
void sm90::arriveIf(KernelBuilder &b, Value condition, Value barrier) {
  emitText(b,
           "{ .reg .pred p; setp.ne.b32 p, $0, 0; "
           "@p mbarrier.arrive.shared::cta.b64 _, [$1]; }",
           "r,r", {condition, barrier});
}
void sm90::arriveExpecting(KernelBuilder &b, Value barrier, int64_t bytes) {
  emitText(b,
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], " +
               Twine(bytes) + ";",
           "r", barrier);
}

void sm90::syncNamed(KernelBuilder &b, Value id, int64_t threads) {
  emitText(b, "bar.sync $0, " + Twine(threads) + ";", "r", id);
}
void sm90::arriveNamed(KernelBuilder &b, Value id, int64_t threads) {
  emitText(b, "bar.arrive $0, " + Twine(threads) + ";", "r", id);
}
void sm90::syncWarp(KernelBuilder &b) {
  emitText(b, "bar.warp.sync 0xffffffff;", "", {});
}

//===----------------------------------------------------------------------===//
// Tensor memory accelerator, registers, matrices
//===----------------------------------------------------------------------===//

void sm90::loadBox(KernelBuilder &b, Value shared, Value map, ValueRange at,
                   Value barrier) {
  emitText(b,
           "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::"
           "complete_tx::bytes [$0], [$1, {$2, $3, $4, $5}], [$6];",
           "r,l,r,r,r,r,r", {shared, map, at[0], at[1], at[2], at[3], barrier});
}
void sm90::copyAsync(KernelBuilder &b, Value shared, Value global,
                     int64_t bytes) {
  // What is read once by a block need not pass the L1 cache, but smaller copies
  // have to.
  b.create<NVVM::CpAsyncOp>(shared, global, bytes,
                            bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                        : NVVM::LoadCacheModifierKind::CA,
                            Value());
}
void sm90::arriveAfterCopies(KernelBuilder &b, Value barrier) {
  emitText(b, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r",
           barrier);
}
void sm90::prefetchToCache(KernelBuilder &b, Value address, Value bytes) {
  emitText(b, "cp.async.bulk.prefetch.L2.global [$0], $1;", "l,r",
           {address, bytes});
}
void sm90::storeBox(KernelBuilder &b, Value map, ValueRange at, Value shared) {
  emitText(b,
           "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group "
           "[$0, {$1, $2, $3, $4}], [$5];",
           "l,r,r,r,r,r", {map, at[0], at[1], at[2], at[3], shared});
}
void sm90::commitStores(KernelBuilder &b) {
  emitText(b, "cp.async.bulk.commit_group;", "", {});
}
void sm90::waitStoresRead(KernelBuilder &b) {
  emitText(b, "cp.async.bulk.wait_group.read 0;", "", {});
}
void sm90::waitStoresReadIf(KernelBuilder &b, Value condition) {
  emitText(b,
           "{ .reg .pred p; setp.ne.b32 p, $0, 0; "
           "@p cp.async.bulk.wait_group.read 0; }",
           "r", condition);
}
void sm90::fenceAsyncProxy(KernelBuilder &b) {
  emitText(b, "fence.proxy.async.shared::cta;", "", {});
}

void sm90::decreaseRegisters(KernelBuilder &b, int64_t count) {
  b.create<NVVM::SetMaxRegisterOp>(count, NVVM::SetMaxRegisterAction::decrease);
}
void sm90::increaseRegisters(KernelBuilder &b, int64_t count) {
  b.create<NVVM::SetMaxRegisterOp>(count, NVVM::SetMaxRegisterAction::increase);
}

Values sm90::loadMatrix(KernelBuilder &b, Value shared) {
  SmallVector<Type> types(4, b.getI32Type());
  return b.inlineAsm(types,
                     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                     "{$0, $1, $2, $3}, [$4];",
                     "=r,=r,=r,=r,r,~{memory}", shared);
}
Value sm90::loadWord(KernelBuilder &b, Value shared) {
  return b.inlineAsm(b.getI32Type(), "ld.shared.b32 $0, [$1];",
                     "=r,r,~{memory}", shared)[0];
}
void sm90::storeMatrix(KernelBuilder &b, Value shared, ValueRange registers) {
  Values operands{shared};
  llvm::append_range(operands, registers);
  emitText(b,
           "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
           "r,r,r,r,r", operands);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Values sm90::waitProducts(KernelBuilder &b, int64_t pending,
                          ValueRange accumulators) {
  return b.inlineAsmInPlace("wgmma.wait_group.sync.aligned " + Twine(pending) +
                                ";",
                            "~{memory}", accumulators);
}

// A descriptor in units of 16 bytes (PTX ISA, matrix descriptor format): start
// in bits 0-13, leading distance in 16-29, distance of 8 rows in 32-45, and in
// 62-63 the swizzle, 1 for 128 bytes.
Value sm90::getDescriptor(KernelBuilder &b, Value address,
                          int64_t leadingBytes) {
  return b.orI(b.divU(address, kDescriptorUnit),
               b.i32(leadingBytes / kDescriptorUnit << 16));
}
static constexpr int64_t kDescriptorHigh =
    (int64_t(1) << 30) | kSwizzleBytes / sm90::kDescriptorUnit;

Values sm90::WarpgroupProduct::emitSteps(KernelBuilder &b,
                                         ValueRange accumulators, ValueRange a,
                                         Value bDescriptor, int64_t begin,
                                         int64_t end) const {
  // One text for the whole product: what stands between two instructions would
  // let the assembler serialise them.
  int64_t size = n / 2;
  bool startsFromZero = accumulators.empty();
  bool aInRegisters = aOffsets.empty();
  if (aInRegisters)
    a = a.slice(4 * begin, 4 * (end - begin));
  int64_t firstA = startsFromZero ? size : 2 * size;
  int64_t descriptorB = firstA + a.size();

  auto list = [](int64_t first, int64_t count) {
    std::string text;
    for (int64_t index = first; index < first + count; ++index)
      text += (index == first ? "$" : ", $") + std::to_string(index);
    return "{" + text + "}";
  };
  StringRef type = elementType.isBF16() ? "bf16" : "f16";
  std::string text = "{ .reg .pred zero, one; .reg .b32 low; "
                     ".reg .b64 da, db; setp.ne.b32 one, 1, 0; "
                     "setp.ne.b32 zero, 0, 0; ";
  if (fences)
    text += "wgmma.fence.sync.aligned; ";
  for (int64_t step = begin; step < end; ++step) {
    text += llvm::formatv("add.u32 low, ${0}, {1}; mov.b64 db, {{low, {2}}; ",
                          descriptorB, bOffsets[step], kDescriptorHigh);
    std::string operandA = list(firstA + 4 * (step - begin), 4);
    if (!aInRegisters) {
      text += llvm::formatv("add.u32 low, ${0}, {1}; mov.b64 da, {{low, {2}}; ",
                            firstA, aOffsets[step], kDescriptorHigh);
      operandA = "da";
    }
    text += llvm::formatv("wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} "
                          "{2}, {3}, db, {4}, 1, 1{5}, {6}; ",
                          n, type, list(0, size), operandA,
                          startsFromZero && step == begin ? "zero" : "one",
                          aInRegisters ? "" : ", 0", int(transposedB));
  }
  text += "wgmma.commit_group.sync.aligned; }";

  std::string constraints;
  for (int64_t index = 0; index < size; ++index)
    constraints += "=f,";
  if (!startsFromZero)
    for (int64_t index = 0; index < size; ++index)
      constraints += std::to_string(index) + ",";
  for (size_t index = 0; index < a.size() + 1; ++index)
    constraints += "r,";
  constraints += "~{memory}";

  Values operands(accumulators);
  llvm::append_range(operands, a);
  operands.push_back(bDescriptor);
  return b.inlineAsm(SmallVector<Type>(size, b.getF32Type()), text, constraints,
                     operands);
}
