// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics

// One function per branch of a verifier, named after its rule in docs/spec.md.

// expected-note @below {{'cos' has type 'tensor<8x4xf32>'}}
func.func @rope_c1_shape(%x: tensor<1x2x8x16xf16>, %c: tensor<8x4xf32>, %s: tensor<8x5xf32>) {
  // expected-error @below {{expected dimension R/2 of 'sin' to be 4 as in 'cos', got 5}}
  %r = attnfuse.rope %x, %c, %s half : tensor<1x2x8x16xf16>, tensor<8x4xf32>, tensor<8x5xf32>
  return
}

// -----

func.func @rope_c1_element_type(%x: tensor<1x2x8x16xf16>, %c: tensor<8x4xf32>, %s: tensor<8x4xf16>) {
  // expected-error @below {{expected 'sin' to have the element type of 'cos', 'f32', got 'f16'}}
  %r = attnfuse.rope %x, %c, %s half : tensor<1x2x8x16xf16>, tensor<8x4xf32>, tensor<8x4xf16>
  return
}

// -----

func.func @rope_c2_head_dim(%x: tensor<1x2x8x?xf16>, %t: tensor<8x4xf32>) {
  // expected-error @below {{expected a static size for dimension D, got '?'; write the size in the type of the function's argument}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x?xf16>, tensor<8x4xf32>, tensor<8x4xf32>
  return
}

// -----

func.func @rope_c2_width(%x: tensor<1x2x8x16xf16>, %t: tensor<8x?xf32>) {
  // expected-error @below {{expected a static size for dimension R/2, got '?'; write the size in the type of the function's argument}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x?xf32>, tensor<8x?xf32>
  return
}

// -----

func.func @rope_c2_empty_width(%x: tensor<1x2x8x16xf16>, %t: tensor<8x0xf32>) {
  // expected-error @below {{expected dimension R/2 to be at least 1, got 0}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x0xf32>, tensor<8x0xf32>
  return
}

// -----

func.func @rope_c2_no_rows(%x: tensor<1x2x?x16xf16>, %t: tensor<0x4xf32>) {
  // expected-error @below {{expected 'cos' to have at least 1 row, got 0}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x?x16xf16>, tensor<0x4xf32>, tensor<0x4xf32>
  return
}

// -----

func.func @rope_c3(%x: tensor<1x2x8x16xf16>, %t: tensor<8x9xf32>) {
  // expected-error @below {{expected 'cos' to have at most 8 columns, one for two of 16 features, got 9}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x9xf32>, tensor<8x9xf32>
  return
}

// -----

