//===- KernelAbi.cpp - The parameters of a kernel
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;
namespace json = llvm::json;

/// Size and alignment of a CUtensorMap.
static constexpr int64_t kTensorMapWords = 16, kTensorMapAlignment = 64;
/// Of all other parameters.
static constexpr int64_t kWordBytes = 8;

static std::string toString(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

Value KernelAbi::getParameter(json::Object description, Type type) {
  Value &parameter =
      parameters[toString(json::Value(json::Object(description)))];
  if (!parameter) {
    parameter = kernel.getBody().front().addArgument(type, kernel.getLoc());
    descriptions.push_back(std::move(description));
  }
  return parameter;
}

static ElementsAttr getConstant(Value value) {
  ElementsAttr constant;
  matchPattern(value, m_Constant(&constant));
  return constant;
}

Value KernelAbi::getPointer(KernelBuilder &b, Value tensor) {
  auto known = tensors.find(tensor);
  if (known == tensors.end())
    return getConstantPointer(b, tensor);
  return getParameter(
      json::Object{{"kind", "pointer"}, {"of", known->second.name}},
      b.globalPtrType());
}

Value KernelAbi::getWorkspacePointer(KernelBuilder &b, StringRef name) {
  return getParameter(json::Object{{"kind", "pointer"}, {"of", name.str()}},
                      b.globalPtrType());
}

Value KernelAbi::getStride(KernelBuilder &b, Value tensor, int64_t dim) {
  auto known = tensors.find(tensor);
  if (known != tensors.end())
    return getParameter(json::Object{{"kind", "stride"},
                                     {"of", known->second.name},
                                     {"dim", dim}},
                        b.getI64Type());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  int64_t stride = 1;
  for (int64_t inner : shape.drop_front(dim + 1))
    stride *= inner;
  return b.i64(stride);
}

json::Value KernelAbi::getDimExpression(Value tensor, int64_t dim) const {
  auto known = tensors.find(tensor);
  if (known != tensors.end())
    return known->second.shape[dim];
  return cast<RankedTensorType>(tensor.getType()).getShape()[dim];
}

Value KernelAbi::getTensorMap(KernelBuilder &b, Value tensor, int64_t heads,
                              int64_t rows, int64_t columns) {
  // A map holds an address of the host's choice, which no constant of the
  // module has: AttnFuseToGPU demands arguments.
  return getParameter(json::Object{{"kind", "tensor_map"},
                                   {"of", tensors.find(tensor)->second.name},
                                   {"box", json::Array{heads, rows, columns}}},
                      LLVM::LLVMPointerType::get(b.getContext()));
}

Value KernelAbi::getDim(KernelBuilder &b, Value tensor, int64_t dim) {
  auto known = tensors.find(tensor);
  if (known != tensors.end())
    return getValue(b, known->second.shape[dim]);
  return b.i64(cast<RankedTensorType>(tensor.getType()).getShape()[dim]);
}

Value KernelAbi::getScalar(KernelBuilder &b, Value scalar) {
  APInt constant;
  if (matchPattern(scalar, m_ConstantInt(&constant)))
    return b.i64(constant.getSExtValue());
  return getValue(b, json::Value(tensors.find(scalar)->second.name));
}

Value KernelAbi::getValue(KernelBuilder &b, const json::Value &expression) {
  if (std::optional<int64_t> constant = expression.getAsInteger())
    return b.i64(*constant);
  return getParameter(json::Object{{"kind", "value"}, {"value", expression}},
                      b.getI64Type());
}

Value KernelAbi::getConstantPointer(KernelBuilder &b, Value tensor) {
  LLVM::GlobalOp global;
  for (auto &[known, op] : constants)
    if (known == tensor)
      global = op;
  if (!global) {
    auto type = cast<RankedTensorType>(tensor.getType());
    std::string name =
        (kernel.getName() + "_constant_" + Twine(constants.size())).str();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(kernel);
    Type array =
        LLVM::LLVMArrayType::get(type.getElementType(), type.getNumElements());
    auto flat = cast<DenseElementsAttr>(getConstant(tensor))
                    .reshape(RankedTensorType::get({type.getNumElements()},
                                                   type.getElementType()));
    global = b.create<LLVM::GlobalOp>(array, /*isConstant=*/true,
                                      LLVM::Linkage::Internal, name, flat,
                                      /*alignment=*/16, /*addrSpace=*/1);
    constants.push_back({tensor, global});
  }
  return b.create<LLVM::AddressOfOp>(b.globalPtrType(), global.getSymName());
}

json::Array KernelAbi::finalize() {
  Block &entry = kernel.getBody().front();
  MLIRContext *context = kernel.getContext();
  kernel.setFunctionType(
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                  llvm::to_vector(entry.getArgumentTypes())));
  // Results do not overlap arguments, so that arguments may be read through the
  // read-only cache; not so the workspace, which the kernel before may still be
  // writing when this one starts.
  for (const auto &[value, tensor] : tensors) {
    if (value.getDefiningOp<RopeOp>())
      continue;
    auto parameter = parameters.find(
        toString(json::Object{{"kind", "pointer"}, {"of", tensor.name}}));
    if (parameter == parameters.end())
      continue;
    unsigned index = cast<BlockArgument>(parameter->second).getArgNumber();
    kernel.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                      UnitAttr::get(context));
    if (isa<BlockArgument>(value))
      kernel.setArgAttr(index, LLVM::LLVMDialect::getReadonlyAttrName(),
                        UnitAttr::get(context));
  }
  // Maps are passed by value, and their addresses to the accelerator.
  for (auto [index, argument] : llvm::enumerate(entry.getArguments())) {
    auto pointer = dyn_cast<LLVM::LLVMPointerType>(argument.getType());
    if (!pointer || pointer.getAddressSpace() != 0)
      continue;
    OpBuilder b(context);
    Type bytes = LLVM::LLVMArrayType::get(b.getI64Type(), kTensorMapWords);
    kernel.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(bytes));
    kernel.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(kTensorMapAlignment));
    kernel.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(),
                      b.getUnitAttr());
  }
  return std::move(descriptions);
}

int64_t mlir::attnfuse::kernelgen::getParameterBytes(LLVM::LLVMFuncOp kernel) {
  int64_t bytes = 0;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    bool isMap =
        bool(kernel.getArgAttr(index, LLVM::LLVMDialect::getByValAttrName()));
    bytes = llvm::alignTo(bytes, isMap ? kTensorMapAlignment : kWordBytes) +
            kWordBytes * (isMap ? kTensorMapWords : 1);
  }
  return bytes;
}
