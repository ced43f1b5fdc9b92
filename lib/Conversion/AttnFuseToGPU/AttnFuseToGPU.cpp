//===- AttnFuseToGPU.cpp - One kernel for every attention -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestBuilder.h"
#include "attnfuse/Analysis/ScoreLoads.h"
#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "attnfuse/KernelGen/ScoreChain.h"
#include "attnfuse/KernelGen/Sm80/AttentionForward.h"
#include "attnfuse/KernelGen/Sm90/AttentionForward.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_CONVERTATTNFUSETOGPUPASS
#include "attnfuse/Conversion/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;

/// The one attention that is the function's body, or an error at what is in the
/// way.
static FailureOr<AttentionOp> getWholeBody(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError(
        "expected a function of one block for a GPU kernel");
  AttentionOp attention;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto here = dyn_cast<AttentionOp>(op);
    if (!here && !op.hasTrait<OpTrait::ConstantLike>())
      return op.emitError("not part of one attnfuse.attention, so '")
             << function.getName() << "' has no kernel of its own";
    if (here && attention) {
      InFlightDiagnostic diagnostic = here.emitError("a second attention in '")
                                      << function.getName()
                                      << "'; a kernel computes one";
      diagnostic.attachNote(attention.getLoc()) << "the first is here";
      return diagnostic;
    }
    if (here)
      attention = here;
  }
  // Someone else's function may be launched too.
  if (!attention)
    return function.emitError("expected an attnfuse.attention in '")
           << function.getName() << "', of which kernels are asked for";

  for (Value operand : attention->getOperands()) {
    Attribute constant;
    bool known = isa<BlockArgument>(operand) ||
                 (matchPattern(operand, m_Constant(&constant)) &&
                  isa<DenseElementsAttr, IntegerAttr>(constant));
    if (!known)
      return operand.getDefiningOp()->emitError(
          "expected an operand of the attention to be an "
          "argument of the function or a dense constant");
  }
  Operation *terminator = function.getBody().front().getTerminator();
  llvm::SmallPtrSet<Value, 2> returned;
  for (Value result : terminator->getOperands())
    if (result.getDefiningOp() != attention || !returned.insert(result).second)
      return terminator->emitError(
          "expected each result of the function to be a different result "
          "of the attention");
  if (!returned.contains(attention.getOutput()))
    return terminator->emitError(
        "expected the function to return the attention's output");
  return attention;
}

/// A kernel has its function's name, which must be one in PTX.
static LogicalResult checkNames(func::FuncOp function) {
  StringRef name = function.getName();
  bool isValid =
      !name.empty() && !llvm::isDigit(name.front()) &&
      llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (isValid)
    return success();
  return function.emitError("expected a name of letters, digits and '_' for a "
                            "kernel, got '")
         << name << "'";
}

/// Other functions of the module are none of the pass's business.
static bool computesAttention(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isa<AttnFuseDialect>(op->getDialect()) && !isa<LaunchOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static LLVM::LLVMFuncOp createKernel(OpBuilder &b, Location loc,
                                     const Twine &name, const KernelTile &tile,
                                     const KernelResources &resources) {
  auto kernel = LLVM::LLVMFuncOp::create(
      b, loc, name.str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {}));
  kernel.addEntryBlock(b);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  b.getDenseI32ArrayAttr({int32_t(tile.getThreads())}));
  // Without it the assembler spills to fit more blocks on an SM than the
  // schedule asks for.
  kernel->setAttr(
      NVVM::NVVMDialect::getMinctasmAttrName(),
      b.getI32IntegerAttr(tile.pipeline ? resources.pipelinedBlocks : 1));
  return kernel;
}

/// Whether a tensor map can be made of a [B, H, Nq, Nkv] tensor of 16-bit
/// elements, as an expression of the manifest.
static llvm::json::Value getTensorMapCondition(const AbiTensor &tensor) {
  using llvm::json::Array;
  auto isMultiple = [](const std::string &name, int64_t of) {
    return Array{"eq", Array{"mod", name, of}, 0};
  };
  std::string stride = "$stride." + tensor.name + ".";
  // Strides of 16 bytes, and none that is negative.
  Array condition{"mul", isMultiple("$address." + tensor.name, 16),
                  Array{"eq", stride + "3", 1}};
  for (const char *dim : {"0", "1", "2"}) {
    condition.push_back(Array{"le", 0, stride + dim});
    condition.push_back(isMultiple(stride + dim, 8));
  }
  return condition;
}

/// Whether the op's schedule is what would be chosen; another was asked for.
static bool isChosen(AttentionOp op, const ScheduleProblem &problem,
                     const TargetInfo &target) {
  llvm::Expected<KernelTile> tile = chooseTile(problem, target);
  if (!tile) {
    llvm::consumeError(tile.takeError());
    return false;
  }
  return getScheduleAttr(op.getContext(), *tile) == op.getScheduleAttr();
}

/// Whether an earlier run has left the function's kernels beside it.
static bool hasKernels(func::FuncOp function) {
  for (auto kernels :
       function->getParentRegion()->getOps<gpu::GPUModuleOp>())
    if (kernels->hasAttr(kManifestAttrName) &&
        kernels.lookupSymbol<LLVM::LLVMFuncOp>(function.getNameAttr()))
      return true;
  return false;
}

