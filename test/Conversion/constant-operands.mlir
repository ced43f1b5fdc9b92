// Both lowerings refuse constants with contents that an op does not take.

// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --split-input-file --verify-diagnostics
// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file --verify-diagnostics

func.func @decreasing(%s: tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32> {
  // expected-note @below {{the constant is here}}
  %rows = arith.constant dense<[0, 2, 1, 2, 2]> : tensor<5xi32>
  %cols = arith.constant dense<[0, 1]> : tensor<2xi32>
  // expected-error @below {{'row_offsets' has entry 2 = 1: expected at least the entry before, 2}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x64x64xf32>, tensor<5xi32>, tensor<2xi32>
  return %m : tensor<1x1x64x64xf32>
}

// -----

func.func @beyond_the_columns(%s: tensor<1x1x32x64xf32>) -> tensor<1x1x32x64xf32> {
  // expected-note @below {{the constant is here}}
  %rows = arith.constant dense<[0, 1, 1000000000]> : tensor<3xi32>
  %cols = arith.constant dense<[0, 1]> : tensor<2xi32>
  // expected-error @below {{'row_offsets' has entry 2 = 1000000000: expected at most 2, the number of columns}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x32x64xf32>, tensor<3xi32>, tensor<2xi32>
  return %m : tensor<1x1x32x64xf32>
}

// -----

// The columns need not be constant for that.
func.func @beyond_an_argument(%s: tensor<1x1x32x64xf32>, %cols: tensor<2xi32>) -> tensor<1x1x32x64xf32> {
  // expected-note @below {{the constant is here}}
  %rows = arith.constant dense<[0, 1, 3]> : tensor<3xi32>
  // expected-error @below {{'row_offsets' has entry 2 = 3: expected at most 2, the number of columns}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x32x64xf32>, tensor<3xi32>, tensor<2xi32>
  return %m : tensor<1x1x32x64xf32>
}

// -----

func.func @negative_splat(%s: tensor<1x1x32x64xf32>, %cols: tensor<2xi32>) -> tensor<1x1x32x64xf32> {
  // expected-note @below {{the constant is here}}
  %rows = arith.constant dense<-1> : tensor<3xi32>
  // expected-error @below {{'row_offsets' has entry 0 = -1: expected at least 0}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x32x64xf32>, tensor<3xi32>, tensor<2xi32>
  return %m : tensor<1x1x32x64xf32>
}

// -----

func.func @beyond_the_keys(%s: tensor<1x1x32x64xf32>) -> tensor<1x1x32x64xf32> {
  %rows = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  // expected-note @below {{the constant is here}}
  %cols = arith.constant dense<[3, 4]> : tensor<2xi32>
  // expected-error @below {{'col_indices' has entry 1 = 4: expected columns that are at least 0, increase within row 1 and are below 4}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x32x64xf32>, tensor<3xi32>, tensor<2xi32>
  return %m : tensor<1x1x32x64xf32>
}

// -----

func.func @repeated(%s: tensor<1x1x32x?xf32>) -> tensor<1x1x32x?xf32> {
  %rows = arith.constant dense<[0, 1, 3]> : tensor<3xi32>
  // expected-note @below {{the constant is here}}
  %cols = arith.constant dense<7> : tensor<3xi32>
  %open = tensor.cast %cols : tensor<3xi32> to tensor<?xi32>
  // expected-error @below {{'col_indices' has entry 2 = 7: expected columns that are at least 0, increase within row 1}}
  %m = attnfuse.block_sparse %s, %rows, %open {query_block = 16, key_block = 16}
      : tensor<1x1x32x?xf32>, tensor<3xi32>, tensor<?xi32>
  return %m : tensor<1x1x32x?xf32>
}

// -----

// The patterns of two heads: in the second, row 1 decreases.
func.func @second_head(%s: tensor<1x2x32x?xf32>) -> tensor<1x2x32x?xf32> {
  %rows = arith.constant dense<[[[0, 2, 4], [0, 1, 3]]]> : tensor<1x2x3xi32>
  // expected-note @below {{the constant is here}}
  %cols = arith.constant dense<[0, 5, 2, 3]> : tensor<4xi32>
  // expected-error @below {{'col_indices' has entry 2 = 2: expected columns that are at least 0, increase within row 1}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x2x32x?xf32>, tensor<1x2x3xi32>, tensor<4xi32>
  return %m : tensor<1x2x32x?xf32>
}

// -----

func.func @resource(%s: tensor<1x1x32x64xf32>) -> tensor<1x1x32x64xf32> {
  // expected-note @below {{the constant is here}}
  %rows = arith.constant dense_resource<offsets> : tensor<3xi32>
  %cols = arith.constant dense<[0, 1]> : tensor<2xi32>
  // expected-error @below {{'row_offsets' has entry 2 = 9: expected at most 2, the number of columns}}
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x32x64xf32>, tensor<3xi32>, tensor<2xi32>
  return %m : tensor<1x1x32x64xf32>
}
{-#
  dialect_resources: {
    builtin: {
      // 4 of alignment, then 0, 1 and 9.
      offsets: "0x04000000000000000100000009000000"
    }
  }
#-}

// -----

func.func @fused_lists(%q: tensor<1x1x32x16xf16>) -> tensor<1x1x32x16xf16> {
  %rows = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  // expected-note @below {{the constant is here}}
  %cols = arith.constant dense<[0, -1]> : tensor<2xi32>
  // expected-error @below {{'attnfuse.attention' op 'col_indices' has entry 1 = -1: expected columns that are at least 0, increase within row 1 and are below 2}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <16x16>(%rows, %cols) softmax {scale = 0.25 : f64}
      : (tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<3xi32>, tensor<2xi32>) -> tensor<1x1x32x16xf16>
  return %o : tensor<1x1x32x16xf16>
}

// -----

func.func @negative_offset(%x: tensor<1x1x?x16xf16>, %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> tensor<1x1x?x16xf16> {
  // expected-note @below {{the constant is here}}
  %offset = arith.constant -5 : i64
  // expected-error @below {{expected 'offset' and the constant offset to add up to at least 0, got -5 and 3}}
  %r = attnfuse.rope %x, %cos, %sin half offset(%offset) {static_offset = 3}
      : tensor<1x1x?x16xf16>, tensor<64x8xf32>, tensor<64x8xf32>
  return %r : tensor<1x1x?x16xf16>
}

// -----

func.func @offset_beyond_the_table(%x: tensor<1x1x8x16xf16>, %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> tensor<1x1x8x16xf16> {
  // expected-note @below {{the constant is here}}
  %offset = arith.constant 9223372036854775807 : i64
  // expected-error @below {{expected 'cos' to have a row for each of 8 positions from 9223372036854775807 + 3, got 64 rows}}
  %r = attnfuse.rope %x, %cos, %sin half offset(%offset) {static_offset = 3}
      : tensor<1x1x8x16xf16>, tensor<64x8xf32>, tensor<64x8xf32>
  return %r : tensor<1x1x8x16xf16>
}

// -----

func.func @fused_offset(%q: tensor<1x1x32x16xf16>, %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> tensor<1x1x32x16xf16> {
  // expected-note @below {{the constant is here}}
  %offset = arith.constant -1 : i64
  // expected-error @below {{expected 'k_offset' and the constant offset to add up to at least 0, got -1 and 0}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_k <half, offset = 0>(%cos, %sin, offset %offset) softmax {scale = 0.25 : f64}
      : (tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<64x8xf32>, tensor<64x8xf32>, i64) -> tensor<1x1x32x16xf16>
  return %o : tensor<1x1x32x16xf16>
}

// -----

func.func @division_by_zero(%q: tensor<1x1x32x16xf16>) -> tensor<1x1x32x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        // expected-note @below {{the constant is here}}
        %zero = arith.constant 0 : index
        // expected-error @below {{'arith.remsi' op expected a divisor that is not 0}}
        %x = arith.remsi %i, %zero : index
        %n = arith.index_cast %x : index to i32
        %y = arith.sitofp %n : i32 to f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>) -> tensor<1x1x32x16xf16>
  return %o : tensor<1x1x32x16xf16>
}

// -----

func.func @constant_index(%q: tensor<1x1x32x16xf16>, %t: tensor<4x?xf32>) -> tensor<1x1x32x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %u: tensor<4x?xf32>):
        %four = arith.constant 4 : index
        // expected-error @below {{'tensor.extract' op expected index 0 to be at least 0 and below 4 in the score region, got 4}}
        %y = tensor.extract %u[%four, %j] : tensor<4x?xf32>
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<4x?xf32>) -> tensor<1x1x32x16xf16>
  return %o : tensor<1x1x32x16xf16>
}

// -----

func.func @index_of_a_query(%q: tensor<1x1x32x16xf16>, %t: tensor<31xf32>) -> tensor<1x1x32x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %u: tensor<31xf32>):
        // expected-error @below {{'tensor.extract' op expected index 0 to be at least 0 and below 31 in the score region, got up to 31}}
        %y = tensor.extract %u[%i] : tensor<31xf32>
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>, tensor<31xf32>) -> tensor<1x1x32x16xf16>
  return %o : tensor<1x1x32x16xf16>
}

// -----

// All of a constant becomes part of the code, that of a splat too.
func.func @large(%q: tensor<1x1x8x64xf16>) -> tensor<1x1x8x64xf16> {
  // expected-note @below {{the constant is here}}
  %k = arith.constant dense<1.0> : tensor<1x1x1073741824x64xf16>
  // expected-error @below {{expected constants of at most 268435456 bytes, got a 'tensor<1x1x1073741824x64xf16>'; make it an argument of the function}}
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64}
      : (tensor<1x1x8x64xf16>, tensor<1x1x1073741824x64xf16>, tensor<1x1x1073741824x64xf16>) -> tensor<1x1x8x64xf16>
  return %o : tensor<1x1x8x64xf16>
}
