//===- ScoreRegionBuilder.h - Score ops to a score region -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_TRANSFORMS_SCOREREGIONBUILDER_H
#define ATTNFUSE_LIB_TRANSFORMS_SCOREREGIONBUILDER_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attnfuse {

/// Builds the region of attnfuse.attention from score modifiers on tensors,
/// which are given in their order of evaluation.
///
/// A bias of -inf masks its key whatever the other modifiers do (spec S4), and
/// finite biases never do, however low (S5). Both are seen to once, after the
/// last modifier.
class ScoreRegionBuilder {
public:
  ScoreRegionBuilder(MLIRContext *context, Location loc);

  void add(AlibiOp op);
  void add(AdditiveBiasOp op);

  /// The tensors that the region reads, each once.
  ArrayRef<Value> getOperands() const { return operands.getArrayRef(); }

  /// Moves the body into `region`; leaves it empty if nothing was added. The
  /// builder is not usable afterwards.
  void finish(Region &region);

private:
  /// The region's argument for `tensor`.
  Value getArgumentFor(Value tensor);
  Value getArgument(unsigned arg) { return body->getArgument(arg); }
  Value createF32Constant(double value);
  /// The element of `tensor`, if it is a constant splat; else null.
  Value createSplat(Value tensor);
  /// The slope of the region's head.
  Value readSlope(AlibiOp op);
  /// The bias of the region's element, in f32.
  Value readBias(AdditiveBiasOp op);

  std::unique_ptr<Block> body;
  OpBuilder builder;
  Location loc;
  llvm::SetVector<Value> operands;
  Value score;
  /// i1: a bias of -inf has masked this key. Null before the first bias.
  Value masked;
  /// A finite bias may be so low that a sum or the softmax overflows.
  bool mayOverflow = false;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_TRANSFORMS_SCOREREGIONBUILDER_H
