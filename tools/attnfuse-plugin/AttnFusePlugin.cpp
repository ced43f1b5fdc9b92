//===- AttnFusePlugin.cpp - The dialect and passes for any mlir-opt -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One library for --load-dialect-plugin and --load-pass-plugin. It links
// libMLIR.so, as the tool that loads it must: a tool with MLIR's archives
// inside has another registry than the one that is filled here.
//
//===----------------------------------------------------------------------===//

#include "attnfuse/InitAll.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "attnfuse", ATTNFUSE_VERSION,
          [](DialectRegistry *registry) {
            attnfuse::registerAllDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "attnfuse", ATTNFUSE_VERSION,
          [] { attnfuse::registerAllPasses(); }};
}
