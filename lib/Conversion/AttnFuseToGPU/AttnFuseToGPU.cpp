//===- AttnFuseToGPU.cpp - Kernels for every attention --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestBuilder.h"
#include "attnfuse/Analysis/KeySplits.h"
#include "attnfuse/Analysis/LaunchTime.h"
#include "attnfuse/Analysis/RotationCalculus.h"
#include "attnfuse/Analysis/ScoreLoads.h"
#include "attnfuse/Conversion/KernelNames.h"
#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/KernelFunction.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/SplitRotation.h"
#include "attnfuse/KernelGen/RotateTensor.h"
#include "attnfuse/KernelGen/ScoreChain.h"
#include "attnfuse/KernelGen/Sm80/AttentionForward.h"
#include "attnfuse/KernelGen/Sm90/AttentionForward.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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

namespace {
/// A function that has kernels: rotations of whole tensors, and the attention
/// that they are for.
struct FunctionBody {
  SmallVector<RopeOp> rotations;
  AttentionOp attention;
};
} // namespace

/// Whether kernels can read `operand` as it is.
static bool isKernelOperand(Value operand) {
  return isa<BlockArgument>(operand) || operand.getDefiningOp<RopeOp>() ||
         isKernelConstant(operand);
}

/// The function returns results of the attention, each at most once, and the
/// output among them.
static LogicalResult checkReturned(AttentionOp attention,
                                   Operation *terminator) {
  llvm::SmallPtrSet<Value, 2> returned;
  for (Value result : terminator->getOperands())
    if (result.getDefiningOp() != attention || !returned.insert(result).second)
      return terminator->emitError(
          "expected each result of the function to be a different result "
          "of the attention");
  if (!returned.contains(attention.getOutput()))
    return terminator->emitError(
        "expected the function to return the attention's output");
  return success();
}

/// The function's body, or an error at what is in the way.
static FailureOr<FunctionBody> getWholeBody(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError(
        "expected a function of one block for a GPU kernel");
  FunctionBody body;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto here = dyn_cast<AttentionOp>(op);
    auto rotation = dyn_cast<RopeOp>(op);
    // What it rotates is q or k, or rotated once more.
    auto isForAttention = [](OpOperand &use) {
      if (auto user = dyn_cast<AttentionOp>(use.getOwner()))
        return &use == &user.getQueryMutable() || &use == &user.getKeyMutable();
      return isa<RopeOp>(use.getOwner());
    };
    if (rotation && !rotation->use_empty() &&
        llvm::all_of(rotation->getUses(), isForAttention)) {
      body.rotations.push_back(rotation);
      continue;
    }
    if (!here && !op.hasTrait<OpTrait::ConstantLike>())
      return op.emitError("not part of one attnfuse.attention, so '")
             << function.getName() << "' has no kernel of its own";
    if (here && body.attention) {
      InFlightDiagnostic diagnostic = here.emitError("a second attention in '")
                                      << function.getName()
                                      << "'; a kernel computes one";
      diagnostic.attachNote(body.attention.getLoc()) << "the first is here";
      return diagnostic;
    }
    if (here)
      body.attention = here;
  }
  AttentionOp attention = body.attention;
  if (!attention)
    return function.emitError("expected an attnfuse.attention in '")
           << function.getName() << "'";

  SmallVector<Operation *> ops(body.rotations.begin(), body.rotations.end());
  ops.push_back(attention);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (!isKernelOperand(operand))
        return operand.getDefiningOp()->emitError(
            "expected an operand of the attention to be an "
            "argument of the function or a dense constant");
  if (failed(checkReturned(attention, function.front().getTerminator())))
    return failure();
  return body;
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

static LLVM::LLVMFuncOp createKernel(OpBuilder &b, Location loc,
                                     const Twine &name, int64_t threads,
                                     int64_t blocksPerSm) {
  auto kernel = LLVM::LLVMFuncOp::create(
      b, loc, name.str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {}));
  kernel.addEntryBlock(b);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  b.getDenseI32ArrayAttr({int32_t(threads)}));
  // Without it the assembler spills to fit more blocks on an SM than the
  // schedule asks for.
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                  b.getI32IntegerAttr(blocksPerSm));
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

/// The names of kernels that an earlier run has left.
static llvm::DenseSet<StringAttr> getEarlierKernels(ModuleOp module) {
  llvm::DenseSet<StringAttr> names;
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    if (kernels->hasAttr(kManifestAttrName))
      for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
        names.insert(kernel.getSymNameAttr());
  return names;
}

