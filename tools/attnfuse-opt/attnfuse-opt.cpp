//===- attnfuse-opt.cpp - The optimizer driver ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Driver.h"
#include "attnfuse/InitAll.h"
#include "attnfuse/Support/OutputFiles.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

int main(int argc, char **argv) {
  mlir::attnfuse::startDriver("attnfuse-opt");
  mlir::registerAllPasses();
  mlir::attnfuse::registerAllPasses();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllGPUToLLVMIRTranslations(registry);
  mlir::attnfuse::registerAllDialects(registry);
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "attnfuse optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (output == "-" || config.shouldShowDialects() || config.shouldListPasses())
    return mlir::attnfuse::finish(mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry)));

  llvm::InitLLVM init(argc, argv);
  attnfuse::OutputFiles files;
  files.protectInput(input);
  if (auto status = files.add(output); !status.ok())
    return mlir::attnfuse::fail(status.error().message);
  std::string message, text;
  std::unique_ptr<llvm::MemoryBuffer> source =
      mlir::openInputFile(input, &message);
  if (!source)
    return mlir::attnfuse::fail(message);
  llvm::raw_string_ostream os(text);
  if (failed(mlir::MlirOptMain(os, std::move(source), registry, config)))
    return EXIT_FAILURE;
  if (auto status = files.write(output, text); !status.ok())
    return mlir::attnfuse::fail(status.error().message);
  if (auto status = files.commit(); !status.ok())
    return mlir::attnfuse::fail(status.error().message);
  return mlir::attnfuse::finish(EXIT_SUCCESS);
}
