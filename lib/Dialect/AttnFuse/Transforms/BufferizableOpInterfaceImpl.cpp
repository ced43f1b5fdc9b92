//===- BufferizableOpInterfaceImpl.cpp - Launches on memrefs --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/Transforms/BufferizableOpInterfaceImpl.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::bufferization;

namespace {
/// A launch overwrites all of its outs, which may be any buffer that it does
/// not read.
struct LaunchModel
    : DstBufferizableOpInterfaceExternalModel<LaunchModel, LaunchOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !cast<LaunchOp>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto launch = cast<LaunchOp>(op);
    if (launch.hasPureBufferSemantics())
      return success();
    rewriter.setInsertionPoint(op);
    auto getBuffers = [&](OperandRange values,
                          SmallVectorImpl<Value> &buffers) -> LogicalResult {
      for (Value value : values) {
        if (!isa<TensorType>(value.getType())) {
          buffers.push_back(value);
          continue;
        }
        FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        buffers.push_back(*buffer);
      }
      return success();
    };
    SmallVector<Value> inputs, outs;
    if (failed(getBuffers(launch.getInputs(), inputs)) ||
        failed(getBuffers(launch.getOuts(), outs)))
      return failure();
    auto lowered = LaunchOp::create(rewriter, op->getLoc(), TypeRange(),
                                    launch.getKernelAttr(), inputs, outs,
                                    launch.getStream());
    lowered->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    replaceOpWithBufferizedValues(rewriter, op, outs);
    return success();
  }
};

/// An attention has no buffers of its own: it is a launch before, or linalg.
struct AttentionModel
    : BufferizableOpInterface::ExternalModel<AttentionModel, AttentionOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
  bool bufferizesToAllocation(Operation *, Value) const { return true; }

  LogicalResult bufferize(Operation *op, RewriterBase &,
                          const BufferizationOptions &,
                          BufferizationState &) const {
    return op->emitOpError(
        "expected it to be lowered before bufferization: run attnfuse-outline "
        "and convert-attnfuse-to-gpu, or convert-attnfuse-to-linalg");
  }
};
} // namespace

void mlir::attnfuse::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnFuseDialect *) {
    LaunchOp::attachInterface<LaunchModel>(*context);
    AttentionOp::attachInterface<AttentionModel>(*context);
    context->loadDialect<BufferizationDialect>();
  });
}