/// Checks the op and its schedule. Returns the machine, if one is known; it is,
/// where code cannot be made without.
static FailureOr<std::optional<TargetInfo>> checkAttention(AttentionOp op) {
  FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
  if (failed(problem) || failed(ScoreChain::verify(op)))
    return failure();
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    return op.emitError(
        "expected a schedule: run attnfuse-select-schedule first");
  KernelTile tile = getKernelTile(schedule);
  std::optional<TargetInfo> target;
  llvm::Expected<TargetInfo> known = getTargetOf(op);
  bool isNeeded =
      tile.pipeline || op.getKeyRotationWay() == RotationWay::BySize;
  if (known)
    target = *known;
  else if (isNeeded)
    return op.emitError(llvm::toString(known.takeError()));
  else
    llvm::consumeError(known.takeError());
  llvm::Error error = tile.pipeline ? checkTile(*problem, tile, *target)
                                    : checkBlocks(*problem, tile);
  if (error)
    return op.emitOpError() << llvm::toString(std::move(error));
  return target;
}

/// Names in the manifest are of one kind each.
static LogicalResult checkManifestNames(const DimensionClasses &dims) {
  for (const ArgumentRole &role : llvm::concat<const ArgumentRole>(
           dims.getArguments(), dims.getResults())) {
    if (dims.lookup(role.name))
      return dims.getFunction().emitError("expected names of arguments that "
                                          "are not names of dimensions, got '")
             << role.name << "'; rename it by attnfuse.name";
    if (StringRef(role.name).starts_with("$"))
      return dims.getFunction().emitError(
                 "expected names that do not start with '$', "
                 "which the manifest reserves, got '")
             << role.name << "'; rename it by attnfuse.name";
  }
  return success();
}

/// The parts that keys are split in at every launch.
static int64_t getNumParts(const KernelTile &tile) {
  return std::max<int64_t>(tile.keySplits, 1);
}

namespace {
using Condition = std::optional<llvm::json::Value>;

Condition both(const Condition &a, const Condition &b) {
  if (!a || !b)
    return a ? a : b;
  return llvm::json::Array{"mul", *a, *b};
}

/// Emits the kernels of one function.
class FunctionConverter {
public:
  FunctionConverter(func::FuncOp function, FunctionBody wholeBody,
                    const DimensionClasses &dims,
                    std::optional<TargetInfo> target)
      : function(function), body(std::move(wholeBody)), target(target),
        b(function), manifest(body.attention, body.rotations, dims) {}

  FailureOr<gpu::GPUModuleOp> convert();

private:
  void createModule();
  /// The body in which what the plan splits, or has by size, is rotated before.
  FunctionBody splitRotations();
  /// Versions that rotate k in the kernel, for sizes at which that is quicker.
  LogicalResult addFusedVersions();
  /// Versions of one way to compute the function, which apply where `when`
  /// does.
  LogicalResult addVersions(const FunctionBody &way, const Twine &name,
                            const Condition &when, bool isLast);
  /// What a version asks of the operand that it loads in tiles, a tensor of the
  /// user's strides: that a tensor map can be made of it.
  Condition getMapsCondition(AttentionOp op, const KernelTile &tile) const;
  /// The version of `way` that splits keys, with the tile for it.
  void addSplitVersion(const FunctionBody &way);
  /// A version that splits keys where the sizes of a launch have it, if any
  /// may.
  void addSplitVersion(const FunctionBody &way, const Twine &name,
                       const KernelTile &tile, const Condition &when);
  /// A version whose keys are split in `numParts`, if that is not 1.
  void addVersion(const FunctionBody &way, const Twine &name,
                  const KernelTile &tile, const Condition &when,
                  const llvm::json::Value &numParts = 1);
  llvm::json::Object addCombine(AttentionOp op, const Twine &name,
                                const PartialResults &partials);
  KernelResources getResources(AttentionOp op, const KernelTile &tile) const;
  /// 1 at the launches where `tile` is expected to be no slower than `other`.
  SizeExpression isQuicker(AttentionOp op, const KernelTile &tile,
                           const KernelTile &other);
  llvm::json::Object addRotation(RopeOp op, bool releasesDependents);

  func::FuncOp function;
  FunctionBody body;
  std::optional<TargetInfo> target;
  OpBuilder b;
  ManifestBuilder manifest;
  gpu::GPUModuleOp module;
  LLVM::GlobalOp sharedMemory;
  /// Copies of ops that were made for one of the ways, users first.
  SmallVector<Operation *> temporary;
  /// By rotation, the kernel's entry in the manifest.
  llvm::DenseMap<Operation *, llvm::json::Object> rotationKernels;
};
} // namespace

