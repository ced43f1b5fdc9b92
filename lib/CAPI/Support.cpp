//===- Support.cpp - Versions and errors of the C interface ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Support.h"
#include "Errors.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include <csetjmp>
#include <elf.h>
#include <link.h>
#include <mutex>

using namespace mlir;
using namespace mlir::attnfuse;

static thread_local std::string lastError;

void mlir::attnfuse::setLastError(std::string message) {
  lastError = std::move(message);
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

static AttnfuseSeverity getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return ATTNFUSE_NOTE;
  case DiagnosticSeverity::Warning:
    return ATTNFUSE_WARNING;
  case DiagnosticSeverity::Error:
    return ATTNFUSE_ERROR;
  case DiagnosticSeverity::Remark:
    return ATTNFUSE_REMARK;
  }
  return ATTNFUSE_ERROR;
}

void DiagnosticSink::add(const Diagnostic &diagnostic) {
  report(getSeverity(diagnostic.getSeverity()), diagnostic.getLocation(),
         diagnostic.str());
  for (const Diagnostic &note : diagnostic.getNotes())
    report(ATTNFUSE_NOTE, note.getLocation(), note.str());
}

void DiagnosticSink::report(AttnfuseSeverity severity, LocationAttr location,
                            const std::string &message) {
  FileLineColLoc place;
  if (location)
    place = location.findInstanceOf<FileLineColLoc>();
  std::string file = place ? place.getFilename().str() : "";
  int32_t line = place ? place.getLine() : 0;
  int32_t column = place ? place.getColumn() : 0;
  if (severity == ATTNFUSE_ERROR ||
      (severity == ATTNFUSE_NOTE && !errors.empty())) {
    errors += errors.empty() ? "" : "\n";
    if (place)
      errors += file + ":" + std::to_string(line) + ":" +
                std::to_string(column) + ": ";
    errors += (severity == ATTNFUSE_NOTE ? "note: " : "") + message;
  }
  if (!handler)
    return;
  AttnfuseDiagnostic diagnostic = {severity, line, column, file.c_str(),
                                   message.c_str()};
  handler(&diagnostic, userData);
}

void DiagnosticSink::fail(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  if (errors.empty())
    report(ATTNFUSE_ERROR, {}, text);
  setLastError(errors);
}

//===----------------------------------------------------------------------===//
// Fatal errors
//===----------------------------------------------------------------------===//

namespace {
struct RecoveryPoint {
  jmp_buf place;
  std::string reason;
};
} // namespace

static thread_local RecoveryPoint *recoveryPoint = nullptr;

/// Without a recovery point LLVM ends the process, as it does by itself.
static void leaveOnFatalError(void *, const char *reason, bool) {
  if (!recoveryPoint)
    return;
  recoveryPoint->reason = reason;
  std::longjmp(recoveryPoint->place, 1);
}

llvm::Error
mlir::attnfuse::runGuarded(llvm::function_ref<llvm::Error()> function) {
  RecoveryPoint point;
  recoveryPoint = &point;
  // Nothing here may live in a register that the jump restores.
  if (setjmp(point.place) != 0) {
    recoveryPoint = nullptr;
    return llvm::createStringError("code generation failed: " + point.reason);
  }
  llvm::Error error = function();
  recoveryPoint = nullptr;
  return error;
}

void mlir::attnfuse::initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::install_fatal_error_handler(leaveOnFatalError);
  });
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

/// Finds the build id among the notes of the loaded object that this function
/// is part of.
static int readBuildId(dl_phdr_info *info, size_t, void *result) {
  auto self = reinterpret_cast<uintptr_t>(&readBuildId);
  bool isOurs = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + header.p_vaddr;
    isOurs |= header.p_type == PT_LOAD && self >= start &&
              self - start < header.p_memsz;
  }
  if (!isOurs)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE)
      continue;
    auto *place =
        reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
    const char *end = place + header.p_memsz;
    while (size_t(end - place) > sizeof(ElfW(Nhdr))) {
      auto *note = reinterpret_cast<const ElfW(Nhdr) *>(place);
      const char *name = place + sizeof(*note);
      const char *contents = name + ((note->n_namesz + 3) & ~3u);
      if (note->n_type == NT_GNU_BUILD_ID)
        *static_cast<std::string *>(result) =
            llvm::toHex(StringRef(contents, note->n_descsz), true);
      place = contents + ((note->n_descsz + 3) & ~3u);
    }
  }
  return 1;
}

extern "C" {

int attnfuseGetApiVersion(void) { return ATTNFUSE_API_VERSION; }

const char *attnfuseGetVersion(void) { return ATTNFUSE_VERSION; }

const char *attnfuseGetBuildId(void) {
  static const std::string id = [] {
    std::string id;
    dl_iterate_phdr(readBuildId, &id);
    return id;
  }();
  return id.c_str();
}

const char *attnfuseGetLastError(void) { return lastError.c_str(); }

} // extern "C"
