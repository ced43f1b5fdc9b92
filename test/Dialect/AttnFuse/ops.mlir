// RUN: attnfuse-opt %s | attnfuse-opt | FileCheck %s

// CHECK-LABEL: func @chain
func.func @chain(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>,
                 %cos: tensor<8192x64xf32>, %sin: tensor<8192x64xf32>) -> tensor<?x32x?x128xbf16> {
  // CHECK: attnfuse.rope %{{.*}}, %{{.*}}, %{{.*}} half : tensor<?x32x?x128xbf16>
  %qr = attnfuse.rope %q, %cos, %sin half : tensor<?x32x?x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
  %kr = attnfuse.rope %k, %cos, %sin half : tensor<?x8x?x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x?xf32>
  // CHECK: attnfuse.causal %{{.*}} bottom_right : tensor<?x32x?x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x32x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x32x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x32x?x?xf32>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}

// CHECK-LABEL: func @fused
func.func @fused(%q: tensor<2x16x?x64xf16>, %k: tensor<2x16x?x64xf16>, %v: tensor<2x16x?x64xf16>,
                 %bias: tensor<?x?xf32>, %cos: tensor<8192x32xf32>, %rows: tensor<?xi32>, %off: i64)
    -> (tensor<2x16x?x64xf16>, tensor<2x16x?xf32>) {
  // CHECK: attnfuse.attention q(%{{.*}}) k(%{{.*}}) v(%{{.*}}) rotate_q <half, offset = 3>(%{{.*}}, %{{.*}}, offset %{{.*}}) blocks <64x128>(%{{.*}}, %{{.*}}) bands [#attnfuse.band<bottom_right, right = 0>] softmax score operands(%{{.*}})
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%v) rotate_q <half, offset = 3>(%cos, %cos, offset %off)
      blocks <64x128>(%rows, %rows) bands [#attnfuse.band<bottom_right, right = 0>] softmax score operands(%bias) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<?x?xf32>):
        %x = tensor.extract %t[%i, %j] : tensor<?x?xf32>
        %y = arith.addf %s, %x : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false> {scale = 0.125 : f64}
      : (tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>, tensor<8192x32xf32>, tensor<8192x32xf32>, i64,
         tensor<?xi32>, tensor<?xi32>, tensor<?x?xf32>) -> (tensor<2x16x?x64xf16>, tensor<2x16x?xf32>)
  return %o, %lse : tensor<2x16x?x64xf16>, tensor<2x16x?xf32>
}

!x = tensor<?x4x?x32xf16>
!s = tensor<?x4x?x?xf32>

// CHECK-LABEL: func @rope
func.func @rope(%x: !x, %cos: tensor<64x8xf16>, %sin: tensor<64x8xf16>, %n: i64, %p1: tensor<?xi32>, %p2: tensor<?x?xi64>) {
  // CHECK-NEXT: attnfuse.rope %arg0, %arg1, %arg2 half : tensor<?x4x?x32xf16>, tensor<64x8xf16>, tensor<64x8xf16>
  %0 = attnfuse.rope %x, %cos, %sin half : !x, tensor<64x8xf16>, tensor<64x8xf16>
  // CHECK-NEXT: attnfuse.rope %arg0, %arg1, %arg2 interleaved offset(%arg3) {static_offset = 2 : i64} :
  %1 = attnfuse.rope %x, %cos, %sin interleaved offset(%n) {static_offset = 2} : !x, tensor<64x8xf16>, tensor<64x8xf16>
  // CHECK-NEXT: attnfuse.rope %arg0, %arg1, %arg2 half positions(%arg4 : tensor<?xi32>) :
  %2 = attnfuse.rope %x, %cos, %sin half positions(%p1 : tensor<?xi32>) : !x, tensor<64x8xf16>, tensor<64x8xf16>
  // CHECK-NEXT: attnfuse.rope %arg0, %arg1, %arg2 half positions(%arg5 : tensor<?x?xi64>) :
  %3 = attnfuse.rope %x, %cos, %sin half positions(%p2 : tensor<?x?xi64>) : !x, tensor<64x8xf16>, tensor<64x8xf16>
  // CHECK-NEXT: return
  return
}

// CHECK-LABEL: func @product
func.func @product(%q: !x, %k: tensor<?x2x?x32xf16>, %v: tensor<?x2x?x48xf16>) {
  // CHECK-NEXT: %[[S:.+]] = attnfuse.scaled_dot_product %arg0, %arg1 : tensor<?x4x?x32xf16>, tensor<?x2x?x32xf16> -> tensor<?x4x?x?xf32>
  %s = attnfuse.scaled_dot_product %q, %k : !x, tensor<?x2x?x32xf16> -> !s
  // CHECK-NEXT: attnfuse.scaled_dot_product %arg0, %arg1 {scale = 5.000000e-01 : f64} :
  %t = attnfuse.scaled_dot_product %q, %k {scale = 0.5} : !x, tensor<?x2x?x32xf16> -> !s
  // CHECK-NEXT: attnfuse.weighted_sum %[[S]], %arg2 : tensor<?x4x?x?xf32>, tensor<?x2x?x48xf16> -> tensor<?x4x?x48xf16>
  %o = attnfuse.weighted_sum %s, %v : !s, tensor<?x2x?x48xf16> -> tensor<?x4x?x48xf16>
  // CHECK-NEXT: attnfuse.weighted_sum {{.*}} -> tensor<?x4x?x48xf32>
  %f = attnfuse.weighted_sum %s, %v : !s, tensor<?x2x?x48xf16> -> tensor<?x4x?x48xf32>
  return
}

// CHECK-LABEL: func @masks
func.func @masks(%s: !s, %r1: tensor<?xi32>, %r3: tensor<1x4x?xi32>, %c: tensor<?xi32>) {
  // CHECK-NEXT: attnfuse.full %arg0 : tensor<?x4x?x?xf32>
  %0 = attnfuse.full %s : !s
  // CHECK-NEXT: attnfuse.causal %arg0 top_left : tensor<?x4x?x?xf32>
  %1 = attnfuse.causal %s top_left : !s
  // CHECK-NEXT: attnfuse.sliding_window %arg0 bottom_right {left = 0 : i64, right = 2147483647 : i64} :
  %2 = attnfuse.sliding_window %s bottom_right {left = 0, right = 2147483647} : !s
  // CHECK-NEXT: attnfuse.sliding_window %arg0 top_left {left = 3 : i64} :
  %3 = attnfuse.sliding_window %s top_left {left = 3} : !s
  // CHECK-NEXT: attnfuse.sliding_window %arg0 top_left :
  %4 = attnfuse.sliding_window %s top_left : !s
  // CHECK-NEXT: attnfuse.block_sparse %arg0, %arg1, %arg3 {key_block = 32 : i64, query_block = 64 : i64} : tensor<?x4x?x?xf32>, tensor<?xi32>, tensor<?xi32>
  %5 = attnfuse.block_sparse %s, %r1, %c {query_block = 64, key_block = 32} : !s, tensor<?xi32>, tensor<?xi32>
  // CHECK-NEXT: attnfuse.block_sparse %arg0, %arg2, %arg3 {key_block = 32 : i64, query_block = 64 : i64} : tensor<?x4x?x?xf32>, tensor<1x4x?xi32>, tensor<?xi32>
  %6 = attnfuse.block_sparse %s, %r3, %c {query_block = 64, key_block = 32} : !s, tensor<1x4x?xi32>, tensor<?xi32>
  return
}

// CHECK-LABEL: func @modifiers
func.func @modifiers(%s: !s, %m: tensor<4xf32>, %mb: tensor<?x4xf32>, %b0: tensor<f16>, %b4: tensor<?x1x?x?xbf16>) {
  // CHECK-NEXT: attnfuse.alibi %arg0 top_left : tensor<?x4x?x?xf32>
  %0 = attnfuse.alibi %s top_left : !s
  // CHECK-NEXT: attnfuse.alibi %arg0 bottom_right slopes(%arg1 : tensor<4xf32>) : tensor<?x4x?x?xf32>
  %1 = attnfuse.alibi %s bottom_right slopes(%m : tensor<4xf32>) : !s
  // CHECK-NEXT: attnfuse.alibi %arg0 bottom_right slopes(%arg2 : tensor<?x4xf32>) : tensor<?x4x?x?xf32>
  %2 = attnfuse.alibi %s bottom_right slopes(%mb : tensor<?x4xf32>) : !s
  // CHECK-NEXT: attnfuse.additive_bias %arg0, %arg3 : tensor<?x4x?x?xf32>, tensor<f16>
  %3 = attnfuse.additive_bias %s, %b0 : !s, tensor<f16>
  // CHECK-NEXT: attnfuse.additive_bias %arg0, %arg4 : tensor<?x4x?x?xf32>, tensor<?x1x?x?xbf16>
  %4 = attnfuse.additive_bias %s, %b4 : !s, tensor<?x1x?x?xbf16>
  return
}

// CHECK-LABEL: func @normalizers
func.func @normalizers(%s: !s, %h: index, %n: index) {
  // CHECK-NEXT: attnfuse.softmax %arg0 : tensor<?x4x?x?xf32>
  %0 = attnfuse.softmax %s : !s
  // CHECK-NEXT: %{{.+}}, %{{.+}} = attnfuse.softmax %arg0 : tensor<?x4x?x?xf32>, tensor<?x4x?xf32>
  %1, %lse = attnfuse.softmax %s : !s, tensor<?x4x?xf32>
  // CHECK-NEXT: attnfuse.relu_attention %arg0 sum : tensor<?x4x?x?xf32>
  %2 = attnfuse.relu_attention %s sum : !s
  // CHECK-NEXT: attnfuse.relu_attention %arg0 length : tensor<?x4x?x?xf32>
  %3 = attnfuse.relu_attention %s length : !s
  // CHECK-NEXT: attnfuse.relu_attention %arg0 none : tensor<?x4x?x?xf32>
  %4 = attnfuse.relu_attention %s none : !s
  // CHECK-NEXT: attnfuse.alibi_slope %arg1, %arg2
  %5 = attnfuse.alibi_slope %h, %n
  return
}

// CHECK-LABEL: func @attention
func.func @attention(%q: !x, %t: tensor<64x8xf16>, %p: tensor<?xi32>) {
  // CHECK-NEXT: attnfuse.attention q(%arg0) k(%arg0) v(%arg0) relu_length {scale = 1.000000e+00 : f64} : (tensor<?x4x?x32xf16>, tensor<?x4x?x32xf16>, tensor<?x4x?x32xf16>) -> tensor<?x4x?x32xf16>
  %0 = attnfuse.attention q(%q) k(%q) v(%q) relu_length {scale = 1.0} : (!x, !x, !x) -> !x
  // CHECK-NEXT: attnfuse.attention {{.*}} rotate_k <interleaved, offset = 5>(%arg1, %arg1, positions %arg2) relu_none {note = "kept", scale = 1.000000e+00 : f64}
  %1 = attnfuse.attention q(%q) k(%q) v(%q) rotate_k <interleaved, offset = 5>(%t, %t, positions %p) relu_none {scale = 1.0, note = "kept"}
      : (!x, !x, !x, tensor<64x8xf16>, tensor<64x8xf16>, tensor<?xi32>) -> !x
  // CHECK-NEXT: attnfuse.attention {{.*}} bands [#attnfuse.band<top_left>, #attnfuse.band<bottom_right, left = 0>] relu_sum
  %2 = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<top_left>, #attnfuse.band<bottom_right, left = 0>] relu_sum {scale = 1.0} : (!x, !x, !x) -> !x
  return
}
