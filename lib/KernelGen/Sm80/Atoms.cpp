//===- Atoms.cpp - Instructions and fragments of sm_80
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

// Lanes 8 i .. 8 i + 7 give the row addresses of matrix i of the four.

sm80::LanePosition sm80::getLanePositionA(KernelBuilder &b, Value lane) {
  return {b.andI(lane, 15), b.shrU(lane, 4)};
}
sm80::LanePosition sm80::getLanePositionB(KernelBuilder &b, Value lane) {
  return {b.add(b.andI(lane, 7), b.shl(b.shrU(lane, 4), 3)),
          b.andI(b.shrU(lane, 3), 1)};
}
sm80::LanePosition sm80::getLanePositionBTransposed(KernelBuilder &b,
                                                    Value lane) {
  return {b.andI(lane, 15), b.shrU(lane, 4)};
}

Values sm80::loadMatrix(KernelBuilder &b, Value ptr, bool transposed) {
  MLIRContext *context = b.getContext();
  Type i32 = b.getI32Type();
  Value loaded = b.create<NVVM::LdMatrixOp>(
      LLVM::LLVMStructType::getLiteral(context, {i32, i32, i32, i32}), ptr, 4,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Values registers;
  for (int64_t index = 0; index < 4; ++index)
    registers.push_back(b.create<LLVM::ExtractValueOp>(loaded, index));
  return registers;
}

void sm80::multiplyAccumulate(KernelBuilder &b, Type type, ValueRange a,
                              ValueRange bFragment,
                              MutableArrayRef<Value> accumulator) {
  bool isBF16 = type.isBF16();
  // The intrinsics take bf16 pairs as i32 and f16 pairs as vectors.
  auto asOperands = [&](ValueRange registers) {
    Values operands(registers);
    if (!isBF16)
      for (Value &operand : operands)
        operand = b.bitcast(operand, VectorType::get({2}, type));
    return operands;
  };
  Type f32 = b.getF32Type();
  NVVM::MMATypes ptxType = isBF16 ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Value result = b.create<NVVM::MmaOp>(
      LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32}),
      asOperands(a), asOperands(bFragment), ValueRange(accumulator),
      ArrayRef<int64_t>{kMmaM, kMmaN, kMmaK}, std::nullopt, std::nullopt,
      std::array{ptxType, ptxType},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [index, element] : llvm::enumerate(accumulator))
    element = b.create<LLVM::ExtractValueOp>(result, index);
}

void sm80::copyAsync(KernelBuilder &b, Value shared, Value global,
                     Value valid) {
  b.create<NVVM::CpAsyncOp>(shared, global, 16, NVVM::LoadCacheModifierKind::CG,
                            b.select(valid, b.i32(16), b.i32(0)));
}
void sm80::commitCopies(KernelBuilder &b) {
  b.create<NVVM::CpAsyncCommitGroupOp>();
}
void sm80::waitCopies(KernelBuilder &b, int64_t pending) {
  b.create<NVVM::CpAsyncWaitGroupOp>(pending);
}
