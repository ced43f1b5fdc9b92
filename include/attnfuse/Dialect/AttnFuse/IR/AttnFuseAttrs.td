//===- AttnFuseAttrs.td - Enums and attributes -------------*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEATTRS_TD
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEATTRS_TD

include "attnfuse/Dialect/AttnFuse/IR/AttnFuseDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class AttnFuse_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::attnfuse";
  let genSpecializedAttr = 0;
}

def AttnFuse_Pairing : AttnFuse_Enum<"Pairing", "which features of a row rotate together", [
  I32EnumAttrCase<"Half", 0, "half">,
  I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;

def AttnFuse_Alignment : AttnFuse_Enum<"Alignment", "where the diagonal of the score matrix lies", [
  I32EnumAttrCase<"TopLeft", 0, "top_left">,
  I32EnumAttrCase<"BottomRight", 1, "bottom_right">]>;

def AttnFuse_ReluNorm : AttnFuse_Enum<"ReluNorm", "what relu_attention divides by", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Length", 1, "length">,
  I32EnumAttrCase<"None", 2, "none">]>;

def AttnFuse_Normalizer : AttnFuse_Enum<"Normalizer", "how scores become weights", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"ReluSum", 1, "relu_sum">,
  I32EnumAttrCase<"ReluLength", 2, "relu_length">,
  I32EnumAttrCase<"ReluNone", 3, "relu_none">]>;

def AttnFuse_RowOrder : AttnFuse_Enum<"RowOrder", "in what order a thread normalizes its two rows", [
  I32EnumAttrCase<"Joint", 0, "joint">,
  I32EnumAttrCase<"Rows", 1, "rows">]>;

def AttnFuse_ProductWait : AttnFuse_Enum<"ProductWait", "where a step waits for the weighted sum of the step before", [
  I32EnumAttrCase<"End", 0, "end">,
  I32EnumAttrCase<"BetweenRows", 1, "between_rows">,
  I32EnumAttrCase<"WithNextKey", 2, "with_next_key">]>;

def AttnFuse_RotationWay : AttnFuse_Enum<"RotationWay", "where rows are rotated", [
  I32EnumAttrCase<"Fused", 0, "fused">,
  I32EnumAttrCase<"Split", 1, "split">,
  I32EnumAttrCase<"BySize", 2, "by_size">]>;

def AttnFuse_PairingAttr : EnumAttr<AttnFuse_Dialect, AttnFuse_Pairing, "pairing">;
def AttnFuse_AlignmentAttr : EnumAttr<AttnFuse_Dialect, AttnFuse_Alignment, "alignment">;
def AttnFuse_ReluNormAttr : EnumAttr<AttnFuse_Dialect, AttnFuse_ReluNorm, "relu_norm">;
def AttnFuse_NormalizerAttr : EnumAttr<AttnFuse_Dialect, AttnFuse_Normalizer, "normalizer">;

//===----------------------------------------------------------------------===//
// Structured parts of attnfuse.attention
//===----------------------------------------------------------------------===//

class AttnFuse_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<AttnFuse_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def AttnFuse_RotationAttr : AttnFuse_Attr<"Rotation", "rotation"> {
  let summary = "a rotation of q or k before the product";
  let description = [{
    `pairing` names the features that rotate together and `offset` the constant
    part of the position: the table row of sequence index i is
    `i + offset (+ the run-time offset)`, or `positions[i] + offset`.

    Example: `#attnfuse.rotation<half, offset = 0>`
  }];
  let parameters = (ins EnumParameter<AttnFuse_Pairing>:$pairing, "int64_t":$offset);
  let assemblyFormat = "`<` $pairing `,` `offset` `=` $offset `>`";
}

