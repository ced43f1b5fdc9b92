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
