//===- KernelAbi.h - The parameters of a kernel -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel asks for the pointers, strides and sizes that it uses while it is
// built; the parameter list and its description in the manifest
// (docs/manifest.md) follow from what was asked for, so they cannot disagree.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_KERNELABI_H
#define ATTNFUSE_KERNELGEN_KERNELABI_H

#include "attnfuse/KernelGen/KernelBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

namespace mlir::attnfuse::kernelgen {

/// A tensor or scalar as the manifest knows it: its name, and its shape as
/// expressions.
struct AbiTensor {
  std::string name;
  SmallVector<llvm::json::Value> shape;
};
using AbiTensors = llvm::MapVector<Value, AbiTensor>;

/// Where a kernel that splits keys leaves its results for the one that combines
/// them: f32 tensors of the workspace, by name.
struct PartialResults {
  /// Parts of the keys of every query tile, an expression.
  llvm::json::Value count;
  /// [B, Hq, parts, Nq, Dv]: the output of a part as if there were no other.
  std::string output;
  /// [B, Hq, parts, Nq, 2]: the reference and the sum of the part's normalizer.
  std::string rows;
  /// Whether the combining kernel may start before this one ends, and waits.
  bool combinesEarly = false;
};

class KernelAbi {
public:
  /// `tensors` has every argument and result of the function that the kernel
  /// may use; any other operand must be a constant.
  KernelAbi(LLVM::LLVMFuncOp kernel, const AbiTensors &tensors,
            std::optional<PartialResults> partials = std::nullopt)
      : kernel(kernel), tensors(tensors), partials(std::move(partials)) {}

  /// What a kernel that splits keys writes, and one that combines reads.
  const std::optional<PartialResults> &getPartials() const { return partials; }

  /// Whether the function knows the tensor; a result that it does not return is
  /// none that a kernel could write.
  bool has(Value tensor) const { return tensor && tensors.count(tensor); }
  /// The global-memory pointer of a tensor; for a constant, of its copy in the
  /// module.
  Value getPointer(KernelBuilder &b, Value tensor);
  /// The global-memory pointer of a tensor of the workspace, which is
  /// contiguous.
  Value getWorkspacePointer(KernelBuilder &b, StringRef name);
  /// Stride of a dimension in elements, i64.
  Value getStride(KernelBuilder &b, Value tensor, int64_t dim);
  /// Size of a dimension, i64.
  Value getDim(KernelBuilder &b, Value tensor, int64_t dim);
  /// Value of a scalar operand, i64.
  Value getScalar(KernelBuilder &b, Value scalar);
  /// Size of a dimension as an expression of the manifest.
  llvm::json::Value getDimExpression(Value tensor, int64_t dim) const;
  /// Tensor map of a [B, H, N, D] tensor, for boxes of `heads` x `rows` x
  /// `columns` of H, N and D.
  Value getTensorMap(KernelBuilder &b, Value tensor, int64_t heads,
                     int64_t rows, int64_t columns);
  /// Value of an expression of the manifest, i64.
  Value getValue(KernelBuilder &b, const llvm::json::Value &expression);

  /// Closes the kernel's signature; returns the manifest's list of parameters.
  llvm::json::Array finalize();

private:
  /// The parameter that `description` stands for, added if it is new.
  Value getParameter(llvm::json::Object description, Type type);
  Value getConstantPointer(KernelBuilder &b, Value tensor);

  LLVM::LLVMFuncOp kernel;
  const AbiTensors &tensors;
  std::optional<PartialResults> partials;
  llvm::StringMap<Value> parameters;
  llvm::json::Array descriptions;
  SmallVector<std::pair<Value, LLVM::GlobalOp>> constants;
};

/// Bytes of a closed signature's parameters.
int64_t getParameterBytes(LLVM::LLVMFuncOp kernel);

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_KERNELABI_H
