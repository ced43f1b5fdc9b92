/*===- attnfuse-c/Host.h - What generated host code calls ----------*- C
-*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* What convert-attnfuse-launch-to-runtime calls, in libattnfuse_host.so and  *|
|* in AttnFuse::AttnFuseHost. Needs NVIDIA's driver, which is loaded by the   *|
|* first launch, and no MLIR. Kernels are loaded by the first launch on each  *|
|* device. Any number of threads may call.                                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_HOST_H
#define ATTNFUSE_C_HOST_H

#include "attnfuse-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface, AttnfuseValue included: host code that was
   generated for one runs with every library of the same. */
#define ATTNFUSE_HOST_VERSION 1
ATTNFUSE_EXPORT int attnfuseHostGetVersion(void);

/* What is compiled for one target: one global of the generated code for each
   gpu.binary, which lives as long as the process. */
typedef struct {
  /* PTX or cubin, and its manifest (docs/manifest.md), with their bytes. */
  const char *code;
  int64_t codeSize;
  const char *manifest;
  int64_t manifestSize;
  /* Null at first; the library's. */
  void *loaded;
} AttnfuseHostImage;

/* Launches `function` of the manifest on the device whose context is current
   on the calling thread (device 0 if there is none), in the order of `stream`,
   a CUstream as a number (0: the legacy default stream), without waiting for
   it. What is wrong goes to the error handler, and nothing is launched then. */
ATTNFUSE_EXPORT void attnfuseHostLaunch(AttnfuseHostImage *image,
                                        const char *function, int64_t stream,
                                        const AttnfuseValue *arguments,
                                        int64_t numArguments,
                                        const AttnfuseValue *results,
                                        int64_t numResults);

/* Called on the thread of the launch. */
typedef void (*AttnfuseHostErrorHandler)(const char *message, void *userData);

/* Sets what is called on an error, for all threads. Null stands for the
   default, which prints the message and aborts. Where a handler returns, the
   program goes on without the launch. */
ATTNFUSE_EXPORT void
attnfuseHostSetErrorHandler(AttnfuseHostErrorHandler handler, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_HOST_H */
