//===- AttnFuseOps.td - Building blocks and the fused op ---*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEOPS_TD
#define ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEOPS_TD

include "attnfuse/Dialect/AttnFuse/IR/AttnFuseAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class AttnFuse_Op<string opMnemonic, list<Trait> traits = []>
    : Op<AttnFuse_Dialect, opMnemonic, !listconcat(traits, [Pure])>;

//===----------------------------------------------------------------------===//
// Operand types
//===----------------------------------------------------------------------===//

def AttnFuse_Float : AnyTypeOf<[F16, BF16, F32]>;
def AttnFuse_Activation
    : RankedTensorOf<[F16, BF16, F32], [HasAnyRankOfPred<[4]>], "rank-4 tensor">;
def AttnFuse_Scores
    : RankedTensorOf<[F32], [HasAnyRankOfPred<[4]>], "rank-4 tensor">;
def AttnFuse_Lse
    : RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>], "rank-3 tensor">;
def AttnFuse_RotaryTable
    : RankedTensorOf<[F16, BF16, F32], [HasAnyRankOfPred<[2]>], "rank-2 tensor">;
def AttnFuse_Positions
    : RankedTensorOf<[I32, I64], [HasAnyRankOfPred<[1, 2]>], "rank-1 or rank-2 tensor">;
def AttnFuse_Slopes
    : RankedTensorOf<[F32], [HasAnyRankOfPred<[1, 2]>], "rank-1 or rank-2 tensor">;
def AttnFuse_Bias
    : RankedTensorOf<[F16, BF16, F32], [HasAnyRankOfPred<[0, 1, 2, 3, 4]>],
                     "tensor of rank at most 4">;
def AttnFuse_BlockOffsets
    : RankedTensorOf<[I32], [HasAnyRankOfPred<[1, 3]>], "rank-1 or rank-3 tensor">;
def AttnFuse_BlockIndices
    : RankedTensorOf<[I32], [HasAnyRankOfPred<[1]>], "rank-1 tensor">;

//===----------------------------------------------------------------------===//
// Before the product
//===----------------------------------------------------------------------===//

