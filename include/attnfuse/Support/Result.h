//===- Result.h - A value or an error message -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the libraries that link neither LLVM nor MLIR (Support, Runtime).
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_RESULT_H
#define ATTNFUSE_SUPPORT_RESULT_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace attnfuse {

/// What went wrong, as one lower-case clause that names the thing and the
/// remedy.
struct Error {
  std::string message;
};

/// A T, or why there is none.
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Error error) : failure(std::move(error)) {}

  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return assert(value), *value; }
  const T &operator*() const { return assert(value), *value; }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }
  /// The error; only valid if there is no value.
  const Error &error() const { return failure; }

private:
  std::optional<T> value;
  Error failure;
};

/// Success, or why not.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}

  bool ok() const { return !failure; }
  const Error &error() const { return *failure; }

private:
  std::optional<Error> failure;
};

} // namespace attnfuse

#endif // ATTNFUSE_SUPPORT_RESULT_H
