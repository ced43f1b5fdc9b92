//===- Explain.cpp - What the compiler decided, in words ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "attnfuse/Analysis/KeySplits.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::attnfuse;
namespace json = llvm::json;

namespace {
/// Whether `op` is one of the blocks that a user composes.
bool isBuildingBlock(Operation *op) {
  return isa_and_nonnull<AttnFuseDialect>(op->getDialect()) &&
         !op->getParentOfType<AttentionOp>() && !isa<AttentionOp>(op);
}

void printRotation(raw_ostream &os, StringRef what, RotationAttr rotation,
                   std::optional<RotationWay> way) {
  if (!way)
    return;
  os << "  rotates " << what;
  switch (*way) {
  case RotationWay::Fused:
    os << " in the kernel";
    break;
  case RotationWay::Split:
    os << " before it, by a kernel of its own";
    break;
  case RotationWay::BySize:
    os << " in the kernel or before it, by the sizes of a launch";
    break;
  }
  os << ": " << stringifyPairing(rotation.getPairing()) << "\n";
}

/// What the calculus expects of both ways, where it could compute it.
void printRotationCosts(raw_ostream &os, RotationPlanAttr plan) {
  if (plan && plan.getKFusedPs() && plan.getKSplitPs())
    os << llvm::format("  expected of k: %.2f us in the kernel, %.2f us before "
                       "it\n",
                       double(*plan.getKFusedPs()) * 1e-6,
                       double(*plan.getKSplitPs()) * 1e-6);
}

void printBand(raw_ostream &os, BandAttr band) {
  os << "  keys visible to query i: ";
  if (band.getLeft())
    os << "i + off - " << *band.getLeft();
  else
    os << "0";
  os << " to ";
  if (band.getRight())
    os << "i + off + " << *band.getRight();
  else
    os << "Nkv - 1";
  os << ", off = "
     << (band.getAlign() == Alignment::BottomRight ? "Nkv - Nq" : "0") << "\n";
}

/// What is known of the blocks per SM before the assembler hands out registers:
/// kernels ask it for no more than one (.minnctapersm).
int64_t getMostBlocksPerSm(const KernelResources &resources,
                           const TargetInfo &target) {
  return std::min({target.maxSharedPerSm /
                       (resources.sharedMemory + target.sharedReservedPerBlock),
                   target.maxThreadsPerSm / resources.threads,
                   target.maxBlocksPerSm});
}

/// Over how many blocks the keys of a query tile are spread.
void printKeySplits(raw_ostream &os, AttentionOp op, const KernelTile &tile,
                    const TargetInfo &target) {
  os << "  keys: ";
  if (tile.keySplits > 1) {
    os << "of a query tile in " << tile.keySplits
       << " parts, which a second kernel combines\n";
    return;
  }
  KernelTile smaller = tile;
  FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
  if (succeeded(problem))
    smaller = getTileForSplitKeys(op, *problem, target);
  BlockTile split = getBlockTile(getKernelTraits(op), smaller, target);
  AttentionSizes sizes = AttentionSizes::get(op);
  KeySplits splits(op, sizes, split, target, target.smCount);
  std::optional<int64_t> pays = splits.pays().getInteger();
  if (tile.keySplits == 1 || !KeySplits(op, sizes, split, target).mayPay)
    os << "never split\n";
  else if (pays == 0)
    os << "not split with " << target.smCount << " SMs\n";
  else if (!pays)
    os << "split where a launch has too few query tiles of " << smaller.tileM
       << " to fill the machine, by its sizes\n";
  else
    os << llvm::format("split in %lld parts with %lld SMs, expected to save "
                       "%.2f us and to cost %.2f us\n",
                       (long long)*splits.count.getInteger(),
                       (long long)target.smCount,
                       double(*splits.gain.getInteger()) * 1e-6,
                       double(*splits.cost.getInteger()) * 1e-6);
}

void printAttention(raw_ostream &os, AttentionOp op, const TargetInfo &target) {
  printRotation(os, "q", op.getQRotationAttr(), op.getQueryRotationWay());
  printRotation(os, "k", op.getKRotationAttr(), op.getKeyRotationWay());
  printRotationCosts(os, op.getRotationPlanAttr());
  for (BandAttr band : op.getBands().getAsRange<BandAttr>())
    printBand(os, band);
  if (BlocksAttr blocks = op.getBlocksAttr())
    os << "  visits only listed blocks of " << blocks.getQueryBlock()
       << " queries and " << blocks.getKeyBlock() << " keys\n";
  if (op.hasScoreChain()) {
    Block &chain = op.getScore().front();
    os << "  score chain: " << std::distance(chain.begin(), chain.end()) - 1
       << " ops, " << op.getScoreOperands().size() << " operands\n";
  }
  os << "  normalizer: " << stringifyNormalizer(op.getNormalizer())
     << (op.getLse() ? ", with log-sum-exp" : "") << "\n";

  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    return;
  KernelTile tile = getKernelTile(schedule);
  KernelResources resources =
      getKernelResources(getKernelTraits(op), tile, target);
  os << "  tile: " << tile.getRowsPerHead() << " queries ";
  if (tile.packedHeads != 1)
    os << "of each of " << tile.packedHeads << " heads ";
  os << "x " << tile.tileN << " keys, " << tile.warps << " warps, q in "
     << (tile.qInRegisters ? "registers" : "shared memory");
  if (tile.stages != 1)
    os << ", " << tile.stages << " stages of k and v";
  os << "\n";
  if (tile.pipeline)
    os << "  pipeline: " << kWarpgroupWarps << " more warps load, "
       << tile.pipeline->stages << " stages of k and v; persistent blocks\n";
  os << "  takes: " << resources.sharedMemory << " bytes of shared memory of "
     << target.maxSharedPerBlock << ", about " << resources.registersPerThread
     << " registers per thread (an estimate; the assembler may take up to "
     << resources.registerLimit.value_or(target.maxRegistersPerThread) << ")\n";
  if (tile.pipeline)
    os << "  blocks per SM: " << resources.pipelinedBlocks << "\n";
  else
    os << "  blocks per SM: at most " << getMostBlocksPerSm(resources, target)
       << " by shared memory and threads, " << getBlocksPerSm(resources, target)
       << " if the estimate of registers holds\n";
  printKeySplits(os, op, tile, target);
}

/// The names in `expression`, as what decides: sizes, and layouts of tensors.
void collectNames(const json::Value &expression,
                  SmallVectorImpl<std::string> &names) {
  if (const json::Array *list = expression.getAsArray(); list && !list->empty())
    for (const json::Value &operand : llvm::drop_begin(*list))
      collectNames(operand, names);
  std::optional<StringRef> name = expression.getAsString();
  if (!name || name == "$sm_count")
    return;
  StringRef tensor = *name;
  if (tensor.consume_front("$stride."))
    tensor = tensor.rsplit('.').first;
  else
    tensor.consume_front("$address.");
  std::string what = ((tensor == *name ? "" : "the layout of ") + tensor).str();
  if (!llvm::is_contained(names, what))
    names.push_back(std::move(what));
}

// Kernels that the module came with may have any manifest.

void printKernels(raw_ostream &os, const json::Object &version) {
  SmallVector<StringRef> names;
  if (const json::Array *kernels = version.getArray("kernels"))
    for (const json::Value &kernel : *kernels)
      if (const json::Object *object = kernel.getAsObject())
        names.push_back(object->getString("name").value_or(""));
  llvm::interleave(names, os, ", then ");
}

/// What a launch of the function launches, by its entry in the manifest.
void printLaunches(raw_ostream &os, const json::Object &function) {
  const json::Array *versions = function.getArray("versions");
  os << "  launches";
  if (!versions) {
    os << ": ";
    printKernels(os, function);
    os << "\n";
    return;
  }
  os << " the first that applies:\n";
  for (const json::Value &entry : *versions) {
    const json::Object *version = entry.getAsObject();
    if (!version)
      continue;
    os << "    ";
    printKernels(os, *version);
    if (const json::Value *when = version->get("when")) {
      SmallVector<std::string> names;
      collectNames(*when, names);
      if (names.empty())
        names.push_back("the number of SMs");
      os << ", by ";
      llvm::interleaveComma(names, os);
    }
    os << "\n";
  }
}

/// The manifest's entry of `function`, if it has kernels.
std::optional<json::Object> getManifest(ModuleOp kernels, StringRef function) {
  for (auto module : kernels.getOps<gpu::GPUModuleOp>()) {
    auto text = module->getAttrOfType<StringAttr>(kManifestAttrName);
    if (!text || !module.lookupSymbol(function))
      continue;
    llvm::Expected<json::Value> manifest = json::parse(text.getValue());
    if (!manifest) {
      llvm::consumeError(manifest.takeError());
      continue;
    }
    json::Object *object = manifest->getAsObject();
    if (object && object->getString("name") == function)
      return std::move(*object);
  }
  return std::nullopt;
}
} // namespace

