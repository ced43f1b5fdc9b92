//===- Assembler.cpp - PTX to cubin by ptxas ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Compiler/Compiler.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
llvm::Expected<std::string> findAssembler() {
  if (const char *home = std::getenv("CUDA_HOME")) {
    SmallString<128> bin(home);
    llvm::sys::path::append(bin, "bin");
    if (auto found = llvm::sys::findProgramByName("ptxas", {bin}))
      return *found;
  }
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  return llvm::createStringError(
      "no ptxas in $CUDA_HOME/bin or $PATH; install the CUDA toolkit, or emit "
      "PTX, which the driver assembles itself");
}

/// A file with a unique name that is removed at the end of its scope.
struct TemporaryFile {
  SmallString<128> path;
  ~TemporaryFile() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }

  llvm::Error create(StringRef suffix, StringRef contents) {
    int descriptor;
    if (std::error_code code = llvm::sys::fs::createTemporaryFile(
            "attnfuse", suffix, descriptor, path))
      return llvm::createStringError(code, "cannot create a temporary file: " +
                                               code.message());
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    os << contents;
    os.close();
    if (!os.has_error())
      return llvm::Error::success();
    std::error_code code = os.error();
    os.clear_error();
    return llvm::createStringError(code, "cannot write " + path + ": " +
                                             code.message());
  }
};

llvm::Expected<std::string> readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(buffer.getError(),
                                   "cannot read " + path + ": " +
                                       buffer.getError().message());
  return (*buffer)->getBuffer().str();
}
} // namespace

llvm::Expected<std::string> mlir::attnfuse::assemblePTX(StringRef ptx,
                                                        StringRef chip) {
  llvm::Expected<std::string> assembler = findAssembler();
  if (!assembler)
    return assembler.takeError();

  TemporaryFile input, output, log;
  for (auto [file, suffix, contents] :
       {std::tuple(&input, "ptx", ptx),
        std::tuple(&output, "cubin", StringRef()),
        std::tuple(&log, "log", StringRef())})
    if (llvm::Error error = file->create(suffix, contents))
      return std::move(error);

  std::string arch = ("-arch=" + chip).str();
  std::string failure;
  int code = llvm::sys::ExecuteAndWait(
      *assembler, {*assembler, arch, "-o", output.path, input.path},
      /*Env=*/std::nullopt, {std::nullopt, log.path.str(), log.path.str()},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &failure);
  if (code == 0)
    return readFile(output.path);
  llvm::Expected<std::string> messages = readFile(log.path);
  if (messages)
    failure += *messages;
  else
    llvm::consumeError(messages.takeError());
  return llvm::createStringError(*assembler +
                                 " does not assemble the PTX for " + chip +
                                 ": " + StringRef(failure).rtrim());
}
