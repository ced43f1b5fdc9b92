// RUN: attnfuse-opt %s --split-input-file --attnfuse-select-schedule --verify-diagnostics | FileCheck %s
// RUN: sed 's/packed_heads = 2/packed_heads = 3/' %s | not attnfuse-opt --split-input-file 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: sed 's/packed_heads = 2/packed_heads = 0/' %s | not attnfuse-opt --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/packed_heads = 2/packed_heads = 1152921504606846976/' %s | not attnfuse-opt --split-input-file 2>&1 | FileCheck %s --check-prefix=HUGE

// Query heads of one key head share a tile: as many as divide it into rows that a warp and a
// warpgroup can have.

// UNEVEN: error: {{.*}}expected packed_heads to divide tile_m into multiples of 16 rows, got 3
// HUGE: error: {{.*}}expected packed_heads to divide tile_m into multiples of 16 rows, got 1152921504606846976
// NONE: error: {{.*}}expected packed_heads to divide tile_m into multiples of 16 rows, got 0

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: func.func @four_of_four
// CHECK:         schedule <tile_m = 128, {{.*}}, packed_heads = 4, pipeline = <
func.func @four_of_four(%q: tensor<?x32x?x128xf16>, %k: tensor<?x8x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) -> tensor<?x32x?x128xf16>
  return %o : tensor<?x32x?x128xf16>
}

// 16 rows of each of 8.
// CHECK-LABEL: func.func @eight_of_sixteen
// CHECK:         schedule <tile_m = 128, {{.*}}, packed_heads = 8, pipeline = <
func.func @eight_of_sixteen(%q: tensor<?x16x?x128xf16>, %k: tensor<?x1x?x128xf16>) -> tensor<?x16x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x16x?x128xf16>, tensor<?x1x?x128xf16>, tensor<?x1x?x128xf16>) -> tensor<?x16x?x128xf16>
  return %o : tensor<?x16x?x128xf16>
}

// 192 rows are 16 of each of 12; the 64 rows of a warpgroup are no box of 48 of each of 4.
// CHECK-LABEL: func.func @twelve_of_twelve
// CHECK:         schedule <tile_m = 192, {{.*}}, packed_heads = 12, pipeline = <
func.func @twelve_of_twelve(%q: tensor<?x12x?x64xf16>, %k: tensor<?x1x?x64xf16>) -> tensor<?x12x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x12x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>) -> tensor<?x12x?x64xf16>
  return %o : tensor<?x12x?x64xf16>
}

// CHECK-LABEL: func.func @none_of_four
// CHECK:         schedule <tile_m = 192,
// CHECK-NOT:     packed_heads
func.func @none_of_four(%q: tensor<?x4x?x64xf16>, %k: tensor<?x1x?x64xf16>) -> tensor<?x4x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x4x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>) -> tensor<?x4x?x64xf16>
  return %o : tensor<?x4x?x64xf16>
}

// 7 divides no tile, 1 of 1 is nothing, and the numbers may be unknown.
// CHECK-LABEL: func.func @none_of_seven
// CHECK:         schedule <tile_m = 128, {{.*}}q_in_registers = {{true|false}}, pipeline = <
func.func @none_of_seven(%q: tensor<?x28x?x128xf16>, %k: tensor<?x4x?x128xf16>) -> tensor<?x28x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x28x?x128xf16>, tensor<?x4x?x128xf16>, tensor<?x4x?x128xf16>) -> tensor<?x28x?x128xf16>
  return %o : tensor<?x28x?x128xf16>
}
// CHECK-LABEL: func.func @unknown
// CHECK:         schedule <tile_m = 128, {{.*}}q_in_registers = {{true|false}}, pipeline = <
func.func @unknown(%q: tensor<?x?x?x128xf16>, %k: tensor<?x4x?x128xf16>) -> tensor<?x?x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x?x?x128xf16>, tensor<?x4x?x128xf16>, tensor<?x4x?x128xf16>) -> tensor<?x?x?x128xf16>
  return %o : tensor<?x?x?x128xf16>
}

// Heads that have block lists of their own visit other keys, and a bias of every head is another
// tile; lists and biases of all heads do not matter.
// CHECK-LABEL: func.func @lists_of_heads
// CHECK:         schedule <tile_m = 128, {{.*}}q_in_registers = {{true|false}}, pipeline = <
func.func @lists_of_heads(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>, %rows: tensor<1x8x?xi32>, %columns: tensor<?xi32>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) blocks <128x128>(%rows, %columns) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<1x8x?xi32>, tensor<?xi32>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}
// CHECK-LABEL: func.func @bias_of_heads
// CHECK:         schedule <tile_m = 128, {{.*}}q_in_registers = {{true|false}}, pipeline = <
func.func @bias_of_heads(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>, %bias: tensor<1x8x?x?xf16>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax score operands(%bias) {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<1x8x?x?xf16>):
    %zero = arith.constant 0 : index
    %e = tensor.extract %t[%zero, %h, %i, %j] : tensor<1x8x?x?xf16>
    %f = arith.extf %e : f16 to f32
    %y = arith.addf %x, %f : f32
    attnfuse.yield %y : f32
  } {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<1x8x?x?xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}
// CHECK-LABEL: func.func @lists_of_all
// CHECK:         packed_heads = 4
func.func @lists_of_all(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>, %rows: tensor<1x1x?xi32>, %columns: tensor<?xi32>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) blocks <128x128>(%rows, %columns) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<1x1x?xi32>, tensor<?xi32>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}

// CHECK-LABEL: func.func @asked_for
// CHECK:         packed_heads = 2, pipeline
func.func @asked_for(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax schedule <tile_m = 128, tile_n = 128, warps = 8, q_in_registers = true, packed_heads = 2, pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
func.func @more_than_there_are(%q: tensor<?x8x?x128xf16>, %k: tensor<?x4x?x128xf16>) -> tensor<?x8x?x128xf16> {
  // expected-error @below {{expected packed_heads to divide 2, the query heads that may share a tile, got 4}}
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax schedule <tile_m = 128, tile_n = 128, warps = 8, q_in_registers = true, packed_heads = 4, pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x4x?x128xf16>, tensor<?x4x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}
func.func @no_box(%q: tensor<?x16x?x64xf16>, %k: tensor<?x4x?x64xf16>) -> tensor<?x16x?x64xf16> {
  // expected-error @below {{expected packed_heads to divide tile_m into 16, 32 or multiples of 64 rows, got 4}}
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax schedule <tile_m = 192, tile_n = 128, warps = 12, q_in_registers = false, packed_heads = 4, pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x16x?x64xf16>, tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16>) -> tensor<?x16x?x64xf16>
  return %o : tensor<?x16x?x64xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
func.func @not_pipelined(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>) -> tensor<?x8x?x128xf16> {
  // expected-error @below {{expected packed_heads = 1 without a pipeline, got 4}}
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, packed_heads = 4> {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}
}
