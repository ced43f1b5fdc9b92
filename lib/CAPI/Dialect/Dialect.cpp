//===- Dialect.cpp - The dialect in MLIR's C API --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Dialect.h"
#include "attnfuse/InitAll.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(AttnFuse, attnfuse,
                                      mlir::attnfuse::AttnFuseDialect)

void attnfuseRegisterAllDialects(MlirDialectRegistry registry) {
  mlir::attnfuse::registerAllDialects(*unwrap(registry));
}

void attnfuseRegisterAllPasses() {
  // MLIR's registry refuses a name that it has.
  static bool once = (mlir::attnfuse::registerAllPasses(), true);
  (void)once;
}