static FailureOr<gpu::GPUModuleOp> convert(func::FuncOp function) {
  FailureOr<AttentionOp> attention = getWholeBody(function);
  if (failed(attention))
    return failure();
  AttentionOp op = *attention;
  FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
  if (failed(problem) || failed(ScoreChain::verify(op)))
    return failure();
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    return op.emitError(
        "expected a schedule: run attnfuse-select-schedule first");
  KernelTile tile = getKernelTile(schedule);
  if (failed(checkNames(function)))
    return failure();
  std::optional<TargetInfo> target;
  if (tile.pipeline) {
    llvm::Expected<TargetInfo> known = getTargetOf(op);
    if (!known)
      return op.emitError(llvm::toString(known.takeError()));
    target = *known;
    if (llvm::Error error = checkTile(*problem, tile, *target))
      return op.emitOpError() << llvm::toString(std::move(error));
  } else if (llvm::Error error = checkBlocks(*problem, tile)) {
    return op.emitOpError() << llvm::toString(std::move(error));
  }
  llvm::Expected<DimensionClasses> dims = DimensionClasses::analyze(function);
  if (!dims)
    return function.emitError(llvm::toString(dims.takeError()));
  for (const ArgumentRole &role : llvm::concat<const ArgumentRole>(
           dims->getArguments(), dims->getResults())) {
    if (dims->lookup(role.name))
      return function.emitError("expected names of arguments that are not "
                                "names of dimensions, got '")
             << role.name << "'; rename it by attnfuse.name";
    if (StringRef(role.name).starts_with("$"))
      return function.emitError("expected names that do not start with '$', "
                                "which the manifest reserves, got '")
             << role.name << "'; rename it by attnfuse.name";
  }

  OpBuilder b(function);
  b.setInsertionPointAfter(function);
  auto module = gpu::GPUModuleOp::create(
      b, function.getLoc(), (function.getName() + "_kernels").str());
  // The module gets another name where a function has this one.
  module->remove();
  SymbolTable(function->getParentOp()).insert(module, b.getInsertionPoint());
  b.setInsertionPointToStart(module.getBody());
  // An external array of unknown size is the dynamic shared memory of the
  // launch. No function's name holds a dollar sign (checkNames).
  auto sharedMemory = LLVM::GlobalOp::create(
      b, op.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0),
      /*isConstant=*/false, LLVM::Linkage::External, "attnfuse$shared",
      Attribute(),
      /*alignment=*/1024, /*addrSpace=*/3);
  ManifestBuilder manifest(op, *dims);
  auto addKernel = [&](const Twine &name, const KernelTile &tile,
                       std::optional<llvm::json::Value> when) {
    b.setInsertionPointToEnd(module.getBody());
    KernelTraits traits = getKernelTraits(op);
    KernelResources resources = tile.pipeline
                                    ? getKernelResources(traits, tile, *target)
                                    : getUnpipelinedResources(traits, tile);
    LLVM::LLVMFuncOp kernel =
        createKernel(b, op.getLoc(), name, tile, resources);
    KernelAbi abi(kernel, manifest.getTensors());
    if (tile.pipeline)
      sm90::buildAttentionForward(op, tile, kernel, sharedMemory, abi, *target);
    else
      sm80::buildAttentionForward(op, tile, kernel, sharedMemory, abi);
    manifest.addVersion(kernel.getName(), tile, resources, abi.finalize(),
                        std::move(when));
  };
  // A staged operand is a tensor of the user's strides, of which a tensor map
  // can be made or not.
  std::optional<StagedOperand> staged = getStagedOperand(op);
  std::optional<llvm::json::Value> mapCondition;
  if (tile.pipeline && staged)
    mapCondition = getTensorMapCondition(
        manifest.getTensors().find(staged->tensor)->second);
  if (tile.pipeline && isChosen(op, *problem, *target))
    if (std::optional<KernelTile> small =
            chooseTileForFewRows(*problem, tile, *target)) {
      llvm::json::Value isSmall = manifest.getFewTilesCondition(tile.tileM);
      addKernel(function.getName() + "$few_rows", *small,
                mapCondition ? llvm::json::Array{"mul", *mapCondition, isSmall}
                             : isSmall);
    }
  addKernel(function.getName(), tile, mapCondition);
  if (mapCondition) {
    llvm::Expected<KernelTile> other = chooseUnpipelinedTile(*problem, *target);
    if (!other)
      return op.emitOpError() << llvm::toString(other.takeError());
    addKernel(function.getName() + "$any_strides", *other, std::nullopt);
  }
  module->setAttr(kManifestAttrName, b.getStringAttr(manifest.build()));
  return module;
}

namespace {
struct ConvertAttnFuseToGPUPass
    : attnfuse::impl::ConvertAttnFuseToGPUPassBase<ConvertAttnFuseToGPUPass> {
  using ConvertAttnFuseToGPUPassBase::ConvertAttnFuseToGPUPassBase;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    SymbolUserMap users(symbols, getOperation());
    for (func::FuncOp function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      ArrayRef<Operation *> uses = users.getUsers(function);
      bool isLaunched = function.isPrivate() && !uses.empty() &&
                        llvm::all_of(uses, llvm::IsaPred<LaunchOp>);
      if (!isLaunched && (outlinedOnly || !computesAttention(function)))
        continue;
      if (!isLaunched && hasKernels(function))
        continue;
      if (failed(checkConstantOperands(function)))
        return signalPassFailure();
      RewritePatternSet patterns(&getContext());
      populateExpandAlibiSlopePatterns(patterns);
      populateGuardDivisionPatterns(patterns);
      walkAndApplyPatterns(function, std::move(patterns));
      FailureOr<gpu::GPUModuleOp> kernels = convert(function);
      if (failed(kernels))
        return signalPassFailure();
      if (!isLaunched)
        continue;
      auto name = SymbolRefAttr::get(kernels->getNameAttr(),
                                     FlatSymbolRefAttr::get(function));
      for (Operation *use : uses)
        cast<LaunchOp>(use).setKernelAttr(name);
      function.erase();
    }
  }
};
} // namespace