def AttnFuse_RotationPlanAttr : AttnFuse_Attr<"RotationPlan", "rotation_plan"> {
  let summary = "where q and k are rotated";
  let description = [{
    `fused`: in the attention's kernel, each tile on its way to the product.
    `split`: by a kernel of its own before it, once, through memory.
    `by_size`: whichever is expected to be quicker at the sizes of a launch.
    Written by `attnfuse-decide-rotation`; without a plan all is fused. The plan
    for what is not rotated has no effect. Where the sizes are static, the plan
    says what either way was expected to add to the time, in picoseconds.

    Example: `#attnfuse.rotation_plan<q = fused, k = split>`
  }];
  let parameters = (ins EnumParameter<AttnFuse_RotationWay>:$q,
                        EnumParameter<AttnFuse_RotationWay>:$k,
                        OptionalParameter<"std::optional<int64_t>">:$k_fused_ps,
                        OptionalParameter<"std::optional<int64_t>">:$k_split_ps);
  let assemblyFormat = [{
    `<` `q` `=` $q `,` `k` `=` $k (`,` `k_fused_ps` `=` $k_fused_ps^)?
    (`,` `k_split_ps` `=` $k_split_ps^)? `>`
  }];
  let builders = [AttrBuilder<(ins "RotationWay":$q, "RotationWay":$k), [{
    return $_get($_ctxt, q, k, std::nullopt, std::nullopt);
  }]>];
  let genVerifyDecl = 1;
}

