//===- LaunchToRuntime.cpp - Launches to calls of the runtime -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface is that of attnfuse-c/Host.h.
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Host.h"
#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_CONVERTATTNFUSELAUNCHTORUNTIMEPASS
#include "attnfuse/Conversion/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

static constexpr StringLiteral kLaunchFunction = "attnfuseHostLaunch";

static std::optional<int64_t> getElementCode(Type type) {
  if (type.isF16())
    return ATTNFUSE_F16;
  if (type.isBF16())
    return ATTNFUSE_BF16;
  if (type.isF32())
    return ATTNFUSE_F32;
  if (type.isInteger(32))
    return ATTNFUSE_I32;
  if (type.isInteger(64))
    return ATTNFUSE_I64;
  return std::nullopt;
}

namespace {
class HostCodeBuilder {
public:
  explicit HostCodeBuilder(ModuleOp module)
      : module(module), symbols(module), first(&module.getBody()->front()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        word(IntegerType::get(module.getContext(), 64)) {
    Type half = IntegerType::get(module.getContext(), 32);
    Type extents = LLVM::LLVMArrayType::get(word, ATTNFUSE_MAX_RANK);
    valueType = LLVM::LLVMStructType::getLiteral(
        module.getContext(), {pointer, word, half, half, extents, extents});
  }

  LogicalResult convert(LaunchOp launch);

private:
  /// A constant of `bytes`, with a zero byte behind it.
  LLVM::GlobalOp createBytes(Location loc, const Twine &name, StringRef bytes);
  /// The AttnfuseHostImage of `binary`; null after an error.
  LLVM::GlobalOp getImage(gpu::BinaryOp binary);
  LLVM::LLVMFuncOp getLaunchFunction(Location loc);
  /// Stores `operand` as the AttnfuseValue of number `index` in `buffer`.
  LogicalResult storeOperand(OpBuilder &b, LaunchOp launch, Value operand,
                             Value buffer, int32_t index);
  Value makeConstant(OpBuilder &b, Location loc, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }

  ModuleOp module;
  SymbolTable symbols;
  /// What is added to the module stands before it, in the order of creation.
  Operation *first;
  Type pointer, word;
  /// An AttnfuseValue, field by field.
  Type valueType;
  llvm::DenseMap<Operation *, LLVM::GlobalOp> images;
  llvm::StringMap<LLVM::GlobalOp> names;
};
} // namespace

LLVM::GlobalOp HostCodeBuilder::createBytes(Location loc, const Twine &name,
                                            StringRef bytes) {
  OpBuilder b(module.getContext());
  std::string terminated = bytes.str();
  terminated.push_back('\0');
  auto global = LLVM::GlobalOp::create(
      b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), terminated.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name.str(),
      b.getStringAttr(terminated));
  symbols.insert(global, first->getIterator());
  return global;
}

