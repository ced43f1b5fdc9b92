// RUN: attnfuse-opt %s --attnfuse-fuse --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @dense
// CHECK-SAME: (%[[Q:.+]]: tensor<2x12x?x64xf16>, %[[K:.+]]: tensor<2x4x?x64xf16>, %[[V:.+]]: tensor<2x4x?x32xf16>)
func.func @dense(%q: tensor<2x12x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x32xf16>) -> tensor<2x12x?x32xf16> {
  // CHECK-NEXT: %[[O:.+]] = attnfuse.attention q(%[[Q]]) k(%[[K]]) v(%[[V]]) softmax {scale = 1.250000e-01 : f64}
  // CHECK-SAME: -> tensor<2x12x?x32xf16>
  // CHECK-NEXT: return %[[O]]
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x12x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x12x?x?xf32>
  %m = attnfuse.full %s : tensor<2x12x?x?xf32>
  %p = attnfuse.softmax %m : tensor<2x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<2x12x?x?xf32>, tensor<2x4x?x32xf16> -> tensor<2x12x?x32xf16>
  return %o : tensor<2x12x?x32xf16>
}

// -----

// CHECK-LABEL: func @scale_and_relu_sum
func.func @scale_and_relu_sum(%q: tensor<1x2x8x16xbf16>, %k: tensor<1x2x8x16xbf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xf32> {
  // CHECK-NEXT: attnfuse.attention {{.*}} relu_sum {scale = 2.500000e+00 : f64} : {{.*}} -> tensor<1x2x8x16xf32>
  // CHECK-NEXT: return
  %s = attnfuse.scaled_dot_product %q, %k {scale = 2.5} : tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.relu_attention %s sum : tensor<1x2x8x8xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// CHECK-LABEL: func @relu_length_and_none
func.func @relu_length_and_none(%q: tensor<1x2x8x16xbf16>, %k: tensor<1x2x8x16xbf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  // CHECK-NEXT: %[[O:.+]] = attnfuse.attention {{.*}} relu_length
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.relu_attention %s length : tensor<1x2x8x8xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x16xbf16>
  // CHECK-NEXT: attnfuse.attention q(%[[O]]) {{.*}} relu_none
  // CHECK-NEXT: return
  %t = attnfuse.scaled_dot_product %o, %k : tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x8xf32>
  %r = attnfuse.relu_attention %t none : tensor<1x2x8x8xf32>
  %u = attnfuse.weighted_sum %r, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x16xbf16>
  return %u : tensor<1x2x8x16xbf16>
}

// -----

// CHECK-LABEL: func @lse_after
func.func @lse_after(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>) -> (tensor<1x2x?x16xf16>, tensor<1x2x?xf32>) {
  // CHECK-NEXT: %[[O:.+]], %[[L:.+]] = attnfuse.attention {{.*}} -> (tensor<1x2x?x16xf16>, tensor<1x2x?xf32>)
  // CHECK-NEXT: return %[[O]], %[[L]]
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x?xf32>
  %p, %lse = attnfuse.softmax %s : tensor<1x2x?x?xf32>, tensor<1x2x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x?x?xf32>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>
  return %o, %lse : tensor<1x2x?x16xf16>, tensor<1x2x?xf32>
}

// -----

// The log-sum-exp is used before the weighted sum.
// CHECK-LABEL: func @lse_before
func.func @lse_before(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8xf32>) {
  // CHECK-NEXT: %[[O:.+]], %[[L:.+]] = attnfuse.attention
  // CHECK-NEXT: %[[E:.+]] = math.exp %[[L]]
  // CHECK-NEXT: return %[[O]], %[[E]]
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %p, %lse = attnfuse.softmax %s : tensor<1x2x8x8xf32>, tensor<1x2x8xf32>
  %e = math.exp %lse : tensor<1x2x8xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o, %e : tensor<1x2x8x16xf16>, tensor<1x2x8xf32>
}

// -----

// CHECK-LABEL: func @lse_unused
func.func @lse_unused(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // CHECK-NEXT: %{{[a-z0-9]+}} = attnfuse.attention
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %p, %lse = attnfuse.softmax %s : tensor<1x2x8x8xf32>, tensor<1x2x8xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @ropes
// CHECK-SAME: (%[[Q:[^:]+]]: {{[^,]+}}, %[[K:[^:]+]]: {{[^,]+}}, %[[V:[^:]+]]: {{[^,]+}}, %[[C:[^:]+]]: {{[^,]+}}, %[[S:[^:]+]]: {{[^,]+}}, %[[OFF:[^:]+]]: i64, %[[POS:[^:]+]]: tensor<?x?xi32>)
func.func @ropes(%q: tensor<?x2x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>, %c: tensor<?x4xf16>, %s: tensor<?x4xf16>,
                 %off: i64, %pos: tensor<?x?xi32>) -> tensor<?x2x?x16xf16> {
  // CHECK-NEXT: attnfuse.attention q(%[[Q]]) k(%[[K]]) v(%[[V]])
  // CHECK-SAME: rotate_q <half, offset = 3>(%[[C]], %[[S]], offset %[[OFF]])
  // CHECK-SAME: rotate_k <interleaved, offset = 0>(%[[S]], %[[C]], positions %[[POS]]) softmax
  // CHECK-NEXT: return
  %qr = attnfuse.rope %q, %c, %s half offset(%off) {static_offset = 3} : tensor<?x2x?x16xf16>, tensor<?x4xf16>, tensor<?x4xf16>
  %kr = attnfuse.rope %k, %s, %c interleaved positions(%pos : tensor<?x?xi32>) : tensor<?x2x?x16xf16>, tensor<?x4xf16>, tensor<?x4xf16>
  %x = attnfuse.scaled_dot_product %qr, %kr : tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x2x?x?xf32>
  %p = attnfuse.softmax %x : tensor<?x2x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x2x?x?xf32>, tensor<?x2x?x16xf16> -> tensor<?x2x?x16xf16>
  return %o : tensor<?x2x?x16xf16>
}

// -----

// q and k are one tensor, rotated once.
// CHECK-LABEL: func @shared_rope
// CHECK-SAME: (%[[X:[^:]+]]: {{[^,]+}}, %[[T:[^:]+]]:
func.func @shared_rope(%x: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>) -> tensor<1x2x8x16xf16> {
  // CHECK-NEXT: attnfuse.attention q(%[[X]]) k(%[[X]]) v(%[[X]]) rotate_q <half, offset = 0>(%[[T]], %[[T]]) rotate_k <half, offset = 0>(%[[T]], %[[T]])
  // CHECK-NEXT: return
  %r = attnfuse.rope %x, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  %s = attnfuse.scaled_dot_product %r, %r : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  %o = attnfuse.weighted_sum %p, %x : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// Bands keep their order; a window without bounds is none.
// CHECK-LABEL: func @masks
// CHECK-SAME: %[[R:[^:]+]]: tensor<?xi32>, %[[C:[^:]+]]: tensor<?xi32>)
func.func @masks(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %r: tensor<?xi32>, %c: tensor<?xi32>) -> tensor<1x2x?x16xf16> {
  // CHECK-NEXT: attnfuse.attention {{.*}} blocks <64x32>(%[[R]], %[[C]])
  // CHECK-SAME: bands [#attnfuse.band<bottom_right, right = 0>, #attnfuse.band<top_left, left = 5>, #attnfuse.band<bottom_right, left = 3, right = 7>, #attnfuse.band<top_left, right = 0>] softmax {
  // CHECK-NEXT: return
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x?xf32>
  %0 = attnfuse.causal %s bottom_right : tensor<1x2x?x?xf32>
  %1 = attnfuse.sliding_window %0 top_left {left = 5} : tensor<1x2x?x?xf32>
  %2 = attnfuse.block_sparse %1, %r, %c {query_block = 64, key_block = 32} : tensor<1x2x?x?xf32>, tensor<?xi32>, tensor<?xi32>
  %3 = attnfuse.sliding_window %2 bottom_right : tensor<1x2x?x?xf32>
  %4 = attnfuse.sliding_window %3 bottom_right {left = 3, right = 7} : tensor<1x2x?x?xf32>
  %5 = attnfuse.causal %4 top_left : tensor<1x2x?x?xf32>
  %p = attnfuse.softmax %5 : tensor<1x2x?x?xf32>
  %o = attnfuse.weighted_sum %p, %k : tensor<1x2x?x?xf32>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}

// -----

// CHECK-LABEL: func @alibi_standard
func.func @alibi_standard(%q: tensor<1x?x?x16xf16>, %k: tensor<1x?x?x16xf16>) -> tensor<1x?x?x16xf16> {
  // CHECK-NEXT: attnfuse.attention {{.*}} softmax score {
  // CHECK-NEXT: ^bb0(%[[S:.+]]: f32, %[[B:.+]]: index, %[[H:.+]]: index, %[[I:.+]]: index, %[[J:.+]]: index, %[[NQ:.+]]: index, %[[NKV:.+]]: index, %[[HQ:.+]]: index):
  // CHECK-NEXT: %[[M:.+]] = attnfuse.alibi_slope %[[H]], %[[HQ]]
  // CHECK-NEXT: %[[OFF:.+]] = arith.subi %[[NKV]], %[[NQ]] : index
  // CHECK-NEXT: %[[DIAG:.+]] = arith.addi %[[I]], %[[OFF]] : index
  // CHECK-NEXT: %[[D:.+]] = arith.subi %[[DIAG]], %[[J]] : index
  // CHECK-NEXT: %[[D32:.+]] = arith.index_cast %[[D]] : index to i32
  // CHECK-NEXT: %[[DF:.+]] = arith.sitofp %[[D32]] : i32 to f32
  // CHECK-NEXT: %[[ABS:.+]] = math.absf %[[DF]] : f32
  // CHECK-NEXT: %[[P:.+]] = arith.mulf %[[M]], %[[ABS]] : f32
  // CHECK-NEXT: %[[R:.+]] = arith.subf %[[S]], %[[P]] : f32
  // CHECK-NEXT: attnfuse.yield %[[R]] : f32
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x?x?x16xf16>, tensor<1x?x?x16xf16> -> tensor<1x?x?x?xf32>
  %a = attnfuse.alibi %s bottom_right : tensor<1x?x?x?xf32>
  %p = attnfuse.softmax %a : tensor<1x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %k : tensor<1x?x?x?xf32>, tensor<1x?x?x16xf16> -> tensor<1x?x?x16xf16>
  return %o : tensor<1x?x?x16xf16>
}

// -----

// CHECK-LABEL: func @alibi_slopes
// CHECK-SAME: %[[SL:[^:]+]]: tensor<3xf32>, %[[SLB:[^:]+]]: tensor<?x3xf32>)
func.func @alibi_slopes(%q: tensor<?x3x8x16xf16>, %sl: tensor<3xf32>, %slb: tensor<?x3xf32>) -> tensor<?x3x8x16xf16> {
  // CHECK-NEXT: attnfuse.attention {{.*}} score operands(%[[SL]], %[[SLB]]) {
  // CHECK-NEXT: ^bb0(%[[S:.+]]: f32, %[[B:.+]]: index, %[[H:.+]]: index, %[[I:.+]]: index, %[[J:.+]]: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %[[A:.+]]: tensor<3xf32>, %[[AB:.+]]: tensor<?x3xf32>):
  // CHECK-NEXT: %[[M:.+]] = tensor.extract %[[A]][%[[H]]] : tensor<3xf32>
  // CHECK-NEXT: arith.subi %[[I]], %[[J]] : index
  // CHECK: %[[R:.+]] = arith.subf %[[S]],
  // CHECK: %[[MB:.+]] = tensor.extract %[[AB]][%[[B]], %[[H]]] : tensor<?x3xf32>
  // CHECK: %[[PB:.+]] = arith.mulf %[[MB]],
  // CHECK: %[[T:.+]] = arith.subf %[[R]], %[[PB]]
  // CHECK: attnfuse.yield %[[T]]
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x3x8x16xf16>, tensor<?x3x8x16xf16> -> tensor<?x3x8x8xf32>
  %a = attnfuse.alibi %s top_left slopes(%sl : tensor<3xf32>) : tensor<?x3x8x8xf32>
  %b = attnfuse.alibi %a bottom_right slopes(%slb : tensor<?x3xf32>) : tensor<?x3x8x8xf32>
  %p = attnfuse.softmax %b : tensor<?x3x8x8xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x3x8x8xf32>, tensor<?x3x8x16xf16> -> tensor<?x3x8x16xf16>
  return %o : tensor<?x3x8x16xf16>
}

// -----

// CHECK-LABEL: func @bias
func.func @bias(%q: tensor<2x3x?x16xf16>, %k: tensor<2x3x?x16xf16>, %bias: tensor<3x1x?xf16>) -> tensor<2x3x?x16xf16> {
  // CHECK: ^bb0(%[[S:.+]]: f32, %[[B:.+]]: index, %[[H:.+]]: index, %[[I:.+]]: index, %[[J:.+]]: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %[[T:.+]]: tensor<3x1x?xf16>):
  // CHECK-NEXT: %[[C0:.+]] = arith.constant 0 : index
  // CHECK-NEXT: %[[X16:.+]] = tensor.extract %[[T]][%[[H]], %[[C0]], %[[J]]] : tensor<3x1x?xf16>
  // CHECK-NEXT: %[[X:.+]] = arith.extf %[[X16]] : f16 to f32
  // CHECK-NEXT: %[[INF:.+]] = arith.constant 0xFF800000 : f32
  // CHECK-NEXT: %[[M:.+]] = arith.cmpf oeq, %[[X]], %[[INF]] : f32
  // CHECK-NEXT: %[[A:.+]] = arith.addf %[[S]], %[[X]] : f32
  // CHECK-NEXT: %[[INF2:.+]] = arith.constant 0xFF800000 : f32
  // CHECK-NEXT: %[[R:.+]] = arith.select %[[M]], %[[INF2]], %[[A]] : f32
  // CHECK-NEXT: attnfuse.yield %[[R]] : f32
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x3x?x16xf16>, tensor<2x3x?x16xf16> -> tensor<2x3x?x?xf32>
  %a = attnfuse.additive_bias %s, %bias : tensor<2x3x?x?xf32>, tensor<3x1x?xf16>
  %p = attnfuse.softmax %a : tensor<2x3x?x?xf32>
  %o = attnfuse.weighted_sum %p, %k : tensor<2x3x?x?xf32>, tensor<2x3x?x16xf16> -> tensor<2x3x?x16xf16>
  return %o : tensor<2x3x?x16xf16>
}

// -----

// A scalar bias, and one with a size of 1 that the scores have too.
// CHECK-LABEL: func @bias_ranks
func.func @bias_ranks(%q: tensor<1x3x8x16xf16>, %b0: tensor<f32>, %b4: tensor<1x?x8x8xf32>) -> tensor<1x3x8x16xf16> {
  // CHECK: ^bb0(%{{.+}}: f32, %[[B:.+]]: index, %[[H:.+]]: index, %[[I:.+]]: index, %[[J:.+]]: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %[[T0:.+]]: tensor<f32>, %[[T4:.+]]: tensor<1x?x8x8xf32>):
  // CHECK-NEXT: tensor.extract %[[T0]][] : tensor<f32>
  // CHECK: %[[C0:.+]] = arith.constant 0 : index
  // CHECK-NEXT: tensor.extract %[[T4]][%[[C0]], %[[H]], %[[I]], %[[J]]]
  %s = attnfuse.scaled_dot_product %q, %q : tensor<1x3x8x16xf16>, tensor<1x3x8x16xf16> -> tensor<1x3x8x8xf32>
  %0 = attnfuse.additive_bias %s, %b0 : tensor<1x3x8x8xf32>, tensor<f32>
  %1 = attnfuse.additive_bias %0, %b4 : tensor<1x3x8x8xf32>, tensor<1x?x8x8xf32>
  %p = attnfuse.softmax %1 : tensor<1x3x8x8xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<1x3x8x8xf32>, tensor<1x3x8x16xf16> -> tensor<1x3x8x16xf16>
  return %o : tensor<1x3x8x16xf16>
}

// -----

// S4 and S5: either bias masks, whatever comes between or after, and finite
// biases do not. The tensor is passed once.
// CHECK-LABEL: func @two_biases
// CHECK-SAME: %[[BIAS:[^:]+]]: tensor<8x8xf32>)
func.func @two_biases(%q: tensor<1x3x8x16xf16>, %bias: tensor<8x8xf32>) -> tensor<1x3x8x16xf16> {
  // CHECK-NEXT: attnfuse.attention {{.*}} score operands(%[[BIAS]]) {
  // CHECK-NEXT: ^bb0(%[[S:.+]]: f32, {{.*}}: index, %[[T:.+]]: tensor<8x8xf32>):
  // CHECK-NEXT: %[[X:.+]] = tensor.extract %[[T]]
  // CHECK: %[[MX:.+]] = arith.cmpf oeq, %[[X]],
  // CHECK: %[[SX:.+]] = arith.addf %[[S]], %[[X]]
  // CHECK: %[[SA:.+]] = arith.subf %[[SX]],
  // CHECK: %[[Y:.+]] = tensor.extract %[[T]]
  // CHECK: %[[MY:.+]] = arith.cmpf oeq, %[[Y]],
  // CHECK: %[[SY:.+]] = arith.addf %[[SA]], %[[Y]]
  // CHECK: %[[M:.+]] = arith.ori %[[MX]], %[[MY]] : i1
  // CHECK: %[[SB:.+]] = arith.subf %[[SY]],
  // CHECK: %[[LOWEST:.+]] = arith.constant -1.70141183E+38 : f32
  // CHECK: %[[MAX:.+]] = arith.maximumf %[[SB]], %[[LOWEST]]
  // CHECK: %[[R:.+]] = arith.select %[[M]], %{{.+}}, %[[MAX]]
  // CHECK-NEXT: attnfuse.yield %[[R]]
  %s = attnfuse.scaled_dot_product %q, %q : tensor<1x3x8x16xf16>, tensor<1x3x8x16xf16> -> tensor<1x3x8x8xf32>
  %0 = attnfuse.additive_bias %s, %bias : tensor<1x3x8x8xf32>, tensor<8x8xf32>
  %1 = attnfuse.alibi %0 top_left : tensor<1x3x8x8xf32>
  %2 = attnfuse.additive_bias %1, %bias : tensor<1x3x8x8xf32>, tensor<8x8xf32>
  %3 = attnfuse.alibi %2 top_left : tensor<1x3x8x8xf32>
  %p = attnfuse.softmax %3 : tensor<1x3x8x8xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<1x3x8x8xf32>, tensor<1x3x8x16xf16> -> tensor<1x3x8x16xf16>
  return %o : tensor<1x3x8x16xf16>
}

// -----

// Everything at once: masks between modifiers leave the modifiers' order.
// CHECK-LABEL: func @everything
func.func @everything(%q: tensor<?x12x?x64xf16>, %k: tensor<?x4x?x64xf16>, %v: tensor<?x4x?x32xf16>, %cos: tensor<512x32xf32>, %sin: tensor<512x32xf32>,
    %bias: tensor<?x?xf32>, %r: tensor<?xi32>, %c: tensor<?xi32>) -> (tensor<?x12x?x32xf16>, tensor<?x12x?xf32>) {
  // CHECK-NEXT: attnfuse.attention {{.*}} rotate_q <half, offset = 1>({{[^)]*}}) rotate_k <half, offset = 0>({{[^)]*}}) blocks <64x32>({{[^)]*}})
  // CHECK-SAME: bands [#attnfuse.band<bottom_right, right = 0>, #attnfuse.band<top_left, left = 5, right = 7>] softmax score operands
  // CHECK: tensor.extract
  // CHECK: attnfuse.alibi_slope
  // CHECK: arith.subf
  // CHECK: arith.select
  // CHECK-NEXT: attnfuse.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  %qr = attnfuse.rope %q, %cos, %sin half {static_offset = 1} : tensor<?x12x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %kr = attnfuse.rope %k, %cos, %sin half : tensor<?x4x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x12x?x64xf16>, tensor<?x4x?x64xf16> -> tensor<?x12x?x?xf32>
  %0 = attnfuse.causal %s bottom_right : tensor<?x12x?x?xf32>
  %1 = attnfuse.additive_bias %0, %bias : tensor<?x12x?x?xf32>, tensor<?x?xf32>
  %2 = attnfuse.sliding_window %1 top_left {left = 5, right = 7} : tensor<?x12x?x?xf32>
  %3 = attnfuse.alibi %2 bottom_right : tensor<?x12x?x?xf32>
  %4 = attnfuse.full %3 : tensor<?x12x?x?xf32>
  %5 = attnfuse.block_sparse %4, %r, %c {query_block = 64, key_block = 32} : tensor<?x12x?x?xf32>, tensor<?xi32>, tensor<?xi32>
  %p, %lse = attnfuse.softmax %5 : tensor<?x12x?x?xf32>, tensor<?x12x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x12x?x?xf32>, tensor<?x4x?x32xf16> -> tensor<?x12x?x32xf16>
  return %o, %lse : tensor<?x12x?x32xf16>, tensor<?x12x?xf32>
}

// -----

// A constant that is the same everywhere is a constant of the region.
// CHECK-LABEL: func @splats
func.func @splats(%q: tensor<1x3x8x16xf16>) -> tensor<1x3x8x16xf16> {
  // CHECK: attnfuse.attention
  // CHECK-NOT: operands
  // CHECK: ^bb0(%[[S:.+]]: f32, {{.*}}: index):
  // CHECK: %[[B:.+]] = arith.constant 1.500000e+00 : f32
  // CHECK: arith.addf %[[S]], %[[B]]
  // CHECK: %[[M:.+]] = arith.constant 2.500000e-01 : f32
  // CHECK: arith.mulf %[[M]],
  %bias = arith.constant dense<1.5> : tensor<8x8xf16>
  %slopes = arith.constant dense<0.25> : tensor<3xf32>
  %s = attnfuse.scaled_dot_product %q, %q : tensor<1x3x8x16xf16>, tensor<1x3x8x16xf16> -> tensor<1x3x8x8xf32>
  %0 = attnfuse.additive_bias %s, %bias : tensor<1x3x8x8xf32>, tensor<8x8xf16>
  %1 = attnfuse.alibi %0 top_left slopes(%slopes : tensor<3xf32>) : tensor<1x3x8x8xf32>
  %p = attnfuse.softmax %1 : tensor<1x3x8x8xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<1x3x8x8xf32>, tensor<1x3x8x16xf16> -> tensor<1x3x8x16xf16>
  return %o : tensor<1x3x8x16xf16>
}
