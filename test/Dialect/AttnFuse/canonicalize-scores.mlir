// RUN: attnfuse-opt %s --canonicalize | FileCheck %s

!s = tensor<2x2x?x?xf32>

// CHECK-LABEL: func @alibi_zero
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @alibi_zero(%s: !s) -> (!s, !s) {
  // CHECK-NEXT: arith.constant dense<[0.000000e+00, 1.000000e+00]>
  // CHECK-NEXT: %[[A:.+]] = attnfuse.alibi
  // CHECK-NEXT: return %[[S]], %[[A]]
  %zero = arith.constant dense<[0.0, -0.0]> : tensor<2xf32>
  %half_zero = arith.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %a = attnfuse.alibi %s bottom_right slopes(%zero : tensor<2xf32>) : !s
  %b = attnfuse.alibi %s bottom_right slopes(%half_zero : tensor<2xf32>) : !s
  return %a, %b : !s, !s
}

// The standard slopes of 2 heads are 1/16 and 1/256.
// CHECK-LABEL: func @alibi_standard
func.func @alibi_standard(%s: !s) -> (!s, !s, !s) {
  // CHECK: %[[C:.+]] = arith.constant dense<[6.250000e-02, 4.000000e-03]>
  // CHECK-NEXT: attnfuse.alibi %{{.+}} bottom_right :
  // CHECK-NEXT: attnfuse.alibi %{{.+}} bottom_right :
  // CHECK-NEXT: attnfuse.alibi %{{.+}} bottom_right slopes(%[[C]]
  %m = arith.constant dense<[0.0625, 0.00390625]> : tensor<2xf32>
  %mb = arith.constant dense<[[0.0625, 0.00390625], [0.0625, 0.00390625]]> : tensor<2x2xf32>
  %other = arith.constant dense<[0.0625, 0.004]> : tensor<2xf32>
  %a = attnfuse.alibi %s bottom_right slopes(%m : tensor<2xf32>) : !s
  %b = attnfuse.alibi %s bottom_right slopes(%mb : tensor<2x2xf32>) : !s
  %c = attnfuse.alibi %s bottom_right slopes(%other : tensor<2xf32>) : !s
  return %a, %b, %c : !s, !s, !s
}

// Of the slopes of each head, one is 0.
// CHECK-LABEL: func @alibi_merge
func.func @alibi_merge(%s: !s) -> !s {
  // CHECK: %[[C:.+]] = arith.constant dense<[1.000000e-01, 3.000000e+38]>
  // CHECK-NEXT: %[[R:.+]] = attnfuse.alibi %{{.+}} top_left slopes(%[[C]] : tensor<2xf32>)
  // CHECK-NEXT: return %[[R]]
  %m = arith.constant dense<[0.1, 0.0]> : tensor<2xf32>
  %n = arith.constant dense<[0.0, 3.0e+38]> : tensor<2xf32>
  %a = attnfuse.alibi %s top_left slopes(%m : tensor<2xf32>) : !s
  %b = attnfuse.alibi %a top_left slopes(%n : tensor<2xf32>) : !s
  return %b : !s
}

// Two diagonals, run-time slopes, a sum that rounds, a second use: no merging.
// CHECK-LABEL: func @alibi_no_merge
func.func @alibi_no_merge(%s: !s, %t: tensor<2xf32>) -> (!s, !s, !s, !s, !s) {
  // CHECK-COUNT-8: attnfuse.alibi
  // CHECK-NEXT: return
  %m = arith.constant dense<[0.0, 0.1]> : tensor<2xf32>
  %n = arith.constant dense<[0.1, 0.0]> : tensor<2xf32>
  %0 = attnfuse.alibi %s top_left slopes(%m : tensor<2xf32>) : !s
  %1 = attnfuse.alibi %0 bottom_right slopes(%n : tensor<2xf32>) : !s
  %2 = attnfuse.alibi %s top_left slopes(%m : tensor<2xf32>) : !s
  %3 = attnfuse.alibi %2 top_left slopes(%t : tensor<2xf32>) : !s
  %4 = attnfuse.alibi %s top_left slopes(%m : tensor<2xf32>) : !s
  %5 = attnfuse.alibi %4 top_left : !s
  %6 = attnfuse.alibi %s top_left slopes(%m : tensor<2xf32>) : !s
  %7 = attnfuse.alibi %6 top_left slopes(%n : tensor<2xf32>) : !s
  return %1, %3, %5, %6, %7 : !s, !s, !s, !s, !s
}

