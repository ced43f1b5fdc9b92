//===- Passes.td - Transforms of the attnfuse dialect ------*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_TD
#define ATTNFUSE_DIALECT_ATTNFUSE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFuseSimplifyPass : Pass<"attnfuse-simplify", "::mlir::func::FuncOp"> {
  let summary = "canonicalize functions that hold ops of the dialect";
  let description = [{
    What `canonicalize` does, which `attnfuse-fuse` expects before it, for
    functions in which there is an op of the dialect other than
    `attnfuse.launch`. All others are left as they are.
  }];
}

def AttnFuseOutlinePass : Pass<"attnfuse-outline", "::mlir::ModuleOp"> {
  let summary = "move each attnfuse.attention to a function that is launched";
  let description = [{
    Each `attnfuse.attention`, wherever it stands, becomes a private function
    of its own, with the op's operands as arguments, and an `attnfuse.launch`
    of it. Operands that are dense or integer constants go along, as does an
    `attnfuse.rope` that serves the op alone. The function
    has the name of the one around the op, of which characters that PTX does
    not allow are replaced by `_`, with `_attention_` and the first number that
    makes it unique. Names by `attnfuse.name` go along too. The launch is on the
    stream that an argument with `attnfuse.stream` of the function around it
    names, or on the default stream.

    Results go to `tensor.empty`, which bufferization can replace by the place
    where a result is needed (`eliminate-empty-tensors`).
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numOutlined", "outlined", "attentions outlined">];
}

def AttnFuseFusePass : Pass<"attnfuse-fuse", "::mlir::func::FuncOp"> {
  let summary = "fuse each chain of building blocks into one attnfuse.attention";
  let description = [{
    Starts from every `attnfuse.weighted_sum` and follows its operands up
    through the normaliser, the score ops in any order, the scaled product and
    at most one rotation of q and of k. Score modifiers become the score
    region, in their order; masks become bands and a block pattern, which is
    legal in any order because masking is sticky (spec S3). A chain that does
    not fuse is left as it is, with a remark at the op that is in the way.

    The fused op keeps the locations of the chain's ops, and their attributes of
    other dialects; where two ops have one of the same name, that of the later
    op. Each chain is also counted, and reported as an optimization remark of
    the category `attnfuse-fuse`: `mlir-opt --remarks-filter=attnfuse-fuse`
    prints the hits and the misses.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFused", "fused", "chains fused">,
    Statistic<"numMissed", "missed", "chains left unfused">];
}

def AttnFuseReportFusionPass : Pass<"attnfuse-report-fusion", "::mlir::func::FuncOp"> {
  let summary = "report which attentions are fused, and why others are not";
  let description = [{
    Changes nothing. Counts each `attnfuse.attention` as a hit and each
    `attnfuse.weighted_sum`, where a chain ends, as a miss: as a remark for each
    miss with its reason and one for each function with its counts, as the
    optimization remarks of `attnfuse-fuse`, and as statistics
    (`--mlir-pass-statistics`, where LLVM was built with them).
  }];
  let statistics = [
    Statistic<"numHits", "hits", "attentions that are one op">,
    Statistic<"numMisses", "misses", "chains that are not">];
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
    attention of types or sizes that no GPU kernel takes. `key-splits` becomes
    the `key_splits` of every schedule that leaves it open.
  }];
  let options = [Option<"keySplits", "key-splits", "int64_t", "0",
                        "blocks that share a query tile's keys: 0 by model, 1 never">];
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
  let dependentDialects = ["::mlir::attnfuse::AttnFuseDialect"];
  let options = [Option<"way", "way", "::mlir::attnfuse::RotationChoice",
                        "::mlir::attnfuse::RotationChoice::Auto",
                        "auto, fused, split or split_both", "getRotationChoices()">];
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
