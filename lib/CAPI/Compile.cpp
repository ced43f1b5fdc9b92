//===- Compile.cpp - C interface of the compiler --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Compile.h"
#include "Errors.h"
#include "ModuleText.h"
#include "attnfuse/Compiler/Compiler.h"
#include "attnfuse/Support/MakeError.h"
#include "attnfuse/Target/TargetInfo.h"

using namespace mlir;
using namespace mlir::attnfuse;

struct AttnfuseCompiled {
  CompiledModule module;
};

static std::optional<EmitLevel> getEmitLevel(AttnfuseEmit emit) {
  switch (emit) {
  case ATTNFUSE_EMIT_FUSED:
    return EmitLevel::Fused;
  case ATTNFUSE_EMIT_SCHEDULE:
    return EmitLevel::Schedule;
  case ATTNFUSE_EMIT_NVVM:
    return EmitLevel::NVVM;
  case ATTNFUSE_EMIT_LLVM:
    return EmitLevel::LLVM;
  case ATTNFUSE_EMIT_PTX:
    return EmitLevel::PTX;
  case ATTNFUSE_EMIT_CUBIN:
    return EmitLevel::Cubin;
  case ATTNFUSE_EMIT_LINALG:
    return EmitLevel::Linalg;
  }
  return std::nullopt;
}

static llvm::Error compile(StringRef source, const char *target,
                           AttnfuseEmit emit, DiagnosticSink &sink,
                           CompiledModule &result) {
  std::optional<EmitLevel> level = getEmitLevel(emit);
  if (!level)
    return makeError("expected an AttnfuseEmit, got " + Twine(int(emit)));
  ModuleText text;
  if (llvm::Error error = text.parse(source, sink))
    return error;
  CompileOptions options;
  options.target = target ? target : "";
  options.emit = *level;
  options.listener = [&](const Diagnostic &diagnostic) {
    sink.add(diagnostic);
  };
  llvm::Expected<CompiledModule> compiled =
      compileModule(text.getModule(), options);
  if (!compiled)
    return compiled.takeError();
  result = std::move(*compiled);
  return llvm::Error::success();
}

extern "C" {

AttnfuseCompiled *attnfuseCompile(const char *source, size_t length,
                                  const char *target, AttnfuseEmit emit,
                                  AttnfuseDiagnosticHandler handler,
                                  void *userData) {
  initializeTargets();
  DiagnosticSink sink(handler, userData);
  auto compiled = std::make_unique<AttnfuseCompiled>();
  if (llvm::Error error = runGuarded([&] {
        return compile({source, length}, target, emit, sink, compiled->module);
      })) {
    sink.fail(std::move(error));
    return nullptr;
  }
  return compiled.release();
}

const char *attnfuseCompiledGetCode(const AttnfuseCompiled *compiled) {
  return compiled->module.code.c_str();
}

size_t attnfuseCompiledGetCodeSize(const AttnfuseCompiled *compiled) {
  return compiled->module.code.size();
}

const char *attnfuseCompiledGetManifest(const AttnfuseCompiled *compiled) {
  return compiled->module.manifest.c_str();
}

const char *attnfuseCompiledGetExplanation(const AttnfuseCompiled *compiled) {
  return compiled->module.explanation.c_str();
}

void attnfuseCompiledDestroy(AttnfuseCompiled *compiled) { delete compiled; }

const char *attnfuseListTargets(void) {
  static const std::string names = listKnownTargets();
  return names.c_str();
}

const char *attnfuseFindChip(int capability) {
  std::string chip = findChip(capability);
  for (const TargetInfo &target : getKnownTargets())
    if (target.name == chip)
      return target.name.c_str();
  setLastError("no chip of the table runs on compute capability " +
               std::to_string(capability) + "; expected 80 or more");
  return nullptr;
}

} // extern "C"
