//===- AttentionForward.cpp - The forward kernel for sm_90a ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm90/AttentionForward.h"
#include "Consumer.h"
#include "Producer.h"
#include "attnfuse/KernelGen/ProgrammaticLaunch.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

void sm90::buildAttentionForward(AttentionOp op, const KernelTile &tile,
                                 LLVM::LLVMFuncOp kernel,
                                 LLVM::GlobalOp sharedMemory, KernelAbi &abi,
                                 const TargetInfo &target) {
  KernelBuilder b(op.getLoc(),
                  OpBuilder::atBlockEnd(&kernel.getBody().front()));
  BlockContext context(b, op, tile, sharedMemory, abi, target);
  if (context.problem.splitsKeys() && abi.getPartials()->combinesEarly)
    releaseDependents(b);
  context.initBarriers(b);
  // Each role is one branch of this condition, which the assembler demands to
  // move registers between them.
  b.ifElse(
      b.eq(context.warpgroup, 0), TypeRange(),
      [&]() -> Values {
        Producer(b, context).build();
        return {};
      },
      [&]() -> Values {
        Consumer(b, context).build();
        return {};
      });
  b.create<LLVM::ReturnOp>(ValueRange());
}
