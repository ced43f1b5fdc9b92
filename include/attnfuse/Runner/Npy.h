//===- Npy.h - NumPy's file format ------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors in .npy files: f2, f4, f8, i4, i8 for f16, f32, f64, i32, i64. NumPy
// has no bf16, so that a file of u2 (or of the void type of two bytes, which
// extension types are saved as) holds the bits of bf16.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNNER_NPY_H
#define ATTNFUSE_RUNNER_NPY_H

#include "attnfuse/Support/HostTensor.h"
#include "attnfuse/Support/Result.h"

namespace attnfuse {

/// Reads versions 1 to 3, in C or Fortran order; the tensor is row-major.
/// Errors name the file and what is wrong with it.
Result<HostTensor> readNpy(const std::string &path);

/// Reads the contents of a file. `name` stands in error messages.
Result<HostTensor> parseNpy(std::string_view bytes, const std::string &name);

/// The contents of a file of version 1 (2 if the header is too long for it).
std::string formatNpy(const HostTensor &tensor);

} // namespace attnfuse

#endif // ATTNFUSE_RUNNER_NPY_H