void FunctionConverter::createModule() {
  b.setInsertionPointAfter(function);
  module = gpu::GPUModuleOp::create(b, function.getLoc(),
                                    (function.getName() + "_kernels").str());
  // The module gets another name where a function has this one.
  module->remove();
  SymbolTable(function->getParentOp()).insert(module, b.getInsertionPoint());
  b.setInsertionPointToStart(module.getBody());
  // An external array of unknown size is the dynamic shared memory of the
  // launch. No function's name holds a dollar sign (checkNames).
  sharedMemory = LLVM::GlobalOp::create(
      b, body.attention.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0),
      /*isConstant=*/false, LLVM::Linkage::External, "attnfuse$shared",
      Attribute(),
      /*alignment=*/1024, /*addrSpace=*/3);
}

FunctionBody FunctionConverter::splitRotations() {
  OpBuilder before(body.attention);
  SplitAttention split = buildSplitAttention(before, body.attention);
  temporary.push_back(split.attention);
  temporary.append(split.rotations.rbegin(), split.rotations.rend());
  manifest.addCopy(split.attention);
  FunctionBody way{body.rotations, split.attention};
  way.rotations.append(split.rotations);
  return way;
}

LogicalResult FunctionConverter::addFusedVersions() {
  AttentionOp op = body.attention;
  OpBuilder before(op);
  auto fused = cast<AttentionOp>(before.clone(*op));
  temporary.push_back(fused);
  fused.removeRotationPlanAttr();
  // The op's schedule is that of the split way.
  FailureOr<ScheduleProblem> problem = getScheduleProblem(fused);
  llvm::Expected<KernelTile> tile = chooseTile(*problem, *target);
  if (!tile)
    return op.emitOpError() << llvm::toString(tile.takeError());
  fused.setScheduleAttr(getScheduleAttr(op.getContext(), *tile));
  manifest.addCopy(fused);
  RotationCosts costs(
      fused, manifest.getSizes(),
      getRotationTile(*problem, *tile, *target, /*splitsKeys=*/false), *target);
  return addVersions({body.rotations, fused}, function.getName() + kFusedSuffix,
                     costs.isFusedQuicker().getJson(), /*isLast=*/false);
}

FailureOr<gpu::GPUModuleOp> FunctionConverter::convert() {
  createModule();
  AttentionOp op = body.attention;
  FunctionBody lastWay = hasSplitRotation(op) ? splitRotations() : body;
  // One way to rotate k is enough where keys are split, which is before: parts
  // would rotate the keys of a head once for each of its query heads.
  int64_t keySplits =
      getKernelTile(lastWay.attention.getScheduleAttr()).keySplits;
  if (keySplits == 0 && target)
    addSplitVersion(lastWay);
  LogicalResult result = success();
  if (op.getKeyRotationWay() == RotationWay::BySize && keySplits <= 1)
    result = addFusedVersions();
  if (succeeded(result))
    result = addVersions(lastWay, function.getName(), std::nullopt,
                         /*isLast=*/true);
  if (succeeded(result))
    module->setAttr(kManifestAttrName, b.getStringAttr(manifest.build()));
  for (Operation *copy : temporary)
    copy->erase();
  if (failed(result))
    return failure();
  return module;
}

Condition FunctionConverter::getMapsCondition(AttentionOp op,
                                              const KernelTile &tile) const {
  Condition condition;
  if (tile.pipeline)
    for (const StagedOperand &staged : getStagedOperands(op))
      condition = both(condition,
                       getTensorMapCondition(
                           manifest.getTensors().find(staged.tensor)->second));
  return condition;
}

void FunctionConverter::addSplitVersion(const FunctionBody &way) {
  AttentionOp op = way.attention;
  FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
  addSplitVersion(way, function.getName(),
                  getTileForSplitKeys(op, *problem, *target),
                  getMapsCondition(op, getKernelTile(op.getScheduleAttr())));
}

