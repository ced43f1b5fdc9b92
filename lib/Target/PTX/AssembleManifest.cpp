//===- AssembleManifest.cpp - The manifest of a module's kernels ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Target/PTX/TranslateToPTX.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::attnfuse;

llvm::Expected<std::string>
mlir::attnfuse::assembleManifest(ModuleOp module, const TargetInfo &target) {
  llvm::json::Array functions;
  auto add = [&](Attribute text) -> llvm::Error {
    llvm::Expected<llvm::json::Value> entry =
        llvm::json::parse(cast<StringAttr>(text).getValue());
    if (!entry)
      return entry.takeError();
    functions.push_back(std::move(*entry));
    return llvm::Error::success();
  };
  for (auto kernels : module.getOps<gpu::GPUModuleOp>()) {
    Attribute entries = kernels->getAttr(kManifestAttrName);
    if (!entries)
      continue;
    auto array = dyn_cast<ArrayAttr>(entries);
    for (Attribute entry : array ? array.getValue() : ArrayRef(entries))
      if (llvm::Error error = add(entry))
        return std::move(error);
  }
  llvm::json::Object manifest{{"version", 1},
                              {"chip", target.chip},
                              {"functions", std::move(functions)}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(manifest))).str();
}
