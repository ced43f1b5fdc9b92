// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// One function per branch of attention's verifier, named after its rule in
// docs/spec.md. The rules that it shares with the building blocks are one
// piece of code; here they are seen to be applied.

!q = tensor<1x4x8x16xf16>
// expected-note @below {{'query' has type 'tensor<1x4x8x16xf16>'}}
func.func @attention_c1_key(%q: !q, %k: tensor<1x4x8x32xf16>) {
  // expected-error @below {{expected dimension D of 'key' to be 16 as in 'query', got 32}}
  %o = attnfuse.attention q(%q) k(%k) v(%q) softmax {scale = 1.0} : (!q, tensor<1x4x8x32xf16>, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
// expected-note @below {{'key' has type 'tensor<1x4x8x16xf16>'}}
func.func @attention_c1_value(%q: !q, %v: tensor<1x4x9x16xf16>) {
  // expected-error @below {{expected dimension Nkv of 'value' to be 8 as in 'key', got 9}}
  %o = attnfuse.attention q(%q) k(%q) v(%v) softmax {scale = 1.0} : (!q, !q, tensor<1x4x9x16xf16>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
// expected-note @below {{'query' has type 'tensor<1x4x8x16xf16>'}}
func.func @attention_c1_lse(%q: !q) {
  // expected-error @below {{expected dimension Hq of 'lse' to be 4 as in 'query', got 2}}
  %o, %l = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 1.0} : (!q, !q, !q) -> (!q, tensor<1x2x8xf32>)
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c1_dynamic(%q: !q, %v: tensor<1x4x8x?xf16>) {
  // expected-error @below {{expected a static size for dimension Dv, got '?'; write the size in the type of the function's argument}}
  %o = attnfuse.attention q(%q) k(%q) v(%v) softmax {scale = 1.0} : (!q, !q, tensor<1x4x8x?xf16>) -> tensor<1x4x8x?xf16>
  return
}

// -----

!q = tensor<1x4x8x16xf16>
!kv = tensor<1x3x8x16xf16>
func.func @attention_c2(%q: !q, %k: !kv) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of key heads, got 4 and 3}}
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 1.0} : (!q, !kv, !kv) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c3_inputs(%q: !q, %v: tensor<1x4x8x16xf32>) {
  // expected-error @below {{expected 'query', 'key' and 'value' of one element type, got 'f16', 'f16' and 'f32'}}
  %o = attnfuse.attention q(%q) k(%q) v(%v) softmax {scale = 1.0} : (!q, !q, tensor<1x4x8x16xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c3_output(%q: !q) {
  // expected-error @below {{expected an output of 'f16' (as 'value') or f32, got 'bf16'}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 1.0} : (!q, !q, !q) -> tensor<1x4x8x16xbf16>
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c4(%q: !q) {
  // expected-error @below {{expected a scale that is finite in f32, got nan}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0x7FF8000000000000 : f64} : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c5_no_tables(%q: !q) {
  // expected-error @below {{expected 'q_rotation', 'q_cos' and 'q_sin' together, or none of them and no position}}
  %o = "attnfuse.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0 : f64,
      q_rotation = #attnfuse.rotation<half, offset = 0>, normalizer = #attnfuse<normalizer softmax>}> ({}) : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c5_no_attribute(%q: !q, %t: tensor<8x8xf32>) {
  // expected-error @below {{expected 'k_rotation', 'k_cos' and 'k_sin' together, or none of them and no position}}
  %o = "attnfuse.attention"(%q, %q, %q, %t, %t) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0>, scale = 1.0 : f64,
      normalizer = #attnfuse<normalizer softmax>}> ({}) : (!q, !q, !q, tensor<8x8xf32>, tensor<8x8xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c6_both_positions(%q: !q, %t: tensor<8x8xf32>, %off: i64, %pos: tensor<8xi32>) {
  // expected-error @below {{expected 'k_offset' or 'k_positions', got both; add the offset to the positions}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_k <half, offset = 0>(%t, %t, offset %off, positions %pos) softmax {scale = 1.0}
      : (!q, !q, !q, tensor<8x8xf32>, tensor<8x8xf32>, i64, tensor<8xi32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
// expected-note @below {{'q_cos' has type 'tensor<8x8xf32>'}}
func.func @attention_c6_rows(%q: !q, %t: tensor<8x8xf32>) {
  // expected-error @below {{expected 'q_cos' to have at least 9 rows, got 8}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_q <half, offset = 1>(%t, %t) softmax {scale = 1.0}
      : (!q, !q, !q, tensor<8x8xf32>, tensor<8x8xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c6_offset(%q: !q, %t: tensor<8x8xf32>) {
  // expected-error @below {{expected the q_rotation's constant offset to be in [0, 2^31), got -1}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_q <half, offset = -1>(%t, %t) softmax {scale = 1.0}
      : (!q, !q, !q, tensor<8x8xf32>, tensor<8x8xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c7(%q: !q, %r: tensor<2xi32>) {
  // expected-error @below {{expected 'blocks', 'row_offsets' and 'col_indices' together, or none of them}}
  %o = "attnfuse.attention"(%q, %q, %q, %r) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0>, scale = 1.0 : f64,
      blocks = #attnfuse.blocks<8x8>, normalizer = #attnfuse<normalizer softmax>}> ({}) : (!q, !q, !q, tensor<2xi32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c8(%q: !q, %r: tensor<3xi32>, %c: tensor<?xi32>) {
  // expected-error @below {{expected 'row_offsets' to have 2 entries, one more than 8 queries have blocks of 8, got 3}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <8x8>(%r, %c) softmax {scale = 1.0} : (!q, !q, !q, tensor<3xi32>, tensor<?xi32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c9(%q: !q) {
  // expected-error @below {{expected no 'lse' result with normalizer relu_sum; only softmax has one}}
  %o, %l = attnfuse.attention q(%q) k(%q) v(%q) relu_sum {scale = 1.0} : (!q, !q, !q) -> (!q, tensor<1x4x8xf32>)
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c10(%q: !q, %b: tensor<8x8xf32>) {
  // expected-error @below {{expected no score operands without a score region, got 1}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%b) {} {scale = 1.0} : (!q, !q, !q, tensor<8x8xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c11_count(%q: !q, %b: tensor<8x8xf32>) {
  // expected-error @below {{expected the score region to have 9 arguments, got 8}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%b) {
    ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      attnfuse.yield %s : f32
    } {scale = 1.0} : (!q, !q, !q, tensor<8x8xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c11_type(%q: !q, %b: tensor<8x8xf32>) {
  // expected-error @below {{expected argument 8 of the score region to be 'tensor<8x8xf32>', got 'tensor<?x8xf32>'}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%b) {
    // expected-note @below {{the argument is here}}
    ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<?x8xf32>):
      attnfuse.yield %s : f32
    } {scale = 1.0} : (!q, !q, !q, tensor<8x8xf32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c12(%q: !q) {
  // expected-error @below {{expected the score region to end with attnfuse.yield}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
    ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      // expected-note @below {{it ends here}}
      llvm.unreachable
    } {scale = 1.0} : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @attention_c13(%q: !q) {
  // expected-error @below {{expected a score region without side effects}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
    ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      // expected-note @below {{'test.print' may have side effects}}
      "test.print"(%s) : (f32) -> ()
      attnfuse.yield %s : f32
    } {scale = 1.0} : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @isolated(%q: !q, %c: f32) {
  // expected-note @below {{required by region isolation constraints}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
    ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      // expected-error @below {{using value defined outside the region}}
      %t = arith.mulf %s, %c : f32
      attnfuse.yield %t : f32
    } {scale = 1.0} : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @scale_required(%q: !q) {
  // expected-error @below {{requires attribute 'scale'}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @normalizer_name(%q: !q) {
  // expected-error @below {{expected a normalizer (softmax, relu_sum, relu_length or relu_none), got 'sigmoid'}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) sigmoid {scale = 1.0} : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @blocks_after_bands(%q: !q, %rows: tensor<2xi32>, %cols: tensor<1xi32>) {
  // expected-error @below {{expected a normalizer (softmax, relu_sum, relu_length or relu_none), got 'blocks'; the order is rotate_q, rotate_k, blocks, bands, a normalizer, score, schedule, of which only the normalizer must be there}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) bands [] blocks <8x8>(%rows, %cols) softmax {scale = 1.0}
      : (!q, !q, !q, tensor<2xi32>, tensor<1xi32>) -> !q
  return
}

// -----

!q = tensor<1x4x8x16xf16>
func.func @score_after_schedule(%q: !q) {
  // expected-error @below {{expected attributes or ':', got 'score'; the order is}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false> score {
  } {scale = 1.0} : (!q, !q, !q) -> !q
  return
}

// -----

func.func @yield_parent(%s: f32) {
  // expected-error @below {{'attnfuse.yield' op expects parent op 'attnfuse.attention'}}
  attnfuse.yield %s : f32
}

// -----

func.func @plan_of_q(%q: tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16> {
  // expected-error @+1 {{expected q to be fused or split, got by_size}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {rotation_plan = #attnfuse.rotation_plan<q = by_size, k = fused>, scale = 0.125 : f64}
      : (tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16>
  return %o : tensor<1x4x?x64xf16>
}
