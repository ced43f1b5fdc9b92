//===- Outline.cpp - Attention out of larger functions --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/KernelFunction.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSEOUTLINEPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// Letters, digits and '_' are what names in PTX are made of.
std::string makeKernelName(StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  if (result.empty() || llvm::isDigit(result.front()))
    result.insert(result.begin(), '_');
  return result;
}

/// The rotations of q and k that are ops before `op` and serve it alone, in the
/// order in which they are evaluated.
SmallVector<RopeOp> collectRotations(AttentionOp op) {
  llvm::SetVector<Operation *> rotations;
  auto serves = [&](OpOperand &use) {
    return rotations.contains(use.getOwner()) ||
           &use == &op.getQueryMutable() || &use == &op.getKeyMutable();
  };
  for (Value value : {op.getQuery(), op.getKey()}) {
    // In a graph region an op may stand after its user.
    Operation *user = op;
    auto rope = value.getDefiningOp<RopeOp>();
    while (rope && rope->getBlock() == op->getBlock() &&
           rope->isBeforeInBlock(user) &&
           llvm::all_of(rope->getUses(), serves) && rotations.insert(rope)) {
      user = rope;
      rope = rope.getInput().getDefiningOp<RopeOp>();
    }
  }
  auto result = llvm::map_to_vector(
      rotations, [](Operation *rotation) { return cast<RopeOp>(rotation); });
  llvm::sort(result, [](RopeOp a, RopeOp b) { return a->isBeforeInBlock(b); });
  return result;
}

/// The name that `attnfuse.name` gives to `value` where it is a function's
/// argument, or null.
StringAttr getGivenName(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return {};
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function ? function.getArgAttrOfType<StringAttr>(
                        argument.getArgNumber(), kNameAttr)
                  : StringAttr();
}

/// The function's argument that is the stream of what is launched in it, or
/// null for the default stream.
Value getStream(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, kStreamAttr))
      return function.getArgument(i);
  return {};
}

/// An uninitialized tensor for a result [B, Hq, Nq, ...] of `op`.
/// `moved` are ops that will be gone.
Value createDestination(OpBuilder &b, AttentionOp op, Value result,
                        ArrayRef<Operation *> moved) {
  Value query = op.getQuery();
  // A rotation does not change sizes.
  while (llvm::is_contained(moved, query.getDefiningOp()))
    query = query.getDefiningOp<RopeOp>().getInput();
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(b, op.getLoc(), query, dim));
  return tensor::EmptyOp::create(b, op.getLoc(), type, sizes);
}

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), symbols(module) {}

  void outline(AttentionOp op);

private:
  std::string chooseName(AttentionOp op) {
    Operation *around = op;
    while (around->getParentOp() != module)
      around = around->getParentOp();
    auto name =
        around->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    std::string stem =
        (name ? makeKernelName(name.getValue()) + "_" : "") + "attention_";
    unsigned &number = nextNumber[stem];
    while (symbols.lookup(stem + std::to_string(number)))
      ++number;
    return stem + std::to_string(number++);
  }

  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<unsigned> nextNumber;
};

void Outliner::outline(AttentionOp op) {
  Location loc = op.getLoc();
  OpBuilder b(op);
  SmallVector<Operation *> rotations =
      llvm::to_vector_of<Operation *>(collectRotations(op));
  SmallVector<Operation *> ops = rotations;
  ops.push_back(op);
  llvm::SetVector<Value> inputs;
  SmallVector<Value> constants;
  for (Operation *part : ops)
    for (Value operand : part->getOperands())
      if (isKernelConstant(operand))
        constants.push_back(operand);
      else if (!llvm::is_contained(rotations, operand.getDefiningOp()))
        inputs.insert(operand);

  auto function = func::FuncOp::create(
      b, loc, chooseName(op),
      b.getFunctionType(TypeRange(ValueRange(inputs.getArrayRef())),
                        op->getResultTypes()));
  function->remove();
  function.setPrivate();
  for (auto [i, input] : llvm::enumerate(inputs))
    if (StringAttr name = getGivenName(input))
      function.setArgAttr(i, kNameAttr, name);
  symbols.insert(function);

  Block *body = function.addEntryBlock();
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip_equal(inputs, body->getArguments()))
    mapping.map(input, argument);
  OpBuilder inside = OpBuilder::atBlockEnd(body);
  for (Value constant : constants)
    if (!mapping.contains(constant))
      inside.clone(*constant.getDefiningOp(), mapping);
  Operation *moved = nullptr;
  for (Operation *part : ops)
    moved = inside.clone(*part, mapping);
  func::ReturnOp::create(inside, loc, moved->getResults());

  SmallVector<Value> outs;
  for (Value result : op->getResults())
    outs.push_back(createDestination(b, op, result, rotations));
  auto launch = LaunchOp::create(b, loc, op->getResultTypes(),
                                 SymbolRefAttr::get(function),
                                 inputs.getArrayRef(), outs, getStream(op));
  launch->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(launch);
  for (Operation *part : llvm::reverse(ops))
    part->erase();
}

struct OutlinePass : attnfuse::impl::AttnFuseOutlinePassBase<OutlinePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // What is launched has been outlined before.
    llvm::SmallPtrSet<Operation *, 8> launched;
    SymbolTableCollection symbols;
    module.walk([&](LaunchOp launch) {
      launched.insert(
          symbols.lookupNearestSymbolFrom(launch, launch.getKernelAttr()));
    });
    SmallVector<AttentionOp> ops;
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      // Nested modules have symbols, and a target, of their own.
      if (launched.contains(op) ||
          (op != module && op->hasTrait<OpTrait::SymbolTable>()))
        return WalkResult::skip();
      if (auto attention = dyn_cast<AttentionOp>(op))
        ops.push_back(attention);
      return WalkResult::advance();
    });
    if (ops.empty())
      return markAllAnalysesPreserved();
    Outliner outliner(module);
    for (AttentionOp op : ops)
      outliner.outline(op);
    numOutlined += ops.size();
  }
};
} // namespace
