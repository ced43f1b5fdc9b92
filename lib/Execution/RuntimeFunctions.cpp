//===- RuntimeFunctions.cpp - What compiled code calls by name
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeFunctions.h"

#include "BufferArena.h"
#include "attnfuse/Support/HostTensor.h"
#include <cstring>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace mlir::attnfuse {
namespace {

//===----------------------------------------------------------------------===//
// memref.copy between layouts
//===----------------------------------------------------------------------===//

/// A descriptor of a memref: allocated, aligned, offset, sizes, strides.
struct Descriptor {
  char *allocated, *aligned;
  int64_t offset;
  int64_t sizesAndStrides[];
};

/// An unranked memref, as the lowering passes it.
struct UnrankedDescriptor {
  int64_t rank;
  Descriptor *descriptor;
};

/// Copies dimensions `dim` to `rank` of what starts at `source`.
void copyFrom(int64_t dim, int64_t rank, const int64_t *sizes,
              const int64_t *sourceStrides, const int64_t *targetStrides,
              const char *source, char *target, int64_t elementSize) {
  if (dim == rank) {
    std::memcpy(target, source, elementSize);
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    copyFrom(dim + 1, rank, sizes, sourceStrides, targetStrides,
             source + i * sourceStrides[dim] * elementSize,
             target + i * targetStrides[dim] * elementSize, elementSize);
}

void copy(int64_t elementSize, const UnrankedDescriptor *source,
          const UnrankedDescriptor *target) {
  int64_t rank = source->rank;
  const Descriptor &from = *source->descriptor, &to = *target->descriptor;
  copyFrom(0, rank, from.sizesAndStrides, from.sizesAndStrides + rank,
           to.sizesAndStrides + rank, from.aligned + from.offset * elementSize,
           to.aligned + to.offset * elementSize, elementSize);
}

//===----------------------------------------------------------------------===//
// 16-bit floats on x86-64, passed in the low bits of a vector register
//===----------------------------------------------------------------------===//

#ifdef __x86_64__
float extendHalf(__m128i half) {
  return ::attnfuse::fromF16(uint16_t(_mm_cvtsi128_si32(half)));
}

/// Rounds `value`, a float or a double, once.
template <::attnfuse::ElementType type, typename Float>
__m128i truncate(Float value) {
  ::attnfuse::HostTensor scalar(type, {});
  scalar.setFloat(0, value);
  uint16_t bits;
  std::memcpy(&bits, scalar.data(), sizeof(bits));
  return _mm_cvtsi32_si128(bits);
}
#endif

} // namespace

void forEachRuntimeFunction(
    llvm::function_ref<void(llvm::StringRef name, void *address)> define) {
  auto add = [&](llvm::StringRef name, auto *function) {
    define(name, reinterpret_cast<void *>(function));
  };
  add("_mlir_memref_to_llvm_alloc", &BufferArena::allocate);
  add("_mlir_memref_to_llvm_free", &BufferArena::release);
  add("memrefCopy", &copy);
#ifdef __x86_64__
  add("__extendhfsf2", &extendHalf);
  using ::attnfuse::ElementType;
  add("__truncsfhf2", &truncate<ElementType::F16, float>);
  add("__truncdfhf2", &truncate<ElementType::F16, double>);
  add("__truncsfbf2", &truncate<ElementType::BF16, float>);
  add("__truncdfbf2", &truncate<ElementType::BF16, double>);
#endif
}

} // namespace mlir::attnfuse
