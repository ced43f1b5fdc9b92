//===- Normalizers.h - The fused op's names of normalisers ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_NORMALIZERS_H
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_NORMALIZERS_H

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"

namespace mlir::attnfuse {

/// The normalizer of attnfuse.attention that is attnfuse.relu_attention with
/// `norm`.
inline Normalizer getNormalizer(ReluNorm norm) {
  switch (norm) {
  case ReluNorm::Sum:
    return Normalizer::ReluSum;
  case ReluNorm::Length:
    return Normalizer::ReluLength;
  case ReluNorm::None:
    return Normalizer::ReluNone;
  }
  llvm_unreachable("a case for every norm");
}

/// The other way round; nothing for softmax.
inline std::optional<ReluNorm> getReluNorm(Normalizer normalizer) {
  for (ReluNorm norm : {ReluNorm::Sum, ReluNorm::Length, ReluNorm::None})
    if (getNormalizer(norm) == normalizer)
      return norm;
  return std::nullopt;
}

} // namespace mlir::attnfuse

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_NORMALIZERS_H
