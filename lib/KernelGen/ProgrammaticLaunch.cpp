//===- ProgrammaticLaunch.cpp - Kernels that start early ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ProgrammaticLaunch.h"

using namespace mlir;
using namespace mlir::attnfuse;

void kernelgen::releaseDependents(KernelBuilder &b) {
  b.inlineAsm({}, "griddepcontrol.launch_dependents;", "~{memory}", {});
}

void kernelgen::waitForPreviousKernel(KernelBuilder &b) {
  b.inlineAsm({}, "griddepcontrol.wait; fence.proxy.async;", "~{memory}", {});
}
