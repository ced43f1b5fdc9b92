// Every function and every --dims is one checked call.

// RUN: attnfuse-run %s --random=3 --check --time --dims=B=1,N=5 --dims=Nq=3,Nkv=8 2>&1 | FileCheck %s
// CHECK: chain: fused rope, scaled_dot_product, causal, additive_bias, softmax, weighted_sum into one attention (rotation of q, score chain, 1 band, softmax, log-sum-exp)
// CHECK-NEXT: chain [B=1, Nq=5, Nkv=5, P=42] on cpu
// CHECK-NEXT: output: max abs error {{.*}}, {{.*}} of its bound; relative L2 error {{.*}}, bound {{.*}}: PASS
// CHECK-NEXT: lse: max abs error {{.*}}: PASS
// CHECK-NEXT: time: median {{.*}} us, min {{.*}} us of {{[0-9]+}} runs; at the median {{.*}} TFLOP/s, {{.*}} GB/s
// CHECK-NEXT: chain [B=2, Nq=3, Nkv=8, P=40] on cpu
// CHECK: fused: fused one attention (1 band, relu_sum)
// CHECK-NEXT: fused [B=1, Nq=5, Nkv=5] on cpu
// CHECK: fused [B=2, Nq=3, Nkv=8] on cpu
// CHECK: 4 passed, 0 failed

func.func @chain(%q: tensor<?x2x?x10xf32>, %k: tensor<?x1x?x10xf32>, %v: tensor<?x1x?x3xf32>, %cos: tensor<?x4xf32>,
                 %sin: tensor<?x4xf32>, %offset: i64, %bias: tensor<?x?xf32>)
    -> (tensor<?x2x?x3xf32>, tensor<?x2x?xf32>) {
  %r = attnfuse.rope %q, %cos, %sin interleaved offset(%offset) : tensor<?x2x?x10xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %s = attnfuse.scaled_dot_product %r, %k : tensor<?x2x?x10xf32>, tensor<?x1x?x10xf32> -> tensor<?x2x?x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x2x?x?xf32>
  %b = attnfuse.additive_bias %m, %bias : tensor<?x2x?x?xf32>, tensor<?x?xf32>
  %p, %lse = attnfuse.softmax %b : tensor<?x2x?x?xf32>, tensor<?x2x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x2x?x?xf32>, tensor<?x1x?x3xf32> -> tensor<?x2x?x3xf32>
  return %o, %lse : tensor<?x2x?x3xf32>, tensor<?x2x?xf32>
}

func.func @fused(%q: tensor<?x2x?x8xbf16>, %k: tensor<?x2x?x8xbf16>, %v: tensor<?x2x?x8xbf16>) -> tensor<?x2x?x8xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<top_left, left = 2>] relu_sum {scale = 0.25 : f64}
      : (tensor<?x2x?x8xbf16>, tensor<?x2x?x8xbf16>, tensor<?x2x?x8xbf16>) -> tensor<?x2x?x8xbf16>
  return %o : tensor<?x2x?x8xbf16>
}
