//===- ProgrammaticLaunch.h - Kernels that start early ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programmatic dependent launch (PTX ISA, griddepcontrol), from sm_90 on: a
// kernel starts while the one before it in the stream still runs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_PROGRAMMATICLAUNCH_H
#define ATTNFUSE_KERNELGEN_PROGRAMMATICLAUNCH_H

#include "attnfuse/KernelGen/KernelBuilder.h"

namespace mlir::attnfuse::kernelgen {

/// Lets a kernel that is to start early do so; what this one writes it waits
/// for by itself.
void releaseDependents(KernelBuilder &b);
/// Waits for the kernel before this one where it was launched to start early,
/// and makes what that kernel wrote visible to the tensor memory accelerator.
void waitForPreviousKernel(KernelBuilder &b);

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_PROGRAMMATICLAUNCH_H