LLVM::GlobalOp HostCodeBuilder::getImage(gpu::BinaryOp binary) {
  if (LLVM::GlobalOp known = images.lookup(binary))
    return known;
  auto manifest = binary->getAttrOfType<StringAttr>(kManifestAttrName);
  gpu::ObjectAttr object;
  if (binary.getObjectsAttr().size() == 1)
    object = dyn_cast<gpu::ObjectAttr>(binary.getObjectsAttr()[0]);
  if (!manifest || !object) {
    binary.emitError("expected one object and a manifest for launches; run "
                     "attnfuse-serialize-kernels");
    return {};
  }
  StringRef code = object.getObject().getValue();
  LLVM::GlobalOp codeBytes =
      createBytes(binary.getLoc(), binary.getName() + "_code", code);
  LLVM::GlobalOp manifestBytes = createBytes(
      binary.getLoc(), binary.getName() + "_manifest", manifest.getValue());

  OpBuilder b(module.getContext());
  Location loc = binary.getLoc();
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, word, pointer, word, pointer});
  auto image = LLVM::GlobalOp::create(
      b, loc, type, /*isConstant=*/false, LLVM::Linkage::Internal,
      (binary.getName() + "_image").str(), Attribute());
  symbols.insert(image, first->getIterator());
  b.createBlock(&image.getInitializerRegion());
  Value value = LLVM::UndefOp::create(b, loc, type);
  auto constant = [&](int64_t number) -> Value {
    return LLVM::ConstantOp::create(b, loc, word, b.getI64IntegerAttr(number));
  };
  Value fields[] = {LLVM::AddressOfOp::create(b, loc, codeBytes),
                    constant(code.size()),
                    LLVM::AddressOfOp::create(b, loc, manifestBytes),
                    constant(manifest.getValue().size()),
                    LLVM::ZeroOp::create(b, loc, pointer)};
  for (auto [i, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(b, loc, value, field, i);
  LLVM::ReturnOp::create(b, loc, value);
  return images[binary] = image;
}

LLVM::LLVMFuncOp HostCodeBuilder::getLaunchFunction(Location loc) {
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(module.getContext()),
      {pointer, pointer, word, pointer, word, pointer, word});
  if (Operation *known = symbols.lookup(kLaunchFunction)) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(known);
    if (function && function.getFunctionType() == type)
      return function;
    known->emitError("expected '")
        << kLaunchFunction << "' to be the function of attnfuse-c/Host.h";
    return {};
  }
  OpBuilder b(module.getContext());
  auto function = LLVM::LLVMFuncOp::create(b, loc, kLaunchFunction, type);
  symbols.insert(function, first->getIterator());
  return function;
}

LogicalResult HostCodeBuilder::storeOperand(OpBuilder &b, LaunchOp launch,
                                            Value operand, Value buffer,
                                            int32_t index) {
  Location loc = launch.getLoc();
  auto store = [&](Value value, ArrayRef<LLVM::GEPArg> field) {
    SmallVector<LLVM::GEPArg> path{index};
    llvm::append_range(path, field);
    Value slot = LLVM::GEPOp::create(b, loc, pointer, valueType, buffer, path);
    LLVM::StoreOp::create(b, loc, value, slot);
  };
  auto type = dyn_cast<MemRefType>(operand.getType());
  if (!type) {
    store(operand, {1});
    return success();
  }
  std::optional<int64_t> code = getElementCode(type.getElementType());
  if (!code)
    return launch.emitOpError("expected memrefs of f16, bf16, f32, i32 or i64 "
                              "for the runtime, got ")
           << type;
  if (!type.isStrided())
    return launch.emitOpError("expected a memref with strides, got ") << type;
  if (type.getRank() > ATTNFUSE_MAX_RANK)
    return launch.emitOpError("expected at most ")
           << ATTNFUSE_MAX_RANK << " dimensions for the runtime, got " << type;
  auto toWord = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, word, index);
  };
  auto makeHalf = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  };
  auto parts = memref::ExtractStridedMetadataOp::create(b, loc, operand);
  Value base =
      toWord(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, operand));
  Value offset = arith::MulIOp::create(
      b, loc, toWord(parts.getOffset()),
      makeConstant(b, loc, type.getElementTypeBitWidth() / 8));
  Value address = arith::AddIOp::create(b, loc, base, offset);
  store(LLVM::IntToPtrOp::create(b, loc, pointer, address), {0});
  store(makeHalf(*code), {2});
  store(makeHalf(type.getRank()), {3});
  for (auto [i, size] : llvm::enumerate(parts.getSizes()))
    store(toWord(size), {4, int32_t(i)});
  for (auto [i, stride] : llvm::enumerate(parts.getStrides()))
    store(toWord(stride), {5, int32_t(i)});
  return success();
}

