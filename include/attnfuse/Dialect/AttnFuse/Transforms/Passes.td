//===- Passes.td - Transforms of the attnfuse dialect ------*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_TD
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFuseFusePass : Pass<"attnfuse-fuse", "::mlir::func::FuncOp"> {
  let summary = "fuse each chain of building blocks into one attnfuse.attention";
  let description = [{
    Starts from every `attnfuse.weighted_sum` and follows its operands up
    through the normaliser, the score ops in any order, the scaled product and
    at most one rotation of q and of k. Score modifiers become the score
    region, in their order; masks become bands and a block pattern, which is
    legal in any order because masking is sticky (spec S3). A chain that does
    not fuse is left as it is, with a remark at the op that is in the way.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFused", "fused", "chains fused">,
    Statistic<"numMissed", "missed", "chains left unfused">];
}

def AttnFuseExpandAlibiSlopePass : Pass<"attnfuse-expand-alibi-slope"> {
  let summary = "expand attnfuse.alibi_slope to arithmetic";
  let description = [{
    Rewrites every `attnfuse.alibi_slope` to arith and math ops on the head
    index and the number of heads. Both conversions do so by themselves.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def AttnFuseGuardDivisionPass : Pass<"attnfuse-guard-division"> {
  let summary = "make integer divisions of numbers that are not known harmless";
  let description = [{
    Where a divisor may be 0, or the quotient too large, divides by 1 instead:
    the result is one of those that the division may have, and the host's
    processor does not trap. Applies to scalars, so tensors go to loops before.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def AttnFuseSelectSchedulePass : Pass<"attnfuse-select-schedule"> {
  let summary = "choose tiles and warps for every attnfuse.attention";
  let description = [{
    Reads the machine from the `attnfuse.target` attribute of the module, or of
    an op around it, and writes a `schedule` attribute on each `attnfuse.attention` that
    has none. A schedule that is given is checked against the machine's limits
    instead; one that does not fit is an error that names the limit, as is an
    attention of types or sizes that no GPU kernel takes.
  }];
}

def AttnFuseDecideRotationPass : Pass<"attnfuse-decide-rotation"> {
  let summary = "decide where q and k are rotated";
  let description = [{
    Writes a `rotation_plan` on every `attnfuse.attention` with a rotation that
    has none. q is rotated in the kernel, once per tile. For k, the time that
    either way adds is predicted for the machine in `attnfuse.target`
    (docs/rotation-calculus.md): static sizes decide here, and the plan holds
    both predictions; dynamic ones leave the choice to each launch (`by_size`). A remark says what was decided. With
    `way` the plan is given instead: `split` is for k, `split_both` for q, too.
  }];
  let options = [Option<"way", "way", "std::string", "\"auto\"",
                        "auto, fused, split or split_both">];
}

def AttnFuseSplitRotationPass : Pass<"attnfuse-split-rotation"> {
  let summary = "make split rotations ops of their own";
  let description = [{
    Moves every rotation that the `rotation_plan` of an `attnfuse.attention`
    splits, or leaves to the size, into an `attnfuse.rope` before it. For
    compilers that fuse the rotation into whatever computes q or k;
    `convert-attnfuse-to-gpu` splits by itself.
  }];
}

#endif // ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_TD
