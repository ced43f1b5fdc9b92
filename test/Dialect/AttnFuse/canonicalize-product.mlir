// RUN: attnfuse-opt %s --canonicalize --allow-unregistered-dialect | FileCheck %s

!x = tensor<1x2x2x4xf16>
!t = tensor<3x1xf32>

// CHECK-LABEL: func @rope_identity
// CHECK-SAME: (%[[X:.+]]: tensor
func.func @rope_identity(%x: !x, %off: i64) -> (!x, !x, !x) {
  // CHECK: %[[R:.+]] = attnfuse.rope %[[X]]
  // CHECK-NEXT: return %[[X]], %[[X]], %[[R]]
  %one = arith.constant dense<1.0> : tensor<3x2xbf16>
  %zero = arith.constant dense<[[0.0, -0.0], [0.0, 0.0], [0.0, 0.0]]> : tensor<3x2xbf16>
  %other = arith.constant dense<[[0.0, 0.0], [0.0, 0.0], [0.0, 0.5]]> : tensor<3x2xbf16>
  %a = attnfuse.rope %x, %one, %zero half : !x, tensor<3x2xbf16>, tensor<3x2xbf16>
  %b = attnfuse.rope %x, %one, %zero interleaved offset(%off) : !x, tensor<3x2xbf16>, tensor<3x2xbf16>
  %c = attnfuse.rope %x, %one, %other half : !x, tensor<3x2xbf16>, tensor<3x2xbf16>
  return %a, %b, %c : !x, !x, !x
}

// Row n of the result is row n + 1 of the inner tables times row n of the
// outer ones, as complex numbers: (3 + 4i) (1 + 2i) = -5 + 10i and
// (5 + 6i) (3 + 4i) = -9 + 38i.
// CHECK-LABEL: func @rope_merge
// CHECK-SAME: (%[[X:.+]]: tensor
func.func @rope_merge(%x: !x) -> !x {
  // CHECK-DAG: %[[C:.+]] = arith.constant dense<{{\[\[}}-5.000000e+00], [-9.000000e+00]]> : tensor<2x1xf32>
  // CHECK-DAG: %[[S:.+]] = arith.constant dense<{{\[\[}}1.000000e+01], [3.800000e+01]]> : tensor<2x1xf32>
  // CHECK: %[[R:.+]] = attnfuse.rope %[[X]], %[[C]], %[[S]] half : tensor<1x2x2x4xf16>, tensor<2x1xf32>
  // CHECK-NEXT: return %[[R]]
  %cos = arith.constant dense<[[1.0], [3.0], [5.0]]> : !t
  %sin = arith.constant dense<[[2.0], [4.0], [6.0]]> : !t
  %a = attnfuse.rope %x, %cos, %sin half {static_offset = 1} : !x, !t, !t
  %b = attnfuse.rope %a, %cos, %sin half : !x, !t, !t
  return %b : !x
}

// Other pairs, another width, run-time positions, run-time tables, tables
// that would round, an unknown length: no merging.
// CHECK-LABEL: func @rope_no_merge
func.func @rope_no_merge(%x: !x, %y: tensor<1x2x?x4xf16>, %off: i64, %pos: tensor<2xi32>, %t: !t)
    -> (!x, !x, !x, !x, !x, !x, tensor<1x2x?x4xf16>) {
  // CHECK-COUNT-14: attnfuse.rope
  // CHECK-NOT: attnfuse.rope
  // CHECK: return
  %cos = arith.constant dense<[[1.0], [3.0], [5.0]]> : !t
  %sin = arith.constant dense<[[2.0], [4.0], [6.0]]> : !t
  %cos2 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %cos16 = arith.constant dense<[[1.0], [3.0], [5.0]]> : tensor<3x1xf16>
  %0 = attnfuse.rope %x, %cos, %sin half : !x, !t, !t
  %1 = attnfuse.rope %0, %cos, %sin interleaved : !x, !t, !t
  %2 = attnfuse.rope %x, %cos, %sin half : !x, !t, !t
  %3 = attnfuse.rope %2, %cos2, %cos2 half : !x, tensor<2x2xf32>, tensor<2x2xf32>
  %4 = attnfuse.rope %x, %cos, %sin half : !x, !t, !t
  %5 = attnfuse.rope %4, %cos, %sin half offset(%off) : !x, !t, !t
  %6 = attnfuse.rope %x, %cos, %sin half positions(%pos : tensor<2xi32>) : !x, !t, !t
  %7 = attnfuse.rope %6, %cos, %sin half : !x, !t, !t
  %8 = attnfuse.rope %x, %cos, %t half : !x, !t, !t
  %9 = attnfuse.rope %8, %cos, %sin half : !x, !t, !t
  %10 = attnfuse.rope %x, %cos16, %cos16 half : !x, tensor<3x1xf16>, tensor<3x1xf16>
  %11 = attnfuse.rope %10, %cos, %sin half : !x, !t, !t
  %12 = attnfuse.rope %y, %cos, %sin half : tensor<1x2x?x4xf16>, !t, !t
  %13 = attnfuse.rope %12, %cos, %sin half : tensor<1x2x?x4xf16>, !t, !t
  return %1, %3, %5, %7, %9, %11, %13 : !x, !x, !x, !x, !x, !x, tensor<1x2x?x4xf16>
}