def AttnFuse_BandAttr : AttnFuse_Attr<"Band", "band"> {
  let summary = "a mask that keeps a band of diagonals";
  let description = [{
    Key j is visible to query i iff `i + off - left <= j <= i + off + right`,
    with `off = Nkv - Nq` for `bottom_right` and 0 for `top_left`. A bound that
    is absent is unbounded. `causal` is the band with `right = 0`.

    Example: `#attnfuse.band<bottom_right, left = 255, right = 0>`
  }];
  let parameters = (ins
    EnumParameter<AttnFuse_Alignment>:$align,
    OptionalParameter<"std::optional<int64_t>">:$left,
    OptionalParameter<"std::optional<int64_t>">:$right);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def AttnFuse_BlocksAttr : AttnFuse_Attr<"Blocks", "blocks"> {
  let summary = "block sizes of a block-sparse mask";
  let description = [{
    Queries per query block and keys per key block.

    Example: `#attnfuse.blocks<64x64>`
  }];
  let parameters = (ins "int64_t":$queryBlock, "int64_t":$keyBlock);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def AttnFuse_BandArrayAttr : TypedArrayAttrBase<AttnFuse_BandAttr, "array of bands">;

//===----------------------------------------------------------------------===//
// Machine and schedule
//===----------------------------------------------------------------------===//

def AttnFuse_TargetAttr : AttnFuse_Attr<"Target", "target"> {
  let summary = "the machine that code is generated for";
  let description = [{
    A row of the table of machines (`attnfuse/Target/TargetInfo.h`), written by
    its name (`#attnfuse.target<"h200">`), or by name with the facts that
    differ from the table's row
    (`#attnfuse.target<"h200", {sm_count = 114 : i64}>`). A chip name such as
    `sm_86` is the name of a row too. A machine that is not in the table states
    its chip, and what differs from the chip's row
    (`#attnfuse.target<"mine", {chip = "sm_86", sm_count = 46 : i64}>`). Facts
    have the names of the fields in that header, in snake case.
  }];
  let parameters = (ins StringRefParameter<"machine name">:$name,
                        OptionalParameter<"::mlir::DictionaryAttr">:$facts);
  let assemblyFormat = "`<` $name (`,` $facts^)? `>`";
  let genVerifyDecl = 1;
}

def AttnFuse_PipelineAttr : AttnFuse_Attr<"Pipeline", "pipeline"> {
  let summary = "how the warps of one block share the work where they have roles";
  let description = [{
    One warpgroup loads tiles through the tensor memory accelerator; the others
    each compute 64 rows with warpgroup-wide products, the product of a step
    with V overlapping the normalization of the next.

    - `stages`: K tiles, and V tiles, in flight.
    - `ping_pong`: warpgroups take turns on the tensor cores.
    - `row_order`: `rows` normalizes one of a thread's two rows after the other,
      so that the second row's maxima hide behind the first row's exponentials;
      `joint` takes both maxima first.
    - `partial_sums`, `partial_maxima`: accumulators per row, 1 to 4: fewer
      dependent instructions for a few more registers.
    - `skip_rescale`: the output is rescaled only when a row's reference has
      grown by more than 2^8, which the final division makes good.
    - `product_wait`: where a step waits for the product with V: at its `end`,
      `between_rows`, or `with_next_key`, between the rows together with the
      wait for the next key tile. The latter two need `row_order = rows`.

    Example: `#attnfuse.pipeline<stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = with_next_key>`
  }];
  let parameters = (ins "int64_t":$stages, "bool":$pingPong,
                        EnumParameter<AttnFuse_RowOrder>:$rowOrder,
                        "int64_t":$partialSums, "int64_t":$partialMaxima,
                        "bool":$skipRescale,
                        EnumParameter<AttnFuse_ProductWait>:$productWait);
  let assemblyFormat = [{
    `<` `stages` `=` $stages `,` `ping_pong` `=` $pingPong `,`
    `row_order` `=` $rowOrder `,` `partial_sums` `=` $partialSums `,`
    `partial_maxima` `=` $partialMaxima `,` `skip_rescale` `=` $skipRescale `,`
    `product_wait` `=` $productWait `>`
  }];
  let genVerifyDecl = 1;
}

def AttnFuse_ScheduleAttr : AttnFuse_Attr<"Schedule", "schedule"> {
  let summary = "how one attention kernel is tiled and pipelined";
  let description = [{
    `tile_m` query rows and `tile_n` keys per step of one thread block, whose
    rows are computed by `warps` warps, each of which owns `tile_m / warps`
    whole rows. `q_in_registers` keeps the query fragments in registers over the
    key loop instead of reading them from shared memory in every step. With a
    `pipeline` the block has four more warps, which load, and `tile_m` is 16
    rows for each of the `warps`, which compute in groups of four.

    `key_splits` is over how many blocks the keys of a query tile are spread,
    whose parts a second kernel combines: 1 is never, up to 1024 are as many at
    every launch, and 0, the default, leaves it to a model of the sizes of a
    launch (docs/Architecture.md).

    `packed_heads`, 1 by default, is how many query heads that share a key head
    a tile has rows of, `tile_m / packed_heads` each: every key tile is then
    loaded once for all of them. It divides the number of query heads for each
    key head, and needs a pipeline. A head then has 16 or 32 rows of the tile,
    or a multiple of 64.

    What follows `q_in_registers` may come in any order, each once.

    `stages`, 1 to 4 and 1 if absent, are the K tiles, and the V tiles, that a
    block without a `pipeline` has room for (a pipeline states its own). With 1,
    V is loaded under the product of its step with K, and the next K under the
    rest of the step; with more, both are loaded `stages - 1` steps ahead.

    Example: `#attnfuse.schedule<tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>`
  }];
  let parameters = (ins "int64_t":$tileM, "int64_t":$tileN, "int64_t":$warps,
                        "bool":$qInRegisters,
                        DefaultValuedParameter<"int64_t", "0">:$keySplits,
                        DefaultValuedParameter<"int64_t", "1">:$packedHeads,
                        DefaultValuedParameter<"int64_t", "1">:$stages,
                        OptionalParameter<"::mlir::attnfuse::PipelineAttr">:$pipeline);
  let assemblyFormat = [{
    `<` `tile_m` `=` $tileM `,` `tile_n` `=` $tileN `,` `warps` `=` $warps `,`
    `q_in_registers` `=` $qInRegisters ``
    custom<ScheduleOptions>($keySplits, $packedHeads, $stages, $pipeline) `>`
  }];
  let genVerifyDecl = 1;
}

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEATTRS_TD
