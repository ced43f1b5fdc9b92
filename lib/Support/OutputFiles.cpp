//===- OutputFiles.cpp - Files written together or not at all -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Support/OutputFiles.h"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unistd.h>

using namespace attnfuse;
namespace fs = std::filesystem;

/// More links than these are taken for a circle.
static constexpr int kMaxLinks = 40;

static Error cannotWrite(const std::string &path, const std::string &why) {
  return Error{"cannot write '" + path + "': " + why};
}

static std::string getSystemMessage() {
  return errno ? std::strerror(errno) : "unknown error";
}

/// Whether `path` is that of a descriptor of this process, open or not.
static bool isInDescriptors(const fs::path &path) {
  std::error_code code;
  fs::path descriptors = fs::canonical("/proc/self/fd", code);
  return !code && fs::canonical(path.parent_path(), code) == descriptors;
}

/// The file or descriptor that `path` leads to, which need not exist.
static fs::path followLinks(const std::string &path) {
  std::error_code code;
  fs::path at = fs::absolute(path, code);
  for (int link = 0; link < kMaxLinks; ++link) {
    if (isInDescriptors(at) || !fs::is_symlink(at, code))
      break;
    at = at.parent_path() / fs::read_symlink(at, code);
  }
  return at;
}

/// `path` without links and dots, as far as it exists.
static std::string resolve(const std::string &path) {
  std::error_code code;
  fs::path resolved = fs::weakly_canonical(followLinks(path), code);
  return code ? path : resolved.string();
}

/// The descriptor that `path` stands for, as /dev/stdout and /dev/fd/N do.
static std::optional<int> getDescriptor(const std::string &path) {
  fs::path end = followLinks(path);
  if (!isInDescriptors(end))
    return std::nullopt;
  std::string name = end.filename();
  int descriptor;
  auto [rest, code] =
      std::from_chars(name.data(), name.data() + name.size(), descriptor);
  if (code != std::errc() || rest != name.data() + name.size())
    return std::nullopt;
  return descriptor;
}

static Status writeDescriptor(int descriptor, std::string_view contents,
                              const std::string &path) {
  while (!contents.empty()) {
    ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written >= 0)
      contents.remove_prefix(size_t(written));
    else if (errno != EINTR)
      return cannotWrite(path, getSystemMessage());
  }
  return {};
}

static Status writeFile(const std::string &file, std::string_view contents,
                        const std::string &path) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  stream.write(contents.data(), std::streamsize(contents.size()));
  stream.close();
  if (!stream)
    return cannotWrite(path, getSystemMessage());
  return {};
}

OutputFiles::~OutputFiles() {
  std::error_code code;
  for (const File &file : files)
    if (!file.special)
      fs::remove(file.temporary, code);
}

bool OutputFiles::isSpecial(const std::string &path) {
  std::error_code code;
  fs::file_status status = fs::status(path, code);
  return (fs::exists(status) && !fs::is_regular_file(status) &&
          !fs::is_directory(status)) ||
         getDescriptor(path);
}

void OutputFiles::protectInput(const std::string &path) {
  std::error_code code;
  if (fs::is_regular_file(path, code))
    inputs.push_back(path);
}

Status OutputFiles::add(const std::string &path) {
  if (path.empty())
    return Error{"expected the name of a file to write, got ''"};
  std::error_code code;
  if (fs::is_directory(path, code))
    return cannotWrite(path, "it is a folder");
  File file{path, path, "", isSpecial(path), {}};
  if (!file.special) {
    for (const std::string &input : inputs)
      if (fs::equivalent(path, input, code))
        return Error{"'" + path +
                     "' is an input and would be overwritten; choose another "
                     "output"};
    file.target = resolve(path);
    for (const File &other : files)
      if (other.target == file.target)
        return Error{"expected a file for each output, got '" + other.path +
                     "' and '" + path + "', which are one"};
    file.temporary = file.target + ".tmp" + std::to_string(::getpid());
  }
  files.push_back(std::move(file));
  return {};
}

size_t OutputFiles::find(const std::string &path) const {
  auto file = std::find_if(files.begin(), files.end(),
                           [&](const File &file) { return file.path == path; });
  assert(file != files.end() && "an output that was not declared");
  return file - files.begin();
}

Status OutputFiles::write(const std::string &path, std::string_view contents) {
  File &file = files[find(path)];
  if (!file.special)
    return writeFile(file.temporary, contents, path);
  file.specialContents = contents;
  return {};
}

Status OutputFiles::writeSpecialFiles() {
  for (const File &file : files)
    if (!file.specialContents.empty()) {
      std::optional<int> descriptor = getDescriptor(file.path);
      Status status =
          descriptor
              ? writeDescriptor(*descriptor, file.specialContents, file.path)
              : writeFile(file.path, file.specialContents, file.path);
      if (!status.ok())
        return status;
    }
  return {};
}

Status OutputFiles::commit() {
  if (Status status = writeSpecialFiles(); !status.ok())
    return status;
  struct Replaced {
    std::string target, backup;
  };
  std::vector<Replaced> done;
  std::error_code ignored;
  for (const File &file : files) {
    if (file.special || !fs::exists(file.temporary, ignored))
      continue;
    // What is replaced is kept until the last output is in its place.
    std::error_code code;
    Replaced replaced{file.target, ""};
    if (fs::exists(file.target, ignored)) {
      replaced.backup = file.temporary + ".old";
      fs::rename(file.target, replaced.backup, code);
    }
    if (!code) {
      fs::rename(file.temporary, file.target, code);
      done.push_back(replaced);
    }
    if (!code)
      continue;
    for (const Replaced &undo : done) {
      fs::remove(undo.target, ignored);
      if (!undo.backup.empty())
        fs::rename(undo.backup, undo.target, ignored);
    }
    return cannotWrite(file.path, code.message());
  }
  for (const Replaced &replaced : done)
    if (!replaced.backup.empty())
      fs::remove(replaced.backup, ignored);
  return {};
}
