//===- Npy.cpp - NumPy's file format --------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Runner/Npy.h"
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

using namespace attnfuse;

namespace {
constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyType {
  std::string_view code;
  ElementType type;
};
// The first entry of a type is what is written.
constexpr NpyType kTypes[] = {
    {"f2", ElementType::F16},  {"f4", ElementType::F32},
    {"f8", ElementType::F64},  {"i4", ElementType::I32},
    {"i8", ElementType::I64},  {"u2", ElementType::BF16},
    {"V2", ElementType::BF16},
};

struct Header {
  ElementType type = ElementType::F32;
  bool isFortranOrder = false;
  std::vector<int64_t> shape;
};

/// Reads the header: a Python literal of a dictionary with the keys descr,
/// fortran_order and shape, in any order.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  Result<Header> parse() {
    bool hasType = false, hasOrder = false, hasShape = false;
    if (!consume("{"))
      return malformed("a dictionary");
    while (!consume("}")) {
      std::optional<std::string_view> key = parseString();
      if (!key || !consume(":"))
        return malformed("a key");
      Status status;
      if (*key == "descr") {
        status = parseType();
        hasType = true;
      } else if (*key == "fortran_order") {
        status = parseOrder();
        hasOrder = true;
      } else if (*key == "shape") {
        status = parseShape();
        hasShape = true;
      } else {
        return malformed("descr, fortran_order or shape");
      }
      if (!status.ok())
        return status.error();
      if (!consume(",") && peek() != '}')
        return malformed("a comma");
    }
    if (!hasType || !hasOrder || !hasShape)
      return malformed("descr, fortran_order and shape");
    return header;
  }

private:
  static Error malformed(std::string_view expected) {
    return {"has a malformed header: expected " + std::string(expected)};
  }

  void skipSpace() {
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest[0])))
      rest.remove_prefix(1);
  }
  char peek() {
    skipSpace();
    return rest.empty() ? '\0' : rest[0];
  }
  bool consume(std::string_view token) {
    skipSpace();
    if (rest.substr(0, token.size()) != token)
      return false;
    rest.remove_prefix(token.size());
    return true;
  }

  std::optional<std::string_view> parseString() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      return std::nullopt;
    size_t end = rest.find(quote, 1);
    if (end == rest.npos)
      return std::nullopt;
    std::string_view text = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return text;
  }

  Status parseType() {
    std::optional<std::string_view> descr = parseString();
    if (!descr || descr->size() < 2)
      return malformed("a simple type");
    char order = (*descr)[0];
    std::string_view code = descr->substr(1);
    for (const NpyType &known : kTypes)
      if (known.code == code &&
          (order == '<' || (order == '|' && code == "V2"))) {
        header.type = known.type;
        return {};
      }
    return Error{"has elements of type '" + std::string(*descr) +
                 "': expected <f2, <f4, <f8, <i4, <i8, or <u2 for bf16"};
  }

  Status parseOrder() {
    header.isFortranOrder = consume("True");
    if (!header.isFortranOrder && !consume("False"))
      return malformed("True or False");
    return {};
  }

  Status parseShape() {
    if (!consume("("))
      return malformed("a shape");
    while (!consume(")")) {
      if (!std::isdigit(static_cast<unsigned char>(peek())))
        return malformed("a size");
      int64_t size = 0;
      for (; !rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0]));
           rest.remove_prefix(1)) {
        if (size > (int64_t(1) << 48))
          return malformed("a size below 2^48");
        size = 10 * size + (rest[0] - '0');
      }
      header.shape.push_back(size);
      if (!consume(",") && peek() != ')')
        return malformed("a comma");
    }
    return {};
  }

  std::string_view rest;
  Header header;
};

/// Bytes of the data, if they are not absurdly many.
std::optional<uint64_t> countBytes(const Header &header) {
  uint64_t count = getElementSize(header.type);
  for (int64_t size : header.shape)
    if (size == 0)
      return 0;
  for (int64_t size : header.shape)
    if (__builtin_mul_overflow(count, uint64_t(size), &count) ||
        count > (uint64_t(1) << 60))
      return std::nullopt;
  return count;
}

