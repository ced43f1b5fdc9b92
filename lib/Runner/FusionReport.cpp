//===- FusionReport.cpp - What goes into the kernel, in words -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionReport.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

/// The ops of the dialect outside of regions, in order, without its name.
static SmallVector<std::string> getOpNames(ModuleOp module) {
  SmallVector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.getOps())
      if (isa<AttnFuseDialect>(op.getDialect()))
        names.push_back(op.getName().stripDialect().str());
  return names;
}

static std::string join(ArrayRef<std::string> parts) {
  return llvm::join(parts, ", ");
}

/// What a fused op is made of.
static std::string describe(AttentionOp op) {
  SmallVector<std::string> parts;
  if (op.getQRotation())
    parts.push_back("rotation of q");
  if (op.getKRotation())
    parts.push_back("rotation of k");
  if (op.hasScoreChain())
    parts.push_back("score chain");
  if (size_t numBands = op.getBands().size())
    parts.push_back(std::to_string(numBands) +
                    (numBands == 1 ? " band" : " bands"));
  if (op.getBlocks())
    parts.push_back("block lists");
  parts.push_back(stringifyNormalizer(op.getNormalizer()).str());
  if (op.getLse())
    parts.push_back("log-sum-exp");
  return join(parts);
}

std::string mlir::attnfuse::describeFusion(ModuleOp module) {
  SmallVector<std::string> before = getOpNames(module);
  OwningOpRef<ModuleOp> fused = module.clone();
  std::string reasons;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        reasons += (reasons.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  PassManager pm(module.getContext());
  buildFusePipeline(pm);
  if (failed(pm.run(*fused)))
    return "not fused: " + reasons;

  SmallVector<std::string> kernels, left;
  fused->walk([&](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      kernels.push_back("(" + describe(attention) + ")");
    else if (isa<AttnFuseDialect>(op->getDialect()) &&
             !op->getParentOfType<AttentionOp>())
      left.push_back(op->getName().stripDialect().str());
  });
  if (kernels.empty())
    return reasons.empty() ? "nothing to fuse" : reasons;
  std::string text = "fused ";
  if (before.size() > 1 && left.empty())
    text += join(before) + " into ";
  text += kernels.size() == 1 ? "one attention "
                              : std::to_string(kernels.size()) + " attentions ";
  text += join(kernels);
  if (!left.empty())
    text += "; left over: " + join(left);
  if (!reasons.empty())
    text += "; " + reasons;
  return text;
}
