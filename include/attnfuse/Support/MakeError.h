//===- MakeError.h - llvm::Error from a message -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_MAKEERROR_H
#define ATTNFUSE_SUPPORT_MAKEERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace mlir::attnfuse {

/// An error for the user: one lower-case clause that names the thing and the
/// remedy.
inline llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(message.str());
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_SUPPORT_MAKEERROR_H