// CHECK-LABEL: func @alibi_alignment
func.func @alibi_alignment(%s: tensor<1x2x8x8xf32>, %t: tensor<1x2x8x?xf32>) -> (tensor<1x2x8x8xf32>, tensor<1x2x8x?xf32>) {
  // CHECK-NEXT: attnfuse.alibi %{{.+}} top_left
  // CHECK-NEXT: attnfuse.alibi %{{.+}} bottom_right
  %a = attnfuse.alibi %s bottom_right : tensor<1x2x8x8xf32>
  %b = attnfuse.alibi %t bottom_right : tensor<1x2x8x?xf32>
  return %a, %b : tensor<1x2x8x8xf32>, tensor<1x2x8x?xf32>
}

// Head 0 of 1, of a power of two, and of 12: the first of the rest.
// CHECK-LABEL: func @alibi_slope
func.func @alibi_slope(%n: index) -> (f32, f32, f32, f32, f32) {
  // CHECK-DAG: %[[A:.+]] = arith.constant 3.906250e-03 : f32
  // CHECK-DAG: %[[B:.+]] = arith.constant 5.000000e-01 : f32
  // CHECK-DAG: %[[C:.+]] = arith.constant 0.707106769 : f32
  // CHECK-DAG: %[[D:.+]] = attnfuse.alibi_slope %{{.+}}, %{{.+}}
  // CHECK-DAG: %[[E:.+]] = attnfuse.alibi_slope %{{.+}}, %arg0
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %a = attnfuse.alibi_slope %c0, %c1
  %b = attnfuse.alibi_slope %c0, %c8
  %c = attnfuse.alibi_slope %c8, %c12
  // There is no such head.
  %d = attnfuse.alibi_slope %c8, %c8
  %e = attnfuse.alibi_slope %c0, %n
  return %a, %b, %c, %d, %e : f32, f32, f32, f32, f32
}

// CHECK-LABEL: func @bias_zero
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @bias_zero(%s: !s) -> (!s, !s) {
  // CHECK: %[[A:.+]] = attnfuse.additive_bias
  // CHECK-NEXT: return %[[S]], %[[A]]
  %zero = arith.constant dense<0.0> : tensor<2x1x1xbf16>
  %other = arith.constant dense<[[[0.0]], [[1.0]]]> : tensor<2x1x1xbf16>
  %a = attnfuse.additive_bias %s, %zero : !s, tensor<2x1x1xbf16>
  %b = attnfuse.additive_bias %s, %other : !s, tensor<2x1x1xbf16>
  return %a, %b : !s, !s
}

// CHECK-LABEL: func @bias_splat
func.func @bias_splat(%s: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
  // CHECK-NEXT: %[[C:.+]] = arith.constant dense<1.500000e+00> : tensor<f16>
  // CHECK-NEXT: attnfuse.additive_bias %{{.+}}, %[[C]] : tensor<1x2x64x64xf32>, tensor<f16>
  %c = arith.constant dense<1.5> : tensor<64x64xf16>
  %a = attnfuse.additive_bias %s, %c : tensor<1x2x64x64xf32>, tensor<64x64xf16>
  return %a : tensor<1x2x64x64xf32>
}

