//===- Launch.cpp - The launch of kernels from host code ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::attnfuse;

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : getInputsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
  for (OpOperand &operand : getOutsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
}

LogicalResult LaunchOp::verify() {
  if (getOuts().empty())
    return emitOpError("expected a tensor or memref for each result of the "
                       "kernel, got none");
  bool onTensors = isa<TensorType>(getOuts().front().getType());
  for (Value operand : llvm::concat<Value>(getInputs(), getOuts()))
    if (auto type = dyn_cast<ShapedType>(operand.getType()))
      if (isa<TensorType>(type) != onTensors)
        return emitOpError("expected all operands to be tensors or all to be "
                           "memrefs, got both");
  return success();
}

/// Whether `operand` can be what a function takes as `parameter`.
static bool isCompatible(Type operand, Type parameter) {
  auto from = dyn_cast<ShapedType>(operand);
  auto to = dyn_cast<ShapedType>(parameter);
  if (!from || !to)
    return operand == parameter;
  return from.getElementType() == to.getElementType() &&
         succeeded(verifyCompatibleShape(from, to));
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  StringAttr root = getKernel().getRootReference();
  Operation *callee = symbols.lookupNearestSymbolFrom(*this, root);
  if (!callee)
    return emitOpError("expected '")
           << getKernel()
           << "' to be a function or kernels, got no such symbol";
  auto function = dyn_cast<FunctionOpInterface>(callee);
  if (!function) {
    if (callee->hasAttr(kManifestAttrName) &&
        getKernel().getNestedReferences().size() == 1)
      return success();
    InFlightDiagnostic diagnostic = emitOpError("expected '")
                                    << getKernel()
                                    << "' to be a function, or one of kernels "
                                       "with a manifest";
    diagnostic.attachNote(callee->getLoc()) << "it is this";
    return diagnostic;
  }

  auto check = [&](StringRef kind, OperandRange operands,
                   ArrayRef<Type> types) -> LogicalResult {
    if (operands.size() != types.size())
      return emitOpError("expected ")
             << types.size() << " " << kind << " for '" << root.getValue()
             << "', got " << operands.size();
    for (auto [i, operand, type] : llvm::enumerate(operands, types))
      if (!isCompatible(operand.getType(), type))
        return emitOpError("expected ")
               << kind << " " << i << " for '" << root.getValue()
               << "' to be a " << type << ", got " << operand.getType();
    return success();
  };
  return failure(
      failed(check("inputs", getInputs(), function.getArgumentTypes())) ||
      failed(check("outs", getOuts(), function.getResultTypes())));
}
