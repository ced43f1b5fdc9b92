//===- RunSetup.h - What the flags of attnfuse-run ask for ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNNER_RUNSETUP_H
#define ATTNFUSE_LIB_RUNNER_RUNSETUP_H

#include "CudaDevice.h"
#include "attnfuse/Runner/Inputs.h"
#include "attnfuse/Runner/Runner.h"
#include "attnfuse/Support/OutputFiles.h"

namespace mlir::attnfuse {

llvm::Expected<std::unique_ptr<Device>> openDevice(const RunOptions &options);
/// Opens the device of the flags, which must be a GPU.
llvm::Expected<std::unique_ptr<CudaDevice>>
openCudaDevice(const RunOptions &options);

llvm::Expected<std::vector<func::FuncOp>>
selectFunctions(ModuleOp module, const RunOptions &options);

/// A copy of the module that holds nothing but `function`.
OwningOpRef<ModuleOp> isolate(ModuleOp module, StringRef function);

/// What is given for the functions' calls, but for --dims.
llvm::Expected<InputSpec> readInputs(ArrayRef<func::FuncOp> functions,
                                     const RunOptions &options);

/// "NAME=FILE" of --output to (NAME, FILE).
llvm::Expected<std::map<std::string, std::string>>
parseOutputs(const RunOptions &options);

/// Declares outputs, none of which may be a file that the flags read.
llvm::Error declareOutputs(const RunOptions &options,
                           ArrayRef<std::string> outputs,
                           ::attnfuse::OutputFiles &files);

/// --dims, one call each; one call without where there are none.
std::vector<std::string> getCalls(const RunOptions &options);

/// "[B=2, N=64] ": the sizes that the function leaves open.
std::string describeSizes(const DimensionClasses &classes,
                          const DimensionSizes &sizes);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_LIB_RUNNER_RUNSETUP_H