/// Column-major data to row-major.
void reorder(const HostTensor &tensor, const char *source, std::byte *target) {
  size_t width = getElementSize(tensor.getType());
  const std::vector<int64_t> &shape = tensor.getShape();
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t to = 0, end = tensor.getNumElements(); to < end; ++to) {
    int64_t from = 0;
    for (size_t dim = shape.size(); dim-- > 0;)
      from = from * shape[dim] + index[dim];
    std::memcpy(target + to * width, source + from * width, width);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

std::string getSystemMessage() { return std::strerror(errno); }
} // namespace

Result<HostTensor> attnfuse::parseNpy(std::string_view bytes,
                                      const std::string &name) {
  auto fail = [&](const std::string &problem) {
    return Error{"'" + name + "' " + problem};
  };
  if (bytes.substr(0, kMagic.size()) != kMagic || bytes.size() < 8)
    return fail("is not an .npy file");
  unsigned version = static_cast<unsigned char>(bytes[6]);
  size_t lengthBytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3)
    return fail("is an .npy file of version " + std::to_string(version) +
                ": expected 1, 2 or 3");
  if (bytes.size() < 8 + lengthBytes)
    return fail("is truncated");
  size_t length = 0;
  for (size_t i = lengthBytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[8 + i]);
  std::string_view rest = bytes.substr(8 + lengthBytes);
  if (rest.size() < length)
    return fail("is truncated in its header");
  Result<Header> header = HeaderParser(rest.substr(0, length)).parse();
  if (!header)
    return fail(header.error().message);
  rest.remove_prefix(length);
  std::optional<uint64_t> needed = countBytes(*header);
  if (!needed || *needed != rest.size())
    return fail(
        (!needed || *needed > rest.size() ? "is truncated" : "is too long") +
        std::string(": its shape needs ") +
        (needed ? std::to_string(*needed) : std::string("too many")) +
        " bytes of data, got " + std::to_string(rest.size()));
  HostTensor tensor(header->type, header->shape);
  if (header->isFortranOrder && header->shape.size() > 1)
    reorder(tensor, rest.data(), tensor.data());
  else if (!rest.empty())
    std::memcpy(tensor.data(), rest.data(), rest.size());
  return tensor;
}

Result<HostTensor> attnfuse::readNpy(const std::string &path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return Error{"cannot read '" + path + "': it is a folder"};
  auto fail = [&] {
    return Error{"cannot read '" + path + "': " + getSystemMessage()};
  };
  // Not through a stream buffer, which throws where reading fails.
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file)
    return fail();
  std::string bytes;
  std::vector<char> part(1 << 16);
  while (size_t count = std::fread(part.data(), 1, part.size(), file.get()))
    bytes.append(part.data(), count);
  if (std::ferror(file.get()))
    return fail();
  return parseNpy(bytes, path);
}

std::string attnfuse::formatNpy(const HostTensor &tensor) {
  std::string_view code;
  for (const NpyType &known : kTypes)
    if (code.empty() && known.type == tensor.getType())
      code = known.code;
  std::string shape;
  for (int64_t size : tensor.getShape())
    shape += std::to_string(size) + ", ";
  if (tensor.getRank() > 1)
    shape.resize(shape.size() - 2);
  else if (tensor.getRank() == 1)
    shape.pop_back();
  std::string header = "{'descr': '<" + std::string(code) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The data is aligned to 64 bytes, and the header ends in a new line.
  bool isLong = header.size() > 60000;
  size_t prefix = kMagic.size() + 2 + (isLong ? 4 : 2);
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += isLong ? '\2' : '\1';
  bytes += '\0';
  for (size_t i = 0; i < (isLong ? 4u : 2u); ++i)
    bytes += char(header.size() >> (8 * i) & 0xff);
  bytes += header;
  bytes.append(reinterpret_cast<const char *>(tensor.data()),
               tensor.getNumBytes());
  return bytes;
}
