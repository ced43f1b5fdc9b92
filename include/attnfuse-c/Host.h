/*===- attnfuse-c/Host.h - What generated host code calls ---------*- C -*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The functions that convert-attnfuse-launch-to-runtime calls. They load     *|
|* kernels through the CUDA driver, which is looked up at run time, on the    *|
|* first launch on each device, and may be called by any number of threads.   *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_HOST_H
#define ATTNFUSE_C_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ATTNFUSE_HOST_EXPORTED
#define ATTNFUSE_HOST_EXPORTED __attribute__((visibility("default")))
#endif

/** The version of this interface. Host code generated for a version runs with
 * every library of that version. */
#define ATTNFUSE_HOST_VERSION 1
ATTNFUSE_HOST_EXPORTED int32_t attnfuseHostGetVersion(void);

/** What is compiled for one target. Generated code has one such global for each
 * gpu.binary; it lives as long as the process. */
typedef struct AttnFuseHostImage {
  /** PTX or cubin, and its manifest (docs/manifest.md), with their bytes. */
  const char *code;
  int64_t codeSize;
  const char *manifest;
  int64_t manifestSize;
  /** Null at first; the library's. */
  void *loaded;
} AttnFuseHostImage;

/** Element types of operands. */
enum {
  ATTNFUSE_HOST_F16 = 0,
  ATTNFUSE_HOST_BF16 = 1,
  ATTNFUSE_HOST_F32 = 2,
  ATTNFUSE_HOST_I32 = 4,
  ATTNFUSE_HOST_I64 = 5
};

/** Launches `function` of the manifest on the device whose context is current
 * on the calling thread (device 0 if there is none), in the order of `stream`,
 * a CUstream as a number (0: the default stream), without waiting for it.
 *
 * `operands` are `numWords` words: the function's arguments, then its results,
 * one after the other. A tensor is its rank, its element type, the address in
 * device memory of its first element, its sizes, and its strides in elements. A
 * scalar is -1 and its value.
 *
 * What is wrong goes to the error handler, and nothing is launched then. */
ATTNFUSE_HOST_EXPORTED void
attnfuseHostLaunch(AttnFuseHostImage *image, const char *function,
                   int64_t stream, int64_t numWords, const int64_t *operands);

/** Called with a message that ends without a newline. */
typedef void (*AttnFuseHostErrorHandler)(const char *message, void *userData);

/** Sets what is called on an error, for all threads. Null stands for the
 * default, which prints the message and aborts. A handler that returns has the
 * program go on without the launch. */
ATTNFUSE_HOST_EXPORTED void
attnfuseHostSetErrorHandler(AttnFuseHostErrorHandler handler, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_HOST_H */
