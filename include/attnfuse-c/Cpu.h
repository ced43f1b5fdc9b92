/*===- Cpu.h - Functions that run on the host ----------------------*- C -*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_CPU_H
#define ATTNFUSE_C_CPU_H

#include "attnfuse-c/Compile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function compiled for this machine: exact and slow. It holds all scores of
   a call in memory at once. */
typedef struct AttnfuseCpuFunction AttnfuseCpuFunction;

/* Compiles `function` of the module in `source`. Errors are reported as by
   attnfuseCompile. */
ATTNFUSE_EXPORT AttnfuseCpuFunction *
attnfuseCpuCompile(const char *source, size_t length, const char *function,
                   AttnfuseDiagnosticHandler handler, void *userData);
ATTNFUSE_EXPORT void attnfuseCpuFunctionDestroy(AttnfuseCpuFunction *);

/* Runs on `arguments`, in the function's order, and writes the results, whose
   sizes the caller sets. Everything is checked first: types, sizes among all
   arguments, lists of blocks, positions against rotary tables. Returns 0 for
   success; otherwise the last error names the argument, and the results are as
   they were. */
ATTNFUSE_EXPORT int attnfuseCpuFunctionRun(const AttnfuseCpuFunction *,
                                           const AttnfuseValue *arguments,
                                           size_t numArguments,
                                           const AttnfuseValue *results,
                                           size_t numResults);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_CPU_H */
