/*===- Runtime.h - Compiled kernels on a device --------------------*- C
-*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Needs NVIDIA's driver, which is loaded by the first call; without one the  *|
|* calls fail with an error that says so. All work goes to a device's primary *|
|* context, the one that the CUDA runtime and PyTorch use, whatever context   *|
|* is current; the caller's is current again afterwards.                      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_RUNTIME_H
#define ATTNFUSE_C_RUNTIME_H

#include "attnfuse-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device of the context that is current on the calling thread. */
#define ATTNFUSE_CURRENT_DEVICE (-1)

/* The compute capability of a device (ten times the major plus the minor
   number), which attnfuseFindChip takes; -1 for failure. */
ATTNFUSE_EXPORT int attnfuseDeviceGetCapability(int device);

/* A function with its kernels loaded on a device. */
typedef struct AttnfuseKernel AttnfuseKernel;

/* Loads `image`, PTX or cubin of `imageSize` bytes, and looks up `function` in
   its manifest. Null for failure; the error tells what does not match. */
ATTNFUSE_EXPORT AttnfuseKernel *
attnfuseKernelLoad(int device, const char *image, size_t imageSize,
                   const char *manifest, const char *function);
ATTNFUSE_EXPORT void attnfuseKernelDestroy(AttnfuseKernel *);

/* Launches on `stream`, a CUstream or cudaStream_t of the device (null: the
   legacy default stream), in its order and without waiting for it; it can be
   captured into a graph. All is checked before the first launch. Returns 0 for
   success; otherwise the last error names the argument. */
ATTNFUSE_EXPORT int attnfuseKernelLaunch(const AttnfuseKernel *, void *stream,
                                         const AttnfuseValue *arguments,
                                         size_t numArguments,
                                         const AttnfuseValue *results,
                                         size_t numResults);

/* Launches of one kernel on tensors of one kind, for callers who count host
   time: types, sizes, strides and scalars are those of the values here, where
   `data` must be valid too, and a launch only says where the tensors are. The
   kernel may be destroyed before. One thread at a time may use it. Null for
   failure. */
typedef struct AttnfuseLaunch AttnfuseLaunch;
ATTNFUSE_EXPORT AttnfuseLaunch *
attnfuseKernelBind(const AttnfuseKernel *, const AttnfuseValue *arguments,
                   size_t numArguments, const AttnfuseValue *results,
                   size_t numResults);
ATTNFUSE_EXPORT void attnfuseLaunchDestroy(AttnfuseLaunch *);

/* As attnfuseKernelLaunch, on tensors at `addresses`: those of the arguments,
   then of the results, one for each value that was bound. That of a scalar is
   not looked at. */
ATTNFUSE_EXPORT int attnfuseLaunchRun(AttnfuseLaunch *, void *stream,
                                      const uint64_t *addresses);

/* Some launches need memory beside their tensors, for what one kernel hands to
   the next. They take it from a pool of their own, in the order of the stream;
   a caller who has a better place asks for the size in bytes, -1 for failure,
   and gives an address that is a multiple of 256. Launches that overlap in time
   must not share it. */
ATTNFUSE_EXPORT int64_t attnfuseLaunchGetWorkspaceSize(const AttnfuseLaunch *);
ATTNFUSE_EXPORT int attnfuseLaunchRunInWorkspace(AttnfuseLaunch *, void *stream,
                                                 const uint64_t *addresses,
                                                 uint64_t workspace);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_RUNTIME_H */
