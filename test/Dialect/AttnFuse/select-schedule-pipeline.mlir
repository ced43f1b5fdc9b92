// RUN: attnfuse-opt %s --attnfuse-select-schedule | FileCheck %s

// Tiles and pipelines on sm_90a, and what falls back to the schedules of other chips.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: func @d24(
// CHECK: schedule <tile_m = 192, tile_n = 128, warps = 12, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = rows,
func.func @d24(%q: tensor<?x8x?x24xbf16>, %k: tensor<?x8x?x24xbf16>, %v: tensor<?x8x?x24xbf16>) -> tensor<?x8x?x24xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x24xbf16>, tensor<?x8x?x24xbf16>, tensor<?x8x?x24xbf16>) -> tensor<?x8x?x24xbf16>
  return %o : tensor<?x8x?x24xbf16>
}

// CHECK-LABEL: func @d64_causal(
// CHECK: schedule <tile_m = 192, tile_n = 128, warps = 12, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 2, partial_maxima = 1, skip_rescale = true, product_wait = end>>
func.func @d64_causal(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %v: tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<top_left, right = 0>] softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}

// CHECK-LABEL: func @d128(
// CHECK: schedule <tile_m = 128, tile_n = 128, warps = 8, q_in_registers = true, pipeline = <stages = 2, ping_pong = false, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = with_next_key>>
func.func @d128(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}

// CHECK-LABEL: func @d256(
// CHECK: schedule <tile_m = 128, tile_n = 64, warps = 8, {{.*}} pipeline =
func.func @d256(%q: tensor<?x8x?x256xf16>, %k: tensor<?x8x?x256xf16>, %v: tensor<?x8x?x256xf16>) -> tensor<?x8x?x256xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x256xf16>, tensor<?x8x?x256xf16>, tensor<?x8x?x256xf16>) -> tensor<?x8x?x256xf16>
  return %o : tensor<?x8x?x256xf16>
}

// Few queries: one computing warpgroup.
// CHECK-LABEL: func @decode(
// CHECK: schedule <tile_m = 64, tile_n = 32, warps = 4, {{.*}} pipeline =
func.func @decode(%q: tensor<?x8x1x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x1x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16>
  return %o : tensor<?x8x1x128xbf16>
}

// A tile lies in one block.
// CHECK-LABEL: func @blocks64(
// CHECK: schedule <tile_m = 64, tile_n = 64, warps = 4, {{.*}} pipeline =
func.func @blocks64(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %v: tensor<?x8x?x64xf16>, %rows: tensor<?xi32>, %cols: tensor<?xi32>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) blocks <64x64>(%rows, %cols) softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// Blocks below 64 x 64, and scores that each load something, are left to blocks without roles.
// CHECK-LABEL: func @blocks32(
// CHECK: schedule <tile_m = 32,
// CHECK-NOT: pipeline
func.func @blocks32(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %v: tensor<?x8x?x64xf16>, %rows: tensor<?xi32>, %cols: tensor<?xi32>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) blocks <32x128>(%rows, %cols) softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// CHECK-LABEL: func @bias(
// CHECK: schedule <
// CHECK-NOT: pipeline
func.func @bias(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %v: tensor<?x8x?x64xf16>, %bias: tensor<?x?xf16>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score operands(%bias) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %table: tensor<?x?xf16>):
    %half = tensor.extract %table[%i, %j] : tensor<?x?xf16>
    %x = arith.extf %half : f16 to f32
    %sum = arith.addf %s, %x : f32
    attnfuse.yield %sum : f32
  } {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x?xf16>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// What is loaded once for a head does not matter.
// CHECK-LABEL: func @sinks(
// CHECK: schedule <tile_m = 192, {{.*}} pipeline =
func.func @sinks(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %v: tensor<?x8x?x64xf16>, %slopes: tensor<8xf32>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score operands(%slopes) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %table: tensor<8xf32>):
    %x = tensor.extract %table[%h] : tensor<8xf32>
    %product = arith.mulf %s, %x : f32
    attnfuse.yield %product : f32
  } {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<8xf32>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// A bias of four dimensions comes in tiles with the keys.
// CHECK-LABEL: func @staged_bias(
// CHECK: schedule <tile_m = 128, tile_n = 128, {{.*}} pipeline =
func.func @staged_bias(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %v: tensor<?x8x?x64xf16>, %bias: tensor<1x8x?x?xf16>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score operands(%bias) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %table: tensor<1x8x?x?xf16>):
    %zero = arith.constant 0 : index
    %half = tensor.extract %table[%zero, %h, %i, %j] : tensor<1x8x?x?xf16>
    %x = arith.extf %half : f16 to f32
    %sum = arith.addf %s, %x : f32
    attnfuse.yield %sum : f32
  } {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<1x8x?x?xf16>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// A table in the module has no address that the host could make a tensor map of.
// CHECK-LABEL: func @constant_key(
// CHECK: schedule <
// CHECK-NOT: pipeline
// CHECK: return
func.func @constant_key(%q: tensor<?x1x?x16xf16>, %v: tensor<?x1x2x16xf16>) -> tensor<1x1x?x16xf16> {
  %k = arith.constant dense<1.0> : tensor<1x1x2x16xf16>
  %qc = tensor.cast %q : tensor<?x1x?x16xf16> to tensor<1x1x?x16xf16>
  %vc = tensor.cast %v : tensor<?x1x2x16xf16> to tensor<1x1x2x16xf16>
  %o = attnfuse.attention q(%qc) k(%k) v(%vc) softmax {scale = 0.125 : f64} : (tensor<1x1x?x16xf16>, tensor<1x1x2x16xf16>, tensor<1x1x2x16xf16>) -> tensor<1x1x?x16xf16>
  return %o : tensor<1x1x?x16xf16>
}
}
