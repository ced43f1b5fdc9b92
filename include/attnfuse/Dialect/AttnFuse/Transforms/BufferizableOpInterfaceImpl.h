//===- BufferizableOpInterfaceImpl.h - Launches on memrefs ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::attnfuse {

/// For one-shot bufferization: `attnfuse.launch` takes memrefs in the place of
/// tensors.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
