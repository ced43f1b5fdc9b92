//===- TestModule.h - Functions and tensors of unit tests -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_UNITTESTS_TESTMODULE_H
#define ATTNFUSE_UNITTESTS_TESTMODULE_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Support/HostTensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace mlir::attnfuse {

/// A module and the context that it lives in.
struct TestModule {
  explicit TestModule(llvm::StringRef text) {
    context.loadDialect<AttnFuseDialect, arith::ArithDialect, func::FuncDialect,
                        math::MathDialect, tensor::TensorDialect>();
    module = parseSourceString<ModuleOp>(text, &context);
  }
  /// The first function, or null if the text does not parse.
  func::FuncOp getFunction() {
    if (!module)
      return {};
    auto functions = module->getOps<func::FuncOp>();
    return functions.empty() ? func::FuncOp() : *functions.begin();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

inline ::attnfuse::HostTensor makeTensor(::attnfuse::ElementType type,
                                         std::vector<int64_t> shape,
                                         const std::vector<double> &values) {
  ::attnfuse::HostTensor tensor(type, std::move(shape));
  for (size_t index = 0; index < values.size(); ++index)
    tensor.setFloat(index, values[index]);
  return tensor;
}

inline std::vector<double> getValues(const ::attnfuse::HostTensor &tensor) {
  std::vector<double> values;
  for (int64_t index = 0; index < tensor.getNumElements(); ++index)
    values.push_back(tensor.getFloat(index));
  return values;
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_UNITTESTS_TESTMODULE_H
