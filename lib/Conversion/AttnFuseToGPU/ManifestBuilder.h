//===- ManifestBuilder.h - The manifest of one function ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNFUSETOGPU_MANIFESTBUILDER_H
#define ATTNFUSE_LIB_CONVERSION_ATTNFUSETOGPU_MANIFESTBUILDER_H

#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/KernelGen/KernelResources.h"

namespace mlir::attnfuse {

/// Describes a function whose body is `op` as docs/manifest.md defines.
class ManifestBuilder {
public:
  /// `dims` must outlive this.
  ManifestBuilder(AttentionOp op, const DimensionClasses &dims);

  /// What the kernel may refer to: the function's arguments, and the op's
  /// results that it returns.
  const kernelgen::AbiTensors &getTensors() const { return tensors; }

  /// Whether tiles of `tileM` rows are too few to fill the machine for long.
  llvm::json::Value getFewTilesCondition(int64_t tileM);

  /// Adds a version of the function: one kernel. All but the last added have a
  /// condition, which is an expression.
  void addVersion(StringRef kernelName, const KernelTile &tile,
                  const KernelResources &resources,
                  llvm::json::Array parameters,
                  std::optional<llvm::json::Value> when = std::nullopt);

  /// The JSON object of the function with its versions.
  std::string build();

private:
  llvm::json::Value getDim(Value tensor, unsigned dim);
  llvm::json::Value getNumTiles(int64_t tileM);
  llvm::json::Object describe(Value tensor, Type type, StringRef role);
  /// Every call must have `holds` 1. Drops what is 1 in all calls.
  void addCheck(llvm::json::Value holds, const Twine &message);
  void addChecks();
  void addRotationChecks(StringRef of, RotationAttr rotation, Value cos,
                         Value offset, Value positions,
                         llvm::json::Value length);

  AttentionOp op;
  const DimensionClasses &dims;
  kernelgen::AbiTensors tensors;
  llvm::json::Array checks, versions;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNFUSETOGPU_MANIFESTBUILDER_H
