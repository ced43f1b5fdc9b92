//===- TranslateToPTX.h - Kernels to LLVM IR and PTX text -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_PTX_TRANSLATETOPTX_H
#define ATTNFUSE_TARGET_PTX_TRANSLATETOPTX_H

#include "attnfuse/Target/TargetInfo.h"

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace mlir::attnfuse {

enum class PTXOutput { LLVMIR, PTX };

/// Translates all gpu.modules of `module` that have a manifest, which hold the
/// llvm and nvvm dialects, into one text for the target's chip. Ops that code
/// generation does not support are refused before they reach it.
llvm::Expected<std::string> translateToPTX(ModuleOp module,
                                           const TargetInfo &target,
                                           PTXOutput output = PTXOutput::PTX);

/// The manifest (docs/manifest.md) of the same gpu.modules.
llvm::Expected<std::string> assembleManifest(ModuleOp module,
                                             const TargetInfo &target);

/// The translations that translateToPTX needs.
void registerPTXTranslations(DialectRegistry &registry);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_TARGET_PTX_TRANSLATETOPTX_H
