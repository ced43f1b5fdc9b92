/*===- Support.h - What the C interface shares ---------------------*- C -*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The C interface of libattnfuse.so: plain types and opaque handles. No      *|
|* exception and no MLIR type crosses it. Every function may be called from   *|
|* any thread; a handle may be used by several threads at once, and is        *|
|* destroyed when none uses it any more.                                      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_SUPPORT_H
#define ATTNFUSE_C_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#define ATTNFUSE_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: grows when a function or enumerator is added,
   and a program that was compiled against a lower one keeps running. */
#define ATTNFUSE_API_VERSION 1
ATTNFUSE_EXPORT int attnfuseGetApiVersion(void);

/* The version of the compiler, "0.1.0". */
ATTNFUSE_EXPORT const char *attnfuseGetVersion(void);

/* A name of this very build, in hexadecimal digits: what is compiled by another
   build may differ. Empty where the linker left none. */
ATTNFUSE_EXPORT const char *attnfuseGetBuildId(void);

/* Why the last function that failed on this thread failed: one lower-case
   clause that names the thing and the remedy. Lives until the next failure on
   this thread. */
ATTNFUSE_EXPORT const char *attnfuseGetLastError(void);

typedef enum {
  ATTNFUSE_F16 = 0,
  ATTNFUSE_BF16 = 1,
  ATTNFUSE_F32 = 2,
  ATTNFUSE_F64 = 3,
  ATTNFUSE_I32 = 4,
  ATTNFUSE_I64 = 5
} AttnfuseElementType;

#define ATTNFUSE_MAX_RANK 8

/* A tensor that the caller owns, or the value of a scalar argument. */
typedef struct {
  /* The first element: in host memory for a CpuFunction, in device memory for a
     Kernel. May be null where there are no elements. */
  void *data;
  /* What a scalar argument takes. Such an argument reads nothing else. */
  int64_t scalar;
  /* An AttnfuseElementType. */
  int32_t type;
  /* 0 to ATTNFUSE_MAX_RANK: how many of the sizes and strides count. */
  int32_t rank;
  int64_t sizes[ATTNFUSE_MAX_RANK];
  /* In elements, of any sign on the host, 0 or more on a device. Those of a
     dimension of size 1 mean nothing. */
  int64_t strides[ATTNFUSE_MAX_RANK];
} AttnfuseValue;

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_SUPPORT_H */