// Of two entries one is 0, or -inf, which masks against +inf and NaN too (S4).
// CHECK-LABEL: func @bias_merge
func.func @bias_merge(%s: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  // CHECK-NEXT: %[[C:.+]] = arith.constant dense<[1.500000e+00, 0xFF800000, 0.333333343, 0xFF800000]> : tensor<4xf32>
  // CHECK-NEXT: %[[R:.+]] = attnfuse.additive_bias %{{.+}}, %[[C]] : tensor<1x2x8x4xf32>, tensor<4xf32>
  // CHECK-NEXT: return %[[R]]
  %a = arith.constant dense<[1.5, 0x7F80, -0.0, 0xFF80]> : tensor<4xbf16>
  %b = arith.constant dense<[0.0, 0xFF800000, 0.333333343, 0x7FC00000]> : tensor<4xf32>
  %0 = attnfuse.additive_bias %s, %a : tensor<1x2x8x4xf32>, tensor<4xbf16>
  %1 = attnfuse.additive_bias %0, %b : tensor<1x2x8x4xf32>, tensor<4xf32>
  return %1 : tensor<1x2x8x4xf32>
}

// (s + 1e8) + -1e8 is not s + 0, and the largest f32 twice is not infinite if
// s is negative.
// CHECK-LABEL: func @bias_rounds
func.func @bias_rounds(%s: tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) {
  // CHECK-COUNT-4: attnfuse.additive_bias
  // CHECK-NEXT: return
  %a = arith.constant dense<[0.0, 1.0e+8, 0.0, 0.0]> : tensor<4xf32>
  %b = arith.constant dense<[0.0, -1.0e+8, 0.0, 0.0]> : tensor<4xf32>
  %c = arith.constant dense<[0.0, 3.40282347E+38, 0.0, 0.0]> : tensor<4xf32>
  %0 = attnfuse.additive_bias %s, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  %1 = attnfuse.additive_bias %0, %b : tensor<1x2x8x4xf32>, tensor<4xf32>
  %2 = attnfuse.additive_bias %s, %c : tensor<1x2x8x4xf32>, tensor<4xf32>
  %3 = attnfuse.additive_bias %2, %c : tensor<1x2x8x4xf32>, tensor<4xf32>
  return %1, %3 : tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>
}

// Two shapes, a run-time bias, another op between, a second use: no merging.
// CHECK-LABEL: func @bias_no_merge
func.func @bias_no_merge(%s: tensor<1x2x8x4xf32>, %t: tensor<4xf32>)
    -> (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) {
  // CHECK-COUNT-8: attnfuse.additive_bias
  // CHECK-NEXT: return
  %a = arith.constant dense<[0.0, 0.0, 0.0, 0xFF800000]> : tensor<4xf32>
  %b = arith.constant dense<[[[0.0]], [[0xFF800000]]]> : tensor<2x1x1xf32>
  %0 = attnfuse.additive_bias %s, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  %1 = attnfuse.additive_bias %0, %b : tensor<1x2x8x4xf32>, tensor<2x1x1xf32>
  %2 = attnfuse.additive_bias %s, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  %3 = attnfuse.additive_bias %2, %t : tensor<1x2x8x4xf32>, tensor<4xf32>
  %4 = attnfuse.additive_bias %s, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  %5 = attnfuse.alibi %4 top_left : tensor<1x2x8x4xf32>
  %6 = attnfuse.additive_bias %5, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  %7 = attnfuse.additive_bias %s, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  %8 = attnfuse.additive_bias %7, %a : tensor<1x2x8x4xf32>, tensor<4xf32>
  return %1, %3, %6, %7, %8 : tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>
}

// CHECK-LABEL: func @softmax_lse
func.func @softmax_lse(%s: tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8xf32>) {
  // CHECK-NEXT: %[[P:.+]] = attnfuse.softmax %{{.+}} : tensor<1x2x8x4xf32>{{$}}
  // CHECK-NEXT: %{{.+}}, %[[L:.+]] = attnfuse.softmax %{{.+}} : tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
  // CHECK-NEXT: return %[[P]], %[[L]]
  %p, %unused = attnfuse.softmax %s : tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
  %q, %lse = attnfuse.softmax %p : tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
  return %p, %lse : tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
}