func.func @rope_c4_negative(%x: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>) {
  // expected-error @below {{expected the rotation's constant offset to be in [0, 2^31), got -1}}
  %r = attnfuse.rope %x, %t, %t half {static_offset = -1} : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @rope_c4_large(%x: tensor<1x2x8x16xf16>, %t: tensor<?x8xf32>) {
  // expected-error @below {{expected the rotation's constant offset to be in [0, 2^31), got 2147483648}}
  %r = attnfuse.rope %x, %t, %t half {static_offset = 2147483648} : tensor<1x2x8x16xf16>, tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @rope_c5(%x: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>, %o: i64, %p: tensor<8xi32>) {
  // expected-error @below {{expected 'offset' or 'positions', got both; add the offset to the positions}}
  %r = attnfuse.rope %x, %t, %t half offset(%o) positions(%p : tensor<8xi32>) : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

// expected-note @below {{'input' has type 'tensor<1x2x8x16xf16>'}}
func.func @rope_c6_length(%x: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>, %p: tensor<7xi32>) {
  // expected-error @below {{expected dimension N of 'positions' to be 8 as in 'input', got 7}}
  %r = attnfuse.rope %x, %t, %t half positions(%p : tensor<7xi32>) : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

// expected-note @below {{'input' has type 'tensor<3x2x?x16xf16>'}}
func.func @rope_c6_batch(%x: tensor<3x2x?x16xf16>, %t: tensor<8x8xf32>, %p: tensor<1x?xi64>) {
  // expected-error @below {{expected dimension B of 'positions' to be 3 as in 'input', got 1}}
  %r = attnfuse.rope %x, %t, %t half positions(%p : tensor<1x?xi64>) : tensor<3x2x?x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

// expected-note @below {{'cos' has type 'tensor<10x8xf32>'}}
func.func @rope_c7(%x: tensor<1x2x8x16xf16>, %t: tensor<10x8xf32>, %o: i64, %p: tensor<8xi32>) {
  // Just enough rows, and rows that a run-time position chooses, are accepted.
  %a = attnfuse.rope %x, %t, %t half {static_offset = 2} : tensor<1x2x8x16xf16>, tensor<10x8xf32>, tensor<10x8xf32>
  %b = attnfuse.rope %x, %t, %t half offset(%o) {static_offset = 3} : tensor<1x2x8x16xf16>, tensor<10x8xf32>, tensor<10x8xf32>
  %c = attnfuse.rope %x, %t, %t half positions(%p : tensor<8xi32>) {static_offset = 3} : tensor<1x2x8x16xf16>, tensor<10x8xf32>, tensor<10x8xf32>
  // expected-error @below {{expected 'cos' to have at least 11 rows, got 10}}
  %r = attnfuse.rope %x, %t, %t half {static_offset = 3} : tensor<1x2x8x16xf16>, tensor<10x8xf32>, tensor<10x8xf32>
  return
}

// -----

// expected-note @below {{'query' has type 'tensor<2x4x?x16xf16>'}}
func.func @scaled_dot_product_c1_batch(%q: tensor<2x4x?x16xf16>, %k: tensor<3x4x?x16xf16>) {
  // expected-error @below {{expected dimension B of 'key' to be 2 as in 'query', got 3}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x16xf16>, tensor<3x4x?x16xf16> -> tensor<?x4x?x?xf32>
  return
}

// -----

// expected-note @below {{'query' has type 'tensor<2x4x?x16xf16>'}}
func.func @scaled_dot_product_c1_head_dim(%q: tensor<2x4x?x16xf16>, %k: tensor<2x4x?x24xf16>) {
  // expected-error @below {{expected dimension D of 'key' to be 16 as in 'query', got 24}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x16xf16>, tensor<2x4x?x24xf16> -> tensor<2x4x?x?xf32>
  return
}

// -----

// expected-note @below {{'key' has type 'tensor<2x4x7x16xf16>'}}
func.func @scaled_dot_product_c1_scores(%q: tensor<2x4x?x16xf16>, %k: tensor<2x4x7x16xf16>) {
  // expected-error @below {{expected dimension Nkv of 'scores' to be 7 as in 'key', got 8}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x16xf16>, tensor<2x4x7x16xf16> -> tensor<2x4x?x8xf32>
  return
}

// -----

func.func @scaled_dot_product_c1_dynamic(%q: tensor<2x4x?x?xf16>, %k: tensor<2x4x?x?xf16>) {
  // expected-error @below {{expected a static size for dimension D, got '?'; write the size in the type of the function's argument}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x?xf16>, tensor<2x4x?x?xf16> -> tensor<2x4x?x?xf32>
  return
}

// -----

func.func @scaled_dot_product_c1_zero(%q: tensor<2x4x?x0xf16>, %k: tensor<2x4x?x0xf16>) {
  // expected-error @below {{expected dimension D to be at least 1, got 0}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x0xf16>, tensor<2x4x?x0xf16> -> tensor<2x4x?x?xf32>
  return
}

// -----

func.func @scaled_dot_product_c2(%q: tensor<2x8x?x16xf16>, %k: tensor<2x3x?x16xf16>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of key heads, got 8 and 3}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x8x?x16xf16>, tensor<2x3x?x16xf16> -> tensor<2x8x?x?xf32>
  return
}

// -----

func.func @scaled_dot_product_c2_no_key_heads(%q: tensor<2x8x?x16xf16>, %k: tensor<2x0x?x16xf16>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of key heads, got 8 and 0}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x8x?x16xf16>, tensor<2x0x?x16xf16> -> tensor<2x8x?x?xf32>
  return
}

// -----

func.func @scaled_dot_product_c3(%q: tensor<2x4x?x16xf16>, %k: tensor<2x4x?x16xbf16>) {
  // expected-error @below {{expected 'query' and 'key' of one element type, got 'f16' and 'bf16'}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x16xf16>, tensor<2x4x?x16xbf16> -> tensor<2x4x?x?xf32>
  return
}

// -----

func.func @scaled_dot_product_c4(%q: tensor<2x4x?x16xf16>, %k: tensor<2x4x?x16xf16>) {
  // expected-error @below {{expected a scale that is finite in f32, got INF}}
  %s = attnfuse.scaled_dot_product %q, %k {scale = 0x7FF0000000000000 : f64} : tensor<2x4x?x16xf16>, tensor<2x4x?x16xf16> -> tensor<2x4x?x?xf32>
  return
}

// -----

func.func @sliding_window_c1_left(%s: tensor<1x2x8x8xf32>) {
  // expected-error @below {{expected 'left' to be in [0, 2^31), got -1; leave it out for an unbounded side}}
  %m = attnfuse.sliding_window %s top_left {left = -1, right = 0} : tensor<1x2x8x8xf32>
  return
}

// -----

func.func @sliding_window_c1_right(%s: tensor<1x2x8x8xf32>) {
  // expected-error @below {{expected 'right' to be in [0, 2^31), got 2147483648; leave it out for an unbounded side}}
  %m = attnfuse.sliding_window %s top_left {left = 0, right = 2147483648} : tensor<1x2x8x8xf32>
  return
}

// -----

func.func @block_sparse_c1_query(%s: tensor<1x2x8x8xf32>, %r: tensor<2xi32>, %c: tensor<?xi32>) {
  // expected-error @below {{expected a query block in [1, 2^31), got 0}}
  %m = attnfuse.block_sparse %s, %r, %c {query_block = 0, key_block = 8} : tensor<1x2x8x8xf32>, tensor<2xi32>, tensor<?xi32>
  return
}

// -----

func.func @block_sparse_c1_key(%s: tensor<1x2x8x8xf32>, %r: tensor<2xi32>, %c: tensor<?xi32>) {
  // expected-error @below {{expected a key block in [1, 2^31), got -8}}
  %m = attnfuse.block_sparse %s, %r, %c {query_block = 8, key_block = -8} : tensor<1x2x8x8xf32>, tensor<2xi32>, tensor<?xi32>
  return
}

// -----

func.func @block_sparse_c2_batch(%s: tensor<3x2x8x8xf32>, %r: tensor<2x1x2xi32>, %c: tensor<?xi32>) {
  // expected-error @below {{expected dimension B of 'row_offsets' to be 1 or 3, got 2}}
  %m = attnfuse.block_sparse %s, %r, %c {query_block = 8, key_block = 8} : tensor<3x2x8x8xf32>, tensor<2x1x2xi32>, tensor<?xi32>
  return
}

// -----

func.func @block_sparse_c2_heads(%s: tensor<3x2x8x8xf32>, %r: tensor<1x3x2xi32>, %c: tensor<?xi32>) {
  // expected-error @below {{expected dimension Hq of 'row_offsets' to be 1 or 2, got 3}}
  %m = attnfuse.block_sparse %s, %r, %c {query_block = 8, key_block = 8} : tensor<3x2x8x8xf32>, tensor<1x3x2xi32>, tensor<?xi32>
  return
}

// -----

func.func @block_sparse_c3(%s: tensor<1x2x17x8xf32>, %good: tensor<1x2x4xi32>, %r: tensor<3xi32>, %c: tensor<?xi32>) {
  %n = attnfuse.block_sparse %s, %good, %c {query_block = 8, key_block = 8} : tensor<1x2x17x8xf32>, tensor<1x2x4xi32>, tensor<?xi32>
  // expected-error @below {{expected 'row_offsets' to have 4 entries, one more than 17 queries have blocks of 8, got 3}}
  %m = attnfuse.block_sparse %s, %r, %c {query_block = 8, key_block = 8} : tensor<1x2x17x8xf32>, tensor<3xi32>, tensor<?xi32>
  return
}

// -----

// expected-note @below {{'scores' has type 'tensor<1x12x8x8xf32>'}}
func.func @alibi_c1_heads(%s: tensor<1x12x8x8xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{expected dimension Hq of 'slopes' to be 12 as in 'scores', got 8}}
  %a = attnfuse.alibi %s top_left slopes(%m : tensor<8xf32>) : tensor<1x12x8x8xf32>
  return
}

// -----

// expected-note @below {{'scores' has type 'tensor<2x12x8x8xf32>'}}
func.func @alibi_c1_batch(%s: tensor<2x12x8x8xf32>, %m: tensor<3x12xf32>) {
  // expected-error @below {{expected dimension B of 'slopes' to be 2 as in 'scores', got 3}}
  %a = attnfuse.alibi %s top_left slopes(%m : tensor<3x12xf32>) : tensor<2x12x8x8xf32>
  return
}

// -----

// expected-note @below {{'bias' has type 'tensor<3x8x8xf32>'}}
func.func @additive_bias_c1(%s: tensor<1x2x8x8xf32>, %b: tensor<3x8x8xf32>) {
  // expected-error @below {{expected dimension Hq of 'bias' to be 1 or 2, got 3}}
  %a = attnfuse.additive_bias %s, %b : tensor<1x2x8x8xf32>, tensor<3x8x8xf32>
  return
}

// -----

// expected-note @below {{'scores' has type 'tensor<1x2x8x8xf32>'}}
func.func @softmax_c1(%s: tensor<1x2x8x8xf32>) {
  // expected-error @below {{expected dimension Nq of 'lse' to be 8 as in 'scores', got 7}}
  %p, %l = attnfuse.softmax %s : tensor<1x2x8x8xf32>, tensor<1x2x7xf32>
  return
}

// -----

// expected-note @below {{'probs' has type 'tensor<1x2x8x8xf32>'}}
func.func @weighted_sum_c1_keys(%p: tensor<1x2x8x8xf32>, %v: tensor<1x2x9x16xf16>) {
  // expected-error @below {{expected dimension Nkv of 'value' to be 8 as in 'probs', got 9}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x9x16xf16> -> tensor<1x2x8x16xf16>
  return
}

// -----

// expected-note @below {{'value' has type 'tensor<1x2x8x16xf16>'}}
func.func @weighted_sum_c1_output(%p: tensor<1x2x8x8xf32>, %v: tensor<1x2x8x16xf16>) {
  // expected-error @below {{expected dimension Dv of 'output' to be 16 as in 'value', got 24}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x24xf16>
  return
}

// -----

func.func @weighted_sum_c1_dynamic(%p: tensor<1x2x8x8xf32>, %v: tensor<1x2x8x?xf16>) {
  // expected-error @below {{expected a static size for dimension Dv, got '?'; write the size in the type of the function's argument}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x?xf16> -> tensor<1x2x8x?xf16>
  return
}

// -----

func.func @weighted_sum_c2(%p: tensor<1x8x8x8xf32>, %v: tensor<1x5x8x16xf16>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of key heads, got 8 and 5}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x8x8x8xf32>, tensor<1x5x8x16xf16> -> tensor<1x8x8x16xf16>
  return
}

// -----

func.func @weighted_sum_c3(%p: tensor<1x2x8x8xf32>, %v: tensor<1x2x8x16xf16>) {
  %f = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf32>
  // expected-error @below {{expected an output of 'f16' (as 'value') or f32, got 'bf16'}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xbf16>
  return
}

// -----

// Sizes near the limit of 64 bits do not wrap around.
func.func @rope_c3_huge(%x: tensor<1x2x8x16xf16>, %t: tensor<?x4611686018427387904xf32>) {
  // expected-error @below {{expected 'cos' to have at most 8 columns, one for two of 16 features, got 4611686018427387904}}
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x16xf16>, tensor<?x4611686018427387904xf32>, tensor<?x4611686018427387904xf32>
  return
}
