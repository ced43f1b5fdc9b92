//===- HostTensor.h - Dense tensors in host memory --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tools read, generate, execute on and compare. Links no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_HOSTTENSOR_H
#define ATTNFUSE_SUPPORT_HOSTTENSOR_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnfuse {

enum class ElementType { F16, BF16, F32, F64, I32, I64 };

/// Bytes of one element.
size_t getElementSize(ElementType type);
/// "f16", "bf16", "f32", "f64", "i32", "i64".
std::string_view getElementName(ElementType type);
std::optional<ElementType> parseElementType(std::string_view name);

/// Conversions of the 16-bit types; to 16 bits they round to nearest even,
/// overflow to infinity and keep NaN.
float fromF16(uint16_t bits);
uint16_t toF16(float value);
float fromBF16(uint16_t bits);
uint16_t toBF16(float value);

/// A row-major, contiguous tensor. A scalar has an empty shape and one element.
class HostTensor {
public:
  HostTensor() = default;
  /// All elements zero.
  HostTensor(ElementType type, std::vector<int64_t> shape);

  ElementType getType() const { return type; }
  const std::vector<int64_t> &getShape() const { return shape; }
  int64_t getRank() const { return shape.size(); }
  int64_t getNumElements() const;
  /// Strides in elements.
  std::vector<int64_t> getStrides() const;

  std::byte *data() { return bytes.data(); }
  const std::byte *data() const { return bytes.data(); }
  size_t getNumBytes() const { return bytes.size(); }

  /// Element at a row-major index, as the widest type of its kind. Storing
  /// rounds a float once to the element type.
  double getFloat(int64_t index) const;
  void setFloat(int64_t index, double value);
  int64_t getInt(int64_t index) const;
  void setInt(int64_t index, int64_t value);

private:
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

} // namespace attnfuse

#endif // ATTNFUSE_SUPPORT_HOSTTENSOR_H
