/*===- Compile.h - From text to PTX --------------------------------*- C -*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_COMPILE_H
#define ATTNFUSE_C_COMPILE_H

#include "attnfuse-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ATTNFUSE_NOTE = 0,
  ATTNFUSE_WARNING = 1,
  ATTNFUSE_ERROR = 2,
  ATTNFUSE_REMARK = 3
} AttnfuseSeverity;

/* A message about a place in the module: the location of an op, where it has
   one (`loc("variant.py":12:0)`), else of its text. */
typedef struct {
  int32_t severity;
  /* 0 where there is no place; `file` is empty then. */
  int32_t line;
  int32_t column;
  const char *file;
  const char *message;
} AttnfuseDiagnostic;

/* Called on the thread of the call, in order; a note follows the message that
   it is about. What `diagnostic` points to lives as long as the call of this
   function, which must return in the ordinary way. */
typedef void (*AttnfuseDiagnosticHandler)(const AttnfuseDiagnostic *diagnostic,
                                          void *userData);

/* How far to compile. All but PTX and cubin stop for inspection. */
typedef enum {
  /* Fused: MLIR. Needs no target. */
  ATTNFUSE_EMIT_FUSED = 0,
  /* Fused, with schedules: MLIR. */
  ATTNFUSE_EMIT_SCHEDULE = 1,
  /* Kernels in the llvm and nvvm dialects: MLIR. */
  ATTNFUSE_EMIT_NVVM = 2,
  /* Optimized LLVM IR. */
  ATTNFUSE_EMIT_LLVM = 3,
  ATTNFUSE_EMIT_PTX = 4,
  /* PTX assembled by the ptxas of $CUDA_HOME/bin or $PATH. */
  ATTNFUSE_EMIT_CUBIN = 5,
  /* What the CPU executes, as linalg on tensors: MLIR. Needs no target. */
  ATTNFUSE_EMIT_LINALG = 6
} AttnfuseEmit;

/* What came out of a compilation. */
typedef struct AttnfuseCompiled AttnfuseCompiled;

/* Compiles every function of the module in `source`, a text of `length` bytes.
   `target` names a machine or chip of the table ("h200", "sm_80"); null or
   empty: the module's own `attnfuse.target`. `handler` may be null; else it
   gets at least one error where the result is null, and remarks and warnings in
   any case. Where the result is null, the last error has the errors' text. */
ATTNFUSE_EXPORT AttnfuseCompiled *
attnfuseCompile(const char *source, size_t length, const char *target,
                AttnfuseEmit emit, AttnfuseDiagnosticHandler handler,
                void *userData);

/* The strings end with a 0, which their lengths do not count, and live as long
   as the handle. */

/* What `emit` asks for. */
ATTNFUSE_EXPORT const char *attnfuseCompiledGetCode(const AttnfuseCompiled *);
ATTNFUSE_EXPORT size_t attnfuseCompiledGetCodeSize(const AttnfuseCompiled *);
/* The kernels' ABI, JSON (docs/manifest.md); empty but for PTX and cubin. */
ATTNFUSE_EXPORT const char *
attnfuseCompiledGetManifest(const AttnfuseCompiled *);
/* For readers: per function what was fused, the schedule and what it takes from
   the machine, and why a chain was not fused. */
ATTNFUSE_EXPORT const char *
attnfuseCompiledGetExplanation(const AttnfuseCompiled *);
ATTNFUSE_EXPORT void attnfuseCompiledDestroy(AttnfuseCompiled *);

/* The names that `target` may have, joined by ", ". */
ATTNFUSE_EXPORT const char *attnfuseListTargets(void);

/* The newest chip of the table whose code runs on a device of the compute
   capability `capability` (ten times the major plus the minor number), such as
   "sm_90a" for 90. Null, with an error, if there is none. */
ATTNFUSE_EXPORT const char *attnfuseFindChip(int capability);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_COMPILE_H */
