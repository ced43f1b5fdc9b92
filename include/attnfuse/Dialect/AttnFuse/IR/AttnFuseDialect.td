//===- AttnFuseDialect.td - The attnfuse dialect -----------*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEDIALECT_TD
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEDIALECT_TD

include "mlir/IR/OpBase.td"

def AttnFuse_Dialect : Dialect {
  let name = "attnfuse";
  let summary = "Attention variants as chains of building blocks";
  let description = [{
    An attention variant is a short chain of building-block ops on ranked
    tensors: rotations of q and k, the scaled product, score modifiers and
    masks in any order, a normaliser, and the weighted sum with v. The
    `attnfuse-fuse` pass turns a chain into one structured
    `attnfuse.attention`, from which one kernel is generated.

    Shapes: q `[B, Hq, Nq, D]`, k `[B, Hkv, Nkv, D]`, v `[B, Hkv, Nkv, Dv]`,
    scores and probabilities `[B, Hq, Nq, Nkv]` in f32, output
    `[B, Hq, Nq, Dv]`. B, the head counts and the lengths may be dynamic; D and
    Dv are static. The numbered rules are in `docs/spec.md`.

    Attributes of other ops: `attnfuse.name` on an argument or a result of a
    function is its name for the tools and the manifest; `attnfuse.stream` on an
    i64 argument makes it the handle of the CUDA stream on which what stands in
    the function is launched; `attnfuse.target` on a module is the machine that its kernels are for; `attnfuse.manifest` on a
    `gpu.module` is its part of the manifest, as JSON, for one function or, as
    an array, for several; on a `gpu.binary` it is the manifest.
  }];
  let cppNamespace = "::mlir::attnfuse";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEDIALECT_TD
