//===- OutputFiles.cpp - Files written together or not at all -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Support/OutputFiles.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace attnfuse;
namespace fs = std::filesystem;

static Error cannotWrite(const std::string &path, const std::string &why) {
  return Error{"cannot write '" + path + "': " + why};
}

static std::string getSystemMessage() {
  return errno ? std::strerror(errno) : "unknown error";
}

/// `path` without links and dots, as far as it exists.
static std::string resolve(const std::string &path) {
  std::error_code code;
  fs::path resolved = fs::weakly_canonical(fs::absolute(path, code), code);
  return code ? path : resolved.string();
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
  return fs::exists(status) && !fs::is_regular_file(status) &&
         !fs::is_directory(status);
}

void OutputFiles::protectInput(const std::string &path) {
  std::error_code code;
  if (fs::is_regular_file(path, code))
    inputs.push_back(path);
}

Status OutputFiles::add(const std::string &path) {
  std::error_code code;
  if (fs::is_directory(path, code))
    return cannotWrite(path, "it is a folder");
  File file{path, path, path, isSpecial(path), {}};
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

const std::string &OutputFiles::getTemporary(const std::string &path) const {
  return files[find(path)].temporary;
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
    if (!file.specialContents.empty())
      if (Status status = writeFile(file.path, file.specialContents, file.path);
          !status.ok())
        return status;
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
