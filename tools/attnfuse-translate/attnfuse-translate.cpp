//===- attnfuse-translate.cpp - Modules to PTX, manifest and LLVM IR ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Driver.h"
#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::attnfuse;

static LogicalResult translate(Operation *op, raw_ostream &os,
                               std::string CompiledModule::*part) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError("expected a module, got '") << op->getName() << "'";
  llvm::Expected<CompiledModule> compiled = compileModule(module, {});
  if (!compiled)
    return module.emitError(llvm::toString(compiled.takeError()));
  os << (*compiled).*part;
  return success();
}

static void registerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerCompilerDialects(registry);
}

int main(int argc, char **argv) {
  startDriver("attnfuse-translate");
  registerAllTranslations();
  TranslateFromMLIRRegistration toPTX(
      "attnfuse-to-ptx",
      "functions of building blocks to PTX, for the module's attnfuse.target",
      [](Operation *op, raw_ostream &os) {
        return translate(op, os, &CompiledModule::code);
      },
      registerDialects);
  TranslateFromMLIRRegistration toManifest(
      "attnfuse-to-manifest", "functions of building blocks to their manifest",
      [](Operation *op, raw_ostream &os) {
        return translate(op, os, &CompiledModule::manifest);
      },
      registerDialects);
  return failed(mlirTranslateMain(argc, argv, "attnfuse translation driver\n"));
}
