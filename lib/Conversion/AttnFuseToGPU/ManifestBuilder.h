//===- ManifestBuilder.h - The manifest of one function ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_CONVERSION_ATTNFUSETOGPU_MANIFESTBUILDER_H
#define ATTNFUSE_LIB_CONVERSION_ATTNFUSETOGPU_MANIFESTBUILDER_H

#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Analysis/RotationCalculus.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/KernelGen/CombinePartials.h"
#include "attnfuse/KernelGen/KernelAbi.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Rotation.h"

namespace mlir::attnfuse {

/// Describes a function as docs/manifest.md defines: `op`, and rotations that
/// are for it.
class ManifestBuilder {
public:
  /// `dims` must outlive this.
  ManifestBuilder(AttentionOp op, ArrayRef<RopeOp> rotations,
                  const DimensionClasses &dims);

  /// What kernels may refer to: the function's arguments, the op's results that
  /// it returns, and the workspace.
  const kernelgen::AbiTensors &getTensors() const { return tensors; }
  AttentionSizes getSizes();

  /// The results of a copy of the op are those of the op.
  void addCopy(AttentionOp copy);
  /// The rotation's result is a tensor of the workspace.
  void addWorkspace(RopeOp rotation);

  /// Tensors of the workspace for `count` parts of the results.
  kernelgen::PartialResults addPartials(const llvm::json::Value &count,
                                        bool combinesEarly);

  /// Entries of kernels.
  llvm::json::Object describeAttention(StringRef name, const KernelTile &tile,
                                       const KernelResources &resources,
                                       llvm::json::Array parameters,
                                       bool startsEarly,
                                       const llvm::json::Value &numParts = 1);
  /// How the kernel is launched that combines parts.
  kernelgen::CombineGrid
  getCombineGrid(const kernelgen::PartialResults &partials);
  llvm::json::Object describeCombine(StringRef name,
                                     const kernelgen::CombineGrid &grid,
                                     llvm::json::Array parameters,
                                     bool startsEarly);
  llvm::json::Object describeRotation(StringRef name, RopeOp rotation,
                                      llvm::json::Array parameters);
  /// Adds a version of the function. All but the last added have a condition,
  /// which is an expression.
  void addVersion(llvm::json::Array kernels,
                  std::optional<llvm::json::Value> when = std::nullopt);

  /// The JSON object of the function with its versions.
  std::string build();

private:
  llvm::json::Value getDim(Value tensor, unsigned dim);
  llvm::json::Value getNumTiles(const KernelTile &tile);
  llvm::json::Object describe(Value tensor, Type type, StringRef role);
  /// Every call must have `holds` 1. Drops what is 1 in all calls.
  void addCheck(llvm::json::Value holds, const Twine &message);
  void addChecks();
  /// Adds a tensor to the workspace under `name`, or a name like it.
  std::string addWorkspace(std::string name, StringRef role, StringRef type,
                           llvm::json::Array shape);
  void addRotationChecks(StringRef of,
                         const kernelgen::RotationOperands &rotation,
                         llvm::json::Value length);

  AttentionOp op;
  SmallVector<RopeOp> rotations;
  const DimensionClasses &dims;
  kernelgen::AbiTensors tensors;
  llvm::json::Array workspace, checks, versions;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_CONVERSION_ATTNFUSETOGPU_MANIFESTBUILDER_H
