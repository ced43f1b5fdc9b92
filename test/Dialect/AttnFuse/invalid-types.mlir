// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics

// What the operand types of TableGen refuse (spec, table of types), and the
// attributes with a syntax of their own.

func.func @rope_input_f64(%x: tensor<1x2x8x16xf64>, %t: tensor<8x8xf32>) {
  // expected-error @below {{operand #0 must be rank-4 tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<1x2x8x16xf64>'}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x16xf64>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @query_rank(%q: tensor<2x8x16xf16>, %k: tensor<1x2x8x16xf16>) {
  // expected-error @below {{operand #0 must be rank-4 tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<2x8x16xf16>'}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  return
}

// -----

func.func @scores_f16(%s: tensor<1x2x8x8xf16>) {
  // expected-error @below {{operand #0 must be rank-4 tensor of 32-bit float values, but got 'tensor<1x2x8x8xf16>'}}
  %m = attnfuse.causal %s top_left : tensor<1x2x8x8xf16>
  return
}

// -----

func.func @positions_type(%x: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>, %p: tensor<8xi8>) {
  // expected-error @below {{operand #3 must be rank-1 or rank-2 tensor of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<8xi8>'}}
  %r = attnfuse.rope %x, %t, %t half positions(%p : tensor<8xi8>) : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @bias_rank(%s: tensor<1x2x8x8xf32>, %b: tensor<1x1x2x8x8xf32>) {
  // expected-error @below {{operand #1 must be tensor of rank at most 4 of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<1x1x2x8x8xf32>'}}
  %a = attnfuse.additive_bias %s, %b : tensor<1x2x8x8xf32>, tensor<1x1x2x8x8xf32>
  return
}

// -----

func.func @row_offsets_rank(%s: tensor<1x2x8x8xf32>, %r: tensor<1x2xi32>, %c: tensor<?xi32>) {
  // expected-error @below {{operand #1 must be rank-1 or rank-3 tensor of 32-bit signless integer values, but got 'tensor<1x2xi32>'}}
  %m = attnfuse.block_sparse %s, %r, %c {query_block = 8, key_block = 8} : tensor<1x2x8x8xf32>, tensor<1x2xi32>, tensor<?xi32>
  return
}

// -----

// expected-error @below {{expected 'left' to be in [0, 2^31), got -1; leave it out for an unbounded side}}
func.func private @band_bound() attributes {a = #attnfuse.band<top_left, left = -1>}

// -----

// expected-error @below {{expected top_left or bottom_right, got 'middle'}}
func.func private @band_alignment() attributes {a = #attnfuse.band<middle, left = 1>}

// -----

// expected-error @below {{expected 'left' or 'right', each at most once, got 'left'}}
func.func private @band_twice() attributes {a = #attnfuse.band<top_left, left = 1, left = 2>}

// -----

// expected-error @below {{expected a query block in [1, 2^31), got 0}}
func.func private @blocks_zero() attributes {a = #attnfuse.blocks<0x8>}

// -----

// expected-error @below {{expected 2 block sizes, got 3}}
func.func private @blocks_three() attributes {a = #attnfuse.blocks<8x8x8>}