LogicalResult FunctionConverter::addVersions(const FunctionBody &way,
                                             const Twine &name,
                                             const Condition &when,
                                             bool isLast) {
  AttentionOp op = way.attention;
  KernelTile tile = getKernelTile(op.getScheduleAttr());
  FailureOr<ScheduleProblem> problem = getScheduleProblem(op);
  Condition hasMaps = getMapsCondition(op, tile);
  Condition here = both(when, hasMaps);
  if (tile.pipeline && tile.keySplits <= 1)
    if (std::optional<KernelTile> small =
            getTileForFewRows(op, *problem, *target))
      addVersion(way, name + kFewRowsSuffix, *small,
                 both(here, isQuicker(op, *small, tile).getJson()));
  addVersion(way, name, tile, here, getNumParts(tile));
  if (!hasMaps || !isLast)
    return success();
  llvm::Expected<KernelTile> other = chooseUnpipelinedTile(*problem, *target);
  if (!other)
    return op.emitOpError() << llvm::toString(other.takeError());
  other->keySplits = tile.keySplits;
  if (tile.keySplits == 0)
    addSplitVersion(way, name + kAnyStridesSuffix,
                    leaveRoomForParts(*problem, *other, *target), when);
  addVersion(way, name + kAnyStridesSuffix, *other, when, getNumParts(*other));
  return success();
}

KernelResources FunctionConverter::getResources(AttentionOp op,
                                                const KernelTile &tile) const {
  KernelTraits traits = getKernelTraits(op);
  return tile.pipeline ? getKernelResources(traits, tile, *target)
                       : getUnpipelinedResources(traits, tile);
}

SizeExpression FunctionConverter::isQuicker(AttentionOp op,
                                            const KernelTile &tile,
                                            const KernelTile &other) {
  AttentionSizes sizes = manifest.getSizes();
  KernelTraits traits = getKernelTraits(op);
  static_assert(kSmallBlockRows == kWarpgroupRows);
  auto estimate = [&](const KernelTile &either) {
    return estimateLaunchTime(op, sizes, getBlockTile(traits, either, *target));
  };
  return isAtMost(estimate(tile), estimate(other));
}

void FunctionConverter::addSplitVersion(const FunctionBody &way,
                                        const Twine &name,
                                        const KernelTile &tile,
                                        const Condition &when) {
  KeySplits splits(way.attention, manifest.getSizes(),
                   getBlockTile(getKernelTraits(way.attention), tile, *target),
                   *target);
  if (splits.mayPay)
    addVersion(way, name + kSplitKeysSuffix, tile,
               both(when, splits.pays().getJson()), splits.count.getJson());
}

void FunctionConverter::addVersion(const FunctionBody &way, const Twine &name,
                                   const KernelTile &tile,
                                   const Condition &when,
                                   const llvm::json::Value &numParts) {
  AttentionOp op = way.attention;
  llvm::json::Array kernels;
  for (RopeOp rotation : way.rotations)
    kernels.push_back(addRotation(rotation, rotation == way.rotations.back() &&
                                                target &&
                                                target->hasWarpgroupMma()));
  std::optional<PartialResults> partials;
  if (numParts != 1)
    partials = manifest.addPartials(numParts,
                                    target && target->hasProgrammaticLaunch());
  b.setInsertionPointToEnd(module.getBody());
  KernelResources resources = getResources(op, tile);
  LLVM::LLVMFuncOp kernel =
      createKernel(b, op.getLoc(), name, tile.getThreads(),
                   tile.pipeline ? resources.pipelinedBlocks : 1);
  KernelAbi abi(kernel, manifest.getTensors(), partials);
  if (tile.pipeline)
    sm90::buildAttentionForward(op, tile, kernel, sharedMemory, abi, *target);
  else
    sm80::buildAttentionForward(op, tile, kernel, sharedMemory, abi);
  // It waits for the rotation where it reads what that writes.
  bool startsEarly = tile.pipeline && !way.rotations.empty();
  kernels.push_back(manifest.describeAttention(kernel.getName(), tile,
                                               resources, abi.finalize(),
                                               startsEarly, numParts));
  if (partials)
    kernels.push_back(addCombine(op, name + kCombineSuffix, *partials));
  manifest.addVersion(std::move(kernels), when);
}

llvm::json::Object
FunctionConverter::addCombine(AttentionOp op, const Twine &name,
                              const PartialResults &partials) {
  b.setInsertionPointToEnd(module.getBody());
  LLVM::LLVMFuncOp kernel =
      createKernel(b, op.getLoc(), name, CombineGrid::kThreads, 1);
  KernelAbi abi(kernel, manifest.getTensors(), partials);
  CombineGrid grid = manifest.getCombineGrid(partials);
  buildCombinePartials(op, grid, kernel, sharedMemory, abi);
  return manifest.describeCombine(kernel.getName(), grid, abi.finalize(),
                                  partials.combinesEarly);
}