// The default scale is 1/2: -1 from q on either side, 1 from k, and with the
// leave to reassociate -6 from q and 1/8 from k.
// CHECK-LABEL: func @scale
// CHECK-SAME: (%[[X:.+]]: tensor
func.func @scale(%x: !x) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) {
  // CHECK-NEXT: %[[A:.+]] = attnfuse.scaled_dot_product %[[X]], %[[X]] {scale = -5.000000e-01 : f64}
  // CHECK-NEXT: %[[B:.+]] = attnfuse.scaled_dot_product %[[X]], %[[X]] {scale = -2.250000e+00 : f64}
  // CHECK-NEXT: return %[[A]], %[[B]]
  %minus = arith.constant dense<-1.0> : !x
  %one = arith.constant dense<1.0> : !x
  %six = arith.constant dense<-6.0> : !x
  %eighth = arith.constant dense<0.125> : !x
  %q = arith.mulf %x, %minus : !x
  %k = "arith.mulf"(%one, %x) <{fastmath = #arith.fastmath<none>}> : (!x, !x) -> !x
  %qr = arith.mulf %x, %six fastmath<reassoc> : !x
  %kr = arith.mulf %eighth, %x fastmath<fast> : !x
  %a = attnfuse.scaled_dot_product %q, %k : !x, !x -> tensor<1x2x2x2xf32>
  %b = attnfuse.scaled_dot_product %qr, %kr {scale = 3.0} : !x, !x -> tensor<1x2x2x2xf32>
  return %a, %b : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>
}

// 4 overflows f16 from 16384 on and 1/8 loses digits of subnormal numbers; 0
// and inf are no scales, the last is no splat, and the last but one would
// leave the range of f32.
// CHECK-LABEL: func @no_scale
func.func @no_scale(%x: !x, %k: !x) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) {
  // CHECK-COUNT-6: arith.mulf
  %four = arith.constant dense<4.0> : !x
  %eighth = arith.constant dense<0.125> : !x
  %zero = arith.constant dense<0.0> : !x
  %inf = arith.constant dense<0x7C00> : !x
  %two = arith.constant dense<2.0> : !x
  %mixed = arith.constant dense<[[[[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 4.0]], [[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]]]> : !x
  %q0 = arith.mulf %x, %four : !x
  %k0 = arith.mulf %k, %eighth fastmath<nnan, ninf> : !x
  %q1 = arith.mulf %x, %zero fastmath<reassoc> : !x
  %q2 = arith.mulf %x, %inf fastmath<reassoc> : !x
  %q3 = arith.mulf %x, %two fastmath<reassoc> : !x
  %q4 = arith.mulf %x, %mixed fastmath<reassoc> : !x
  %0 = attnfuse.scaled_dot_product %q0, %k0 : !x, !x -> tensor<1x2x2x2xf32>
  %1 = attnfuse.scaled_dot_product %q1, %k : !x, !x -> tensor<1x2x2x2xf32>
  %2 = attnfuse.scaled_dot_product %q2, %k : !x, !x -> tensor<1x2x2x2xf32>
  %3 = attnfuse.scaled_dot_product %q3, %k {scale = 3.0e+38} : !x, !x -> tensor<1x2x2x2xf32>
  %4 = attnfuse.scaled_dot_product %q4, %k : !x, !x -> tensor<1x2x2x2xf32>
  return %0, %1, %2, %3, %4 : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>
}

// A module's region is a graph: there may be cycles.
// CHECK-LABEL: module @cycle
module @cycle {
  // CHECK: attnfuse.rope
  // CHECK: arith.mulf
  %cos = arith.constant dense<[[1.0], [3.0], [5.0]]> : !t
  %sin = arith.constant dense<[[2.0], [4.0], [6.0]]> : !t
  %0 = attnfuse.rope %1, %cos, %sin half : !x, !t, !t
  %1 = attnfuse.rope %0, %cos, %sin half : !x, !t, !t
  "test.use"(%1) : (!x) -> ()
  %minus = arith.constant dense<-1.0> : !x
  %q0 = arith.mulf %q1, %minus : !x
  %q1 = arith.mulf %q0, %minus : !x
  %s = attnfuse.scaled_dot_product %q1, %q1 : !x, !x -> tensor<1x2x2x2xf32>
  "test.use"(%s) : (tensor<1x2x2x2xf32>) -> ()
}
