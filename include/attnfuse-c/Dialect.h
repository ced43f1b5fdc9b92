/*===- attnfuse-c/Dialect.h - The dialect in MLIR's C API ----------*- C
-*-===*\
|*                                                                            *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* For programs that use MLIR through mlir-c: AttnFuse::AttnFuseCAPIDialect.  *|
|* Unlike the rest of attnfuse-c, which knows no MLIR, it is for one version  *|
|* of MLIR, the one that it was built with.                                   *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTNFUSE_C_DIALECT_H
#define ATTNFUSE_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mlirGetDialectHandle__attnfuse__(): registers or loads the dialect alone. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(AttnFuse, attnfuse);

/* Adds the dialect, the dialects that its passes make, and the interfaces and
   translations that its pipelines call. A context is to have them before it
   parses what the pipelines are run on. */
MLIR_CAPI_EXPORTED void
attnfuseRegisterAllDialects(MlirDialectRegistry registry);

/* Registers the passes and pipelines by name, for mlirParsePassPipeline. May be
   called several times; not from several threads at once. */
MLIR_CAPI_EXPORTED void attnfuseRegisterAllPasses(void);

#ifdef __cplusplus
}
#endif

#endif /* ATTNFUSE_C_DIALECT_H */