BlocksByFunction mlir::attnfuse::collectBlocks(ModuleOp module) {
  BlocksByFunction blocks;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (isBuildingBlock(op))
        blocks[function.getName()].push_back(op->getName().stripDialect());
    });
  return blocks;
}

std::string mlir::attnfuse::explain(ModuleOp module,
                                    const BlocksByFunction &written,
                                    const TargetInfo &target,
                                    ModuleOp kernels) {
  std::string text;
  llvm::raw_string_ostream os(text);
  BlocksByFunction left = collectBlocks(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    os << function.getName() << " for " << target.name << " (" << target.chip
       << "):\n";
    if (auto found = written.find(function.getName()); found != written.end()) {
      os << "  written: ";
      llvm::interleaveComma(found->second, os);
      os << "\n";
    }
    if (auto found = left.find(function.getName()); found != left.end()) {
      os << "  not fused: ";
      llvm::interleaveComma(found->second, os);
      os << "\n";
    } else if (!function.getOps<AttentionOp>().empty()) {
      os << "  fused: all of it, into one attention\n";
    }
    if (std::optional<json::Object> manifest =
            getManifest(kernels, function.getName()))
      printLaunches(os, *manifest);
    function.walk([&](AttentionOp op) { printAttention(os, op, target); });
  }
  return text;
}
