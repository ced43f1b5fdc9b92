//===- OutputFiles.h - Files written together or not at all -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_SUPPORT_OUTPUTFILES_H
#define ATTNFUSE_SUPPORT_OUTPUTFILES_H

#include "attnfuse/Support/Result.h"
#include <string_view>
#include <vector>

namespace attnfuse {

/// The outputs of one run of a tool. Contents go to a temporary beside each
/// output, and commit() renames them all; before it, and after an error, every
/// output is what it was before. A special file has no temporary and gets its
/// contents in commit(): what is no regular file (a pipe, /dev/null), and what
/// stands for a descriptor (/dev/stdout, /dev/fd/N), which may be of a
/// regular file but goes on from where others have written to it.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  /// Removes the temporaries.
  ~OutputFiles();

  /// A path that no output may be, under any name, if it is a regular file.
  void protectInput(const std::string &path);

  /// Declares an output. Fails on an empty path, on a folder, on an input, and
  /// on a file that is an output already, under this or another name.
  Status add(const std::string &path);

  /// Sets the contents of a declared output.
  Status write(const std::string &path, std::string_view contents);

  /// Puts every output that has contents in its place, or none. A pipe that
  /// was written to cannot be undone.
  Status commit();

  /// True if `path` leads to a special file.
  static bool isSpecial(const std::string &path);

private:
  struct File {
    std::string path;
    /// Without links and dots, to tell whether two paths are one file.
    std::string target;
    /// Where contents go until commit(), unless the file is special.
    std::string temporary;
    bool special = false;
    std::string specialContents;
  };
  Status writeSpecialFiles();
  /// The number of a declared output.
  size_t find(const std::string &path) const;

  std::vector<std::string> inputs;
  std::vector<File> files;
};

} // namespace attnfuse

#endif // ATTNFUSE_SUPPORT_OUTPUTFILES_H
