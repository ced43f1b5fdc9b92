//===- KernelBuilder.h - Short spellings for kernel code --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op builder for device code. Positions and shared-memory offsets are i32,
// global offsets i64, arithmetic on scores f32. Operations fold as they are
// built. The order of the calls is the order of the instructions that the
// assembler schedules from.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_KERNELGEN_KERNELBUILDER_H
#define ATTNFUSE_KERNELGEN_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attnfuse::kernelgen {

using Values = SmallVector<Value>;

/// The first `count` values, which are dropped from `values`.
inline ValueRange takeFront(ValueRange &values, size_t count) {
  ValueRange front = values.take_front(count);
  values = values.drop_front(count);
  return front;
}

class KernelBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  // Constants. Each is built once, at the start of the block that the builder
  // starts in.
  Value i1(bool value);
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(double value);

  // Integers: both operands i32, or both i64. Comparisons are signed.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value divU(Value a, Value b);
  Value remU(Value a, Value b);
  Value andI(Value a, Value b);
  Value orI(Value a, Value b);
  Value xorI(Value a, Value b);
  Value shl(Value a, Value b);
  Value shrU(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value lt(Value a, Value b);
  Value le(Value a, Value b);
  Value eq(Value a, Value b);
  /// Of an i1.
  Value notI(Value a) { return xorI(a, i1(true)); }
  // The same with a constant of a's type.
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, like(a, b)); }
  Value sub(Value a, int64_t b) { return b == 0 ? a : sub(a, like(a, b)); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : mul(a, like(a, b)); }
  Value divU(Value a, int64_t b) { return b == 1 ? a : divU(a, like(a, b)); }
  Value remU(Value a, int64_t b) { return remU(a, like(a, b)); }
  Value andI(Value a, int64_t b) { return andI(a, like(a, b)); }
  Value xorI(Value a, int64_t b) { return b == 0 ? a : xorI(a, like(a, b)); }
  Value shl(Value a, int64_t b) { return b == 0 ? a : shl(a, like(a, b)); }
  Value shrU(Value a, int64_t b) { return b == 0 ? a : shrU(a, like(a, b)); }
  Value min(Value a, int64_t b) { return min(a, like(a, b)); }
  Value max(Value a, int64_t b) { return max(a, like(a, b)); }
  Value lt(Value a, int64_t b) { return lt(a, like(a, b)); }
  Value eq(Value a, int64_t b) { return eq(a, like(a, b)); }
  /// ceil(a / b) for a >= 0.
  Value ceilDiv(Value a, int64_t b) { return divU(add(a, b - 1), b); }
  Value select(Value condition, Value a, Value b);
  /// Sign extension and truncation; a value that has the width is returned.
  Value toI64(Value a);
  Value toI32(Value a);
  /// A narrower integer as i32, extended with zeros.
  Value extendU(Value a);

  // f32.
  Value addF(Value a, Value b);
  Value subF(Value a, Value b);
  Value mulF(Value a, Value b,
             arith::FastMathFlags flags = arith::FastMathFlags::none);
  Value fma(Value a, Value b, Value c);
  Value negF(Value a);
  /// The larger; of a number and a NaN, the number.
  Value maxF(Value a, Value b);
  /// The larger; NaN if either is.
  Value maxOrNaN(Value a, Value b);
  Value eqF(Value a, Value b);
  /// False if either is NaN.
  Value ltF(Value a, Value b);
  /// ex2.approx.ftz and its relatives: relative error about 2^-22.
  Value exp2(Value a);
  Value log2(Value a);
  Value rcp(Value a);
  /// A signed integer as f32.
  Value fromInt(Value a);
  /// A float of any type as f32, and an f32 rounded to another type.
  Value toF32(Value a);
  Value fromF32(Value a, Type type);
  /// Two f32, rounded to `type` (f16 or bf16), low half first, as one i32.
  Value pack(Value low, Value high, Type type);
  /// The elements of such a word, as f32.
  std::pair<Value, Value> unpack(Value word, Type type);

  // Threads. All counts are of a one-dimensional block.
  Value threadId();
  Value blockId();
  /// Blocks in the grid.
  Value gridSize();
  Value shuffleXor(Value a, int64_t mask);
  /// The i32 that lane 0 has, in all lanes of the warp.
  Value firstLane(Value a);
  void barrier();
  /// Whether the condition holds in any lane of the warp.
  Value anyLane(Value condition);
  /// A barrier that also tells every thread of the block whether any came with
  /// a true condition.
  Value barrierAny(Value condition);

  // Memory; offsets in bytes.
  Type sharedPtrType();
  Type globalPtrType();
  Value offsetPtr(Value ptr, Value bytes);
  Value offsetPtr(Value ptr, int64_t bytes);
  Value load(Type type, Value ptr, int64_t alignment);
  void store(Value value, Value ptr, int64_t alignment);
  Value bitcast(Value a, Type type);
  Value extractElement(Value vector, int64_t index);
  Value makeVector(ValueRange elements);

  /// PTX that is neither moved nor removed. Constraints as in LLVM's inline
  /// assembly; one value per type in `results`.
  Values inlineAsm(TypeRange results, const Twine &text,
                   const Twine &constraints, ValueRange operands);
  /// The same for PTX after which the i32 or f32 `values` count as changed:
  /// returns those to use from here on.
  Values inlineAsmInPlace(const Twine &text, const Twine &clobbers,
                          ValueRange values);
  /// Keeps pure operations on one side of this point. Returns the values to use
  /// from here on.
  Values pin(ValueRange values) { return inlineAsmInPlace("", "", values); }

  // Control flow.
  void ifThen(Value condition, function_ref<void()> body);
  Values ifElse(Value condition, TypeRange types, function_ref<Values()> then,
                function_ref<Values()> otherwise);
  /// for (iv = from; iv < to; iv += step), i32.
  void forLoop(Value from, Value to, int64_t step,
               function_ref<void(Value)> body);
  /// Runs the body while the condition on the carried values holds.
  Values whileLoop(ValueRange init, function_ref<Value(ValueRange)> condition,
                   function_ref<Values(ValueRange)> body);

  /// Runs the body, which updates the carried values, at least once, and again
  /// as long as it returns true.
  Values doWhileLoop(ValueRange init, function_ref<Value(Values &)> body);

private:
  Value constant(TypedAttr value);
  /// A constant of a's type.
  Value like(Value a, int64_t value);

  Block *entry = nullptr;
  llvm::DenseMap<Attribute, Value> constants;
};

/// Names the part of the kernel that is being built, as a location, until it
/// goes out of scope.
class Part {
public:
  Part(KernelBuilder &builder, StringRef name);
  ~Part() { builder.setLoc(saved); }

private:
  KernelBuilder &builder;
  Location saved;
};

} // namespace mlir::attnfuse::kernelgen

#endif // ATTNFUSE_KERNELGEN_KERNELBUILDER_H
