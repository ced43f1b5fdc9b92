//===- HostTensor.cpp - Dense tensors in host memory ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Support/HostTensor.h"

#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

using namespace attnfuse;

namespace {
struct ElementInfo {
  ElementType type;
  size_t size;
  std::string_view name;
};
constexpr ElementInfo kElements[] = {
    {ElementType::F16, 2, "f16"}, {ElementType::BF16, 2, "bf16"},
    {ElementType::F32, 4, "f32"}, {ElementType::F64, 8, "f64"},
    {ElementType::I32, 4, "i32"}, {ElementType::I64, 8, "i64"}};

template <typename To, typename From>
To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <typename T>
T load(const std::byte *bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte *bytes, int64_t index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

/// Rounds a double to float so that a later rounding to 16 bits is correct: to
/// odd.
float roundToOdd(double value) {
  float nearest = float(value);
  if (double(nearest) == value || !std::isfinite(nearest) ||
      !std::isfinite(value))
    return nearest;
  uint32_t bits = bitCast<uint32_t>(nearest);
  if (bits & 1)
    return nearest;
  // The even neighbour was chosen: take the odd one on the other side of the
  // value.
  bool awayFromZero = std::abs(double(nearest)) < std::abs(value);
  return bitCast<float>(awayFromZero ? bits + 1 : bits - 1);
}
} // namespace

size_t attnfuse::getElementSize(ElementType type) {
  return kElements[int(type)].size;
}
std::string_view attnfuse::getElementName(ElementType type) {
  return kElements[int(type)].name;
}

std::optional<ElementType> attnfuse::parseElementType(std::string_view name) {
  for (const ElementInfo &element : kElements)
    if (element.name == name)
      return element.type;
  return std::nullopt;
}

float attnfuse::fromBF16(uint16_t bits) {
  return bitCast<float>(uint32_t(bits) << 16);
}

uint16_t attnfuse::toBF16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  if (std::isnan(value))
    return (bits >> 16) | 0x40;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

float attnfuse::fromF16(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  float magnitude;
  if (exponent == 0x1f)
    magnitude = mantissa ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(float(mantissa), -24);
  else
    magnitude = std::ldexp(float(mantissa | 0x400), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t attnfuse::toF16(float value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  float magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7e00;
  if (magnitude >= 65520.0f) // halfway between the largest f16 and 2^16
    return sign | 0x7c00;
  if (magnitude == 0) // of which frexp gives the exponent of 1/2
    return sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  // One unit in the last place is 2^(e-11) for a normal in [2^(e-1), 2^e),
  // 2^-24 below.
  int ulp = std::max(exponent - 11, -24);
  // nearbyint rounds to nearest even; the carry into the exponent is what the
  // sum does.
  int units = int(std::nearbyint(std::ldexp(magnitude, -ulp)));
  return sign | uint16_t(ulp == -24 ? units : ((ulp + 24) << 10) + units);
}

HostTensor::HostTensor(ElementType type, std::vector<int64_t> shape)
    : type(type), shape(std::move(shape)) {
  bytes.resize(getNumElements() * getElementSize(type));
}

int64_t HostTensor::getNumElements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<>());
}

std::vector<int64_t> HostTensor::getStrides() const {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim > 1; --dim)
    strides[dim - 2] = strides[dim - 1] * shape[dim - 1];
  return strides;
}

double HostTensor::getFloat(int64_t index) const {
  switch (type) {
  case ElementType::F16:
    return fromF16(load<uint16_t>(data(), index));
  case ElementType::BF16:
    return fromBF16(load<uint16_t>(data(), index));
  case ElementType::F32:
    return load<float>(data(), index);
  case ElementType::F64:
    return load<double>(data(), index);
  case ElementType::I32:
  case ElementType::I64:
    return double(getInt(index));
  }
  return 0;
}

void HostTensor::setFloat(int64_t index, double value) {
  switch (type) {
  case ElementType::F16:
    return store(data(), index, toF16(roundToOdd(value)));
  case ElementType::BF16:
    return store(data(), index, toBF16(roundToOdd(value)));
  case ElementType::F32:
    return store(data(), index, float(value));
  case ElementType::F64:
    return store(data(), index, value);
  case ElementType::I32:
  case ElementType::I64:
    return setInt(index, int64_t(value));
  }
}

int64_t HostTensor::getInt(int64_t index) const {
  assert((type == ElementType::I32 || type == ElementType::I64) &&
         "an integer tensor");
  return type == ElementType::I32 ? load<int32_t>(data(), index)
                                  : load<int64_t>(data(), index);
}

void HostTensor::setInt(int64_t index, int64_t value) {
  assert((type == ElementType::I32 || type == ElementType::I64) &&
         "an integer tensor");
  if (type == ElementType::I32)
    store(data(), index, int32_t(value));
  else
    store(data(), index, value);
}