llvm::json::Object FunctionConverter::addRotation(RopeOp op,
                                                  bool releasesDependents) {
  auto [entry, isNew] = rotationKernels.try_emplace(op);
  if (!isNew)
    return entry->second;
  manifest.addWorkspace(op);
  b.setInsertionPointToEnd(module.getBody());
  std::string name = (function.getName() + kRotateSuffix).str();
  if (rotationKernels.size() > 1)
    name += std::to_string(rotationKernels.size());
  LLVM::LLVMFuncOp kernel =
      createKernel(b, op.getLoc(), name, RotationGrid::kThreads, 1);
  KernelAbi abi(kernel, manifest.getTensors());
  buildRotateTensor(op, kernel, abi, releasesDependents);
  entry->second = manifest.describeRotation(name, op, abi.finalize());
  return entry->second;
}

static FailureOr<gpu::GPUModuleOp> convert(func::FuncOp function) {
  FailureOr<FunctionBody> body = getWholeBody(function);
  if (failed(body))
    return failure();
  FailureOr<std::optional<TargetInfo>> target = checkAttention(body->attention);
  if (failed(target) || failed(checkNames(function)))
    return failure();
  llvm::Expected<DimensionClasses> dims = DimensionClasses::analyze(function);
  if (!dims)
    return function.emitError(llvm::toString(dims.takeError()));
  if (failed(checkManifestNames(*dims)))
    return failure();
  return FunctionConverter(function, *body, *dims, *target).convert();
}

/// Kernels take the place of a function, which nothing but launches may use.
static LogicalResult checkOutlined(func::FuncOp function,
                                   ArrayRef<Operation *> uses) {
  const auto *launch = llvm::find_if(uses, llvm::IsaPred<LaunchOp>);
  if (launch == uses.end())
    return success();
  InFlightDiagnostic diagnostic =
      (*launch)->emitOpError("expected '")
      << function.getName()
      << "' to be private and to have no uses but launches; launch a copy of "
         "it";
  const auto *other = llvm::find_if_not(uses, llvm::IsaPred<LaunchOp>);
  if (other != uses.end())
    diagnostic.attachNote((*other)->getLoc()) << "it is also used here";
  else
    diagnostic.attachNote(function.getLoc()) << "it is not private";
  return diagnostic;
}

/// The assembler would say the same, but nothing about the function.
static LogicalResult checkParameters(gpu::GPUModuleOp kernels) {
  llvm::Expected<TargetInfo> target = getTargetOf(kernels);
  int64_t most = (target ? *target : TargetInfo()).getMaxParameterBytes();
  llvm::consumeError(target.takeError());
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
    if (int64_t bytes = getParameterBytes(kernel); bytes > most)
      return kernel.emitError()
             << "kernel '" << kernel.getName() << "' takes " << bytes
             << " bytes of parameters, expected at most " << most
             << "; put the tensors of the score region into fewer ones";
  return success();
}

namespace {
struct ConvertAttnFuseToGPUPass
    : attnfuse::impl::ConvertAttnFuseToGPUPassBase<ConvertAttnFuseToGPUPass> {
  using ConvertAttnFuseToGPUPassBase::ConvertAttnFuseToGPUPassBase;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    SymbolUserMap users(symbols, getOperation());
    llvm::DenseSet<StringAttr> earlier = getEarlierKernels(getOperation());
    for (func::FuncOp function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      ArrayRef<Operation *> uses = users.getUsers(function);
      bool isLaunched = function.isPrivate() && !uses.empty() &&
                        llvm::all_of(uses, llvm::IsaPred<LaunchOp>);
      if (!isLaunched && outlinedOnly && failed(checkOutlined(function, uses)))
        return signalPassFailure();
      // Other functions of the module are none of the pass's business.
      if (!isLaunched && (outlinedOnly || !holdsAttention(function)))
        continue;
      if (!isLaunched && earlier.contains(function.getSymNameAttr()))
        continue;
      if (failed(checkConstantOperands(function)))
        return signalPassFailure();
      RewritePatternSet patterns(&getContext());
      populateExpandAlibiSlopePatterns(patterns);
      populateGuardDivisionPatterns(patterns);
      walkAndApplyPatterns(function, std::move(patterns));
      FailureOr<gpu::GPUModuleOp> kernels = convert(function);
      if (failed(kernels) || failed(checkParameters(*kernels)))
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