LogicalResult HostCodeBuilder::convert(LaunchOp launch) {
  if (!launch.hasPureBufferSemantics())
    return launch.emitOpError("expected memrefs; bufferize before");
  auto binary =
      dyn_cast_or_null<gpu::BinaryOp>(SymbolTable::lookupNearestSymbolFrom(
          launch, launch.getKernel().getRootReference()));
  if (!binary || binary->getParentOp() != module)
    return launch.emitOpError("expected '")
           << launch.getKernel()
           << "' to be in a gpu.binary of this module; run "
              "attnfuse-to-ptx-pipeline, or attnfuse-serialize-kernels";
  Location loc = launch.getLoc();
  LLVM::GlobalOp image = getImage(binary);
  LLVM::LLVMFuncOp function = image ? getLaunchFunction(loc) : nullptr;
  if (!function)
    return failure();
  StringRef entry = launch.getKernel().getLeafReference();
  LLVM::GlobalOp &name = names[entry];
  if (!name)
    name = createBytes(loc, entry + "_name", entry);

  // In the entry block, so that a launch in a loop does not grow the stack.
  auto around = launch->getParentOfType<FunctionOpInterface>();
  if (!around)
    return launch.emitOpError("expected it in a function");
  OpBuilder b(launch);
  auto makeValues = [&](OperandRange operands) -> FailureOr<Value> {
    Value buffer;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&around.getFunctionBody().front());
      auto type = LLVM::LLVMArrayType::get(valueType, operands.size());
      buffer = LLVM::AllocaOp::create(b, loc, pointer, type,
                                      makeConstant(b, loc, 1));
    }
    for (auto [i, operand] : llvm::enumerate(operands))
      if (failed(storeOperand(b, launch, operand, buffer, i)))
        return failure();
    return buffer;
  };
  FailureOr<Value> inputs = makeValues(launch.getInputs());
  FailureOr<Value> outs = failure();
  if (succeeded(inputs))
    outs = makeValues(launch.getOuts());
  if (failed(outs))
    return failure();
  Value stream = launch.getStream();
  if (!stream)
    stream = makeConstant(b, loc, 0);
  Value arguments[] = {LLVM::AddressOfOp::create(b, loc, image),
                       LLVM::AddressOfOp::create(b, loc, name),
                       stream,
                       *inputs,
                       makeConstant(b, loc, launch.getInputs().size()),
                       *outs,
                       makeConstant(b, loc, launch.getOuts().size())};
  LLVM::CallOp::create(b, loc, function, arguments);
  launch.erase();
  return success();
}

namespace {
struct ConvertAttnFuseLaunchToRuntimePass
    : attnfuse::impl::ConvertAttnFuseLaunchToRuntimePassBase<
          ConvertAttnFuseLaunchToRuntimePass> {
  void runOnOperation() override {
    SmallVector<LaunchOp> launches;
    getOperation().walk([&](LaunchOp launch) { launches.push_back(launch); });
    if (launches.empty())
      return markAllAnalysesPreserved();
    HostCodeBuilder builder(getOperation());
    llvm::SetVector<Operation *> binaries;
    SymbolTable symbols(getOperation());
    for (LaunchOp launch : launches) {
      Operation *root = symbols.lookup(launch.getKernel().getRootReference());
      if (failed(builder.convert(launch)))
        return signalPassFailure();
      binaries.insert(root);
    }
    // Their contents are in the globals now.
    for (Operation *binary : binaries)
      if (SymbolTable::symbolKnownUseEmpty(binary, getOperation()))
        binary->erase();
    removeAttributes();
  }

  /// Once nothing else of the dialect is left, its attributes go, so that tools
  /// that do not know it can take the module.
  void removeAttributes() {
    WalkResult found = getOperation().walk([](Operation *op) {
      return isa_and_nonnull<AttnFuseDialect>(op->getDialect()) ||
                     op->hasAttr(kManifestAttrName)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (found.wasInterrupted())
      return;
    getOperation()->removeAttr(kTargetAttrName);
    for (auto function : getOperation().getOps<FunctionOpInterface>()) {
      StringAttr names[] = {StringAttr::get(&getContext(), kNameAttr),
                            StringAttr::get(&getContext(), kStreamAttr)};
      for (StringAttr name : names) {
        for (unsigned i = 0; i < function.getNumArguments(); ++i)
          function.removeArgAttr(i, name);
        for (unsigned i = 0; i < function.getNumResults(); ++i)
          function.removeResultAttr(i, name);
      }
    }
  }
};
} // namespace