def AttnFuse_RopeOp : AttnFuse_Op<"rope", [
    AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotates pairs of features by position";
  let description = [{
    Rotary position embedding of q or k. The first R features of each row (R is
    twice the tables' second dimension, even and at most D) rotate in pairs
    (x, y) -> (x cos - y sin, y cos + x sin), where the pair of table column c
    is (c, c + R/2) for `half` and (2c, 2c + 1) for `interleaved`; the other
    features pass through. The table row is the position: sequence index +
    `static_offset` + the operand `offset` where given; or, with `positions`
    (`[N]` or `[B, N]`), `positions[.., n]` + `static_offset`. A position
    outside of the tables reads their first or last row (spec S12). Arithmetic
    is in f32 and the result is rounded once.

    Example:
    ```mlir
    %r = attnfuse.rope %x, %cos, %sin half
        : tensor<?x32x?x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
    %s = attnfuse.rope %x, %cos, %sin half offset(%n)
        : tensor<?x32x?x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
    ```
  }];
  let arguments = (ins
    AttnFuse_Activation:$input, AttnFuse_RotaryTable:$cos, AttnFuse_RotaryTable:$sin,
    Optional<I64>:$offset, Optional<AttnFuse_Positions>:$positions,
    AttnFuse_PairingAttr:$pairing, DefaultValuedAttr<I64Attr, "0">:$static_offset);
  let results = (outs AttnFuse_Activation:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin `` $pairing (`offset` `(` $offset^ `)`)?
    (`positions` `(` $positions^ `:` type($positions) `)`)? attr-dict
    `:` type($input) `,` type($cos) `,` type($sin)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def AttnFuse_ScaledDotProductOp : AttnFuse_Op<"scaled_dot_product"> {
  let summary = "scale * q k^T, accumulated in f32";
  let description = [{
    Query head h reads key head h / (Hq / Hkv). Without `scale`, the scale is
    1/sqrt(D).

    Example:
    ```mlir
    %s = attnfuse.scaled_dot_product %q, %k
        : tensor<2x32x?x128xf16>, tensor<2x8x?x128xf16> -> tensor<2x32x?x?xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Activation:$query, AttnFuse_Activation:$key,
                       OptionalAttr<F64Attr>:$scale);
  let results = (outs AttnFuse_Scores:$scores);
  let assemblyFormat = [{
    $query `,` $key attr-dict `:` type($query) `,` type($key) `->` type($scores)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// The `scale` attribute, or 1/sqrt(D).
    double getScaleOrDefault();
  }];
}

//===----------------------------------------------------------------------===//
// Masks and score modifiers
//===----------------------------------------------------------------------===//

class AttnFuse_ScoreOp<string opMnemonic, list<Trait> traits = []>
    : AttnFuse_Op<opMnemonic, !listconcat(traits, [AllTypesMatch<["scores", "result"]>])> {
  let results = (outs AttnFuse_Scores:$result);
  let hasFolder = 1;
}

def AttnFuse_FullOp : AttnFuse_ScoreOp<"full"> {
  let summary = "no mask: every key is visible";
  let description = [{
    Returns its operand; folds away.

    Example:
    ```mlir
    %m = attnfuse.full %s : tensor<1x8x64x64xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores);
  let assemblyFormat = "$scores attr-dict `:` type($scores)";
}

def AttnFuse_CausalOp : AttnFuse_ScoreOp<"causal"> {
  let summary = "masks the keys after the query's own position";
  let description = [{
    Key j is visible to query i iff j <= i + off, with off = Nkv - Nq for
    `bottom_right` and 0 for `top_left`.

    Example:
    ```mlir
    %m = attnfuse.causal %s bottom_right : tensor<1x8x16x64xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores, AttnFuse_AlignmentAttr:$align);
  let assemblyFormat = "$scores `` $align attr-dict `:` type($scores)";
  let hasCanonicalizer = 1;
}

def AttnFuse_SlidingWindowOp : AttnFuse_ScoreOp<"sliding_window"> {
  let summary = "masks the keys outside a window around the query";
  let description = [{
    Key j is visible to query i iff i + off - left <= j <= i + off + right,
    inclusive; an absent bound is unbounded.

    Example:
    ```mlir
    %m = attnfuse.sliding_window %s bottom_right {left = 255, right = 0}
        : tensor<1x8x512x512xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores, AttnFuse_AlignmentAttr:$align,
                       OptionalAttr<I64Attr>:$left, OptionalAttr<I64Attr>:$right);
  let assemblyFormat = "$scores `` $align attr-dict `:` type($scores)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def AttnFuse_BlockSparseOp : AttnFuse_ScoreOp<"block_sparse"> {
  let summary = "masks all but listed blocks of keys";
  let description = [{
    Key j is visible to query i iff key block j / `key_block` is in the list of
    query block i / `query_block`. The lists are in compressed sparse row form:
    the entries of query block r are
    `col_indices[row_offsets[.., r] ... row_offsets[.., r + 1])`, strictly
    increasing. `row_offsets` is `[R + 1]` for one pattern, or
    `[B or 1, Hq or 1, R + 1]` for a pattern per batch entry and head, with
    R = ceil(Nq / `query_block`). Work is proportional to the listed blocks.

    Example:
    ```mlir
    %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 64, key_block = 64}
        : tensor<1x8x512x512xf32>, tensor<9xi32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores, AttnFuse_BlockOffsets:$row_offsets,
                       AttnFuse_BlockIndices:$col_indices,
                       I64Attr:$query_block, I64Attr:$key_block);
  let assemblyFormat = [{
    $scores `,` $row_offsets `,` $col_indices attr-dict
    `:` type($scores) `,` type($row_offsets) `,` type($col_indices)
  }];
  let hasVerifier = 1;
}

def AttnFuse_AlibiOp : AttnFuse_ScoreOp<"alibi"> {
  let summary = "adds a penalty linear in the distance of query and key";
  let description = [{
    score - slope[h] * abs(i + off - j). Slopes are `[Hq]` or `[B, Hq]` in f32;
    without the operand they are the geometric ones of Press et al.
    (arXiv 2108.12409), for any number of heads: with P the largest power of
    two <= Hq, 2^(-8 (h+1) / P) for h < P, then 2^(-4 (2 (h-P) + 1) / P).

    Example:
    ```mlir
    %a = attnfuse.alibi %s bottom_right : tensor<1x12x64x64xf32>
    %b = attnfuse.alibi %s bottom_right slopes(%t : tensor<12xf32>)
        : tensor<1x12x64x64xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores, AttnFuse_AlignmentAttr:$align,
                       Optional<AttnFuse_Slopes>:$slopes);
  let assemblyFormat = [{
    $scores `` $align (`slopes` `(` $slopes^ `:` type($slopes) `)`)? attr-dict
    `:` type($scores)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def AttnFuse_AdditiveBiasOp : AttnFuse_ScoreOp<"additive_bias"> {
  let summary = "adds a broadcast bias; its -inf entries mask";
  let description = [{
    score + bias, the bias broadcast over leading dimensions and those of
    static size 1 as NumPy does. An entry of -inf masks its key whatever the score is; a finite
    entry never does, however small. The bias is never copied to full size.

    Example:
    ```mlir
    %b = attnfuse.additive_bias %s, %bias
        : tensor<2x16x?x?xf32>, tensor<1x16x?x?xbf16>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores, AttnFuse_Bias:$bias);
  let assemblyFormat = "$scores `,` $bias attr-dict `:` type($scores) `,` type($bias)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// Normalisers and the product with v
//===----------------------------------------------------------------------===//

def AttnFuse_SoftmaxOp : AttnFuse_Op<"softmax", [AllTypesMatch<["scores", "probs"]>]> {
  let summary = "row softmax over the visible keys";
  let description = [{
    The optional second result is the natural logarithm of the row's sum of
    exponentials, `[B, Hq, Nq]`. A row without a visible key gives
    probabilities 0 and log-sum-exp -inf.

    Example:
    ```mlir
    %p = attnfuse.softmax %s : tensor<1x8x64x64xf32>
    %q, %lse = attnfuse.softmax %s : tensor<1x8x64x64xf32>, tensor<1x8x64xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores);
  let results = (outs AttnFuse_Scores:$probs, Optional<AttnFuse_Lse>:$lse);
  let assemblyFormat = "$scores attr-dict `:` type($scores) (`,` type($lse)^)?";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def AttnFuse_ReluAttentionOp : AttnFuse_Op<"relu_attention", [
    AllTypesMatch<["scores", "probs"]>]> {
  let summary = "max(score, 0), divided by what `norm` names";
  let description = [{
    `sum`: the row's sum of max(score, 0) (a row whose sum is 0 gives 0);
    `length`: Nkv (Wortsman et al., arXiv 2309.08586); `none`: nothing. A
    masked key has weight 0.

    Example:
    ```mlir
    %p = attnfuse.relu_attention %s sum : tensor<1x8x64x64xf32>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$scores, AttnFuse_ReluNormAttr:$norm);
  let results = (outs AttnFuse_Scores:$probs);
  let assemblyFormat = "$scores `` $norm attr-dict `:` type($scores)";
}

def AttnFuse_WeightedSumOp : AttnFuse_Op<"weighted_sum"> {
  let summary = "probabilities times v";
  let description = [{
    Closes the chain. Query head h reads head h / (Hq / Hkv) of v. A weight of
    0 adds nothing, even where v is not finite. The output has v's element type
    or is f32.

    Example:
    ```mlir
    %o = attnfuse.weighted_sum %p, %v
        : tensor<2x32x?x?xf32>, tensor<2x8x?x128xf16> -> tensor<2x32x?x128xf16>
    ```
  }];
  let arguments = (ins AttnFuse_Scores:$probs, AttnFuse_Activation:$value);
  let results = (outs AttnFuse_Activation:$output);
  let assemblyFormat = [{
    $probs `,` $value attr-dict `:` type($probs) `,` type($value) `->` type($output)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The fused op
//===----------------------------------------------------------------------===//

def AttnFuse_AttentionOp : AttnFuse_Op<"attention", [
    AttrSizedOperandSegments, IsolatedFromAbove]> {
  let summary = "a whole attention variant";
  let description = [{
    What one kernel computes: q and k rotated where a rotation is given; the
    scaled product; the score region, evaluated per element; the masks, which
    are bands and at most one block-sparse pattern; the normaliser; the
    product with v.

    The region's arguments are the scaled score (f32), the indices b, h, i, j
    of batch entry, query head, query and key, the lengths Nq and Nkv and the
    head count Hq (index), and one argument per score operand; it yields the
    new score. An empty region is the identity. A score of -inf masks its key.
    The region uses no value from outside.

    The parts come in this order, and all but q, k, v and the normaliser may be
    left out: `rotate_q` and `rotate_k`, with the pairing, the constant part of
    the position, and in brackets the tables and `offset %n` or
    `positions %p`; `blocks`, with the block sizes, row offsets and column
    indices; `bands`; the normaliser (`softmax`, `relu_sum`, `relu_length` or
    `relu_none`); `score`, with its operands and the region; the `schedule`;
    among the attributes, the `rotation_plan`.
    The types are those of all operands, in the order of the list below. A
    second result is the log-sum-exp.

    Example:
    ```mlir
    %o = attnfuse.attention q(%q) k(%k) v(%v)
        bands [#attnfuse.band<bottom_right, right = 0>] softmax score operands(%bias) {
        ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index,
             %nq: index, %nkv: index, %hq: index, %t: tensor<?x?xf32>):
          %x = tensor.extract %t[%i, %j] : tensor<?x?xf32>
          %y = arith.addf %s, %x : f32
          attnfuse.yield %y : f32
        } {scale = 0.125 : f64}
        : (tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>,
           tensor<?x?xf32>) -> tensor<2x16x?x64xf16>
    %p, %lse = attnfuse.attention q(%q) k(%k) v(%v)
        rotate_q <half, offset = 0>(%cos, %sin) rotate_k <half, offset = 0>(%cos, %sin)
        blocks <64x64>(%rows, %cols) softmax
        schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = true>
        {scale = 0.125 : f64}
        : (tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>,
           tensor<512x32xf32>, tensor<512x32xf32>, tensor<512x32xf32>, tensor<512x32xf32>,
           tensor<?xi32>, tensor<?xi32>) -> (tensor<2x16x?x64xf16>, tensor<2x16x?xf32>)
    ```
  }];
  let arguments = (ins
    AttnFuse_Activation:$query, AttnFuse_Activation:$key, AttnFuse_Activation:$value,
    Optional<AttnFuse_RotaryTable>:$q_cos, Optional<AttnFuse_RotaryTable>:$q_sin,
    Optional<I64>:$q_offset, Optional<AttnFuse_Positions>:$q_positions,
    Optional<AttnFuse_RotaryTable>:$k_cos, Optional<AttnFuse_RotaryTable>:$k_sin,
    Optional<I64>:$k_offset, Optional<AttnFuse_Positions>:$k_positions,
    Optional<AttnFuse_BlockOffsets>:$row_offsets,
    Optional<AttnFuse_BlockIndices>:$col_indices,
    Variadic<AnyRankedTensor>:$score_operands,
    F64Attr:$scale,
    OptionalAttr<AttnFuse_RotationAttr>:$q_rotation,
    OptionalAttr<AttnFuse_RotationAttr>:$k_rotation,
    OptionalAttr<AttnFuse_RotationPlanAttr>:$rotation_plan,
    DefaultValuedAttr<AttnFuse_BandArrayAttr, "{}">:$bands,
    OptionalAttr<AttnFuse_BlocksAttr>:$blocks,
    AttnFuse_NormalizerAttr:$normalizer,
    OptionalAttr<AttnFuse_ScheduleAttr>:$schedule);
  let results = (outs AttnFuse_Activation:$output, Optional<AttnFuse_Lse>:$lse);
  let regions = (region MaxSizedRegion<1>:$score);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// Positions of the score region's arguments; the score operands follow.
    enum ScoreArg { Score, B, H, I, J, Nq, Nkv, Hq, NumFixedScoreArgs };

    /// Head size of q and k, and of v and the output.
    int64_t getHeadDim();
    int64_t getValueHeadDim();
    /// Where k is rotated; nothing if it is not.
    std::optional<RotationWay> getKeyRotationWay();
    std::optional<RotationWay> getQueryRotationWay();
    /// True if the region does more than return its score.
    bool hasScoreChain();
    Type getElementType();
  }];
}

def AttnFuse_YieldOp : Op<AttnFuse_Dialect, "yield", [
    Pure, Terminator, ReturnLike, HasParent<"AttentionOp">]> {
  let summary = "the new score of a score region";
  let description = [{
    Example: see `attnfuse.attention`.
  }];
  let arguments = (ins F32:$score);
  let assemblyFormat = "$score attr-dict `:` type($score)";
}

def AttnFuse_AlibiSlopeOp : AttnFuse_Op<"alibi_slope"> {
  let summary = "the standard ALiBi slope of a head";
  let description = [{
    The slope of head `head` among `num_heads`, as `attnfuse.alibi` without a
    slopes operand defines it. It is expanded to arithmetic by
    `attnfuse-expand-alibi-slope`, so a score region may hold it for a number
    of heads that is known only at run time.

    Example:
    ```mlir
    %m = attnfuse.alibi_slope %h, %n
    ```
  }];
  let arguments = (ins Index:$head, Index:$num_heads);
  let results = (outs F32:$slope);
  let assemblyFormat = "$head `,` $num_heads attr-dict";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// In host code
//===----------------------------------------------------------------------===//

def AttnFuse_LaunchOperand
    : AnyTypeOf<[AnyRankedTensor, AnyMemRef, I64], "tensor, memref or i64">;

def AttnFuse_LaunchOp : Op<AttnFuse_Dialect, "launch", [
    AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs the kernels of an outlined attention on the GPU";
  let description = [{
    Stands in host code where an `attnfuse.attention` was that
    `attnfuse-outline` has moved to a function. `kernel` names that function
    and, once kernels are generated, the function's entry in the manifest of a
    `gpu.module` or a `gpu.binary`. `inputs` are the function's arguments in
    order, `outs` what its results are written to: all of them tensors, of
    which the op returns new values, or all memrefs, which it writes, and which
    overlap neither each other nor the inputs. Memrefs lie where the GPU can
    read and write them and may have any strides that the manifest allows.

    The launch is asynchronous, in the order of the CUDA stream whose handle is
    `stream`, or of the default stream.

    Example: see `attnfuse-outline`, which makes

    ```
    %o = attnfuse.launch @f_attention_0
        ins(%q, %k, %v : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>)
        outs(%init : tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16>
    ```
  }];
  let arguments = (ins
    SymbolRefAttr:$kernel, Variadic<AttnFuse_LaunchOperand>:$inputs,
    Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$outs, Optional<I64>:$stream);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` (`stream` `(` $stream^ `)`)?
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
  }];
  let hasVerifier = 1;
}

#endif // ATTNFUSE_DIALECT_ATTNFUSE_IR_ATTNFUSEOPS_TD
