// RUN: attnfuse-opt %s --attnfuse-split-rotation | FileCheck %s

// What the plan splits becomes an op before the attention, with all that it had.

// CHECK-LABEL: func.func @both(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x4x?x64xf16>, %[[K:[^:]*]]: tensor<1x2x?x64xf16>, %[[C:[^:]*]]: tensor<512x16xf32>, %[[S:[^:]*]]: tensor<512x16xf32>, %[[N:[^:]*]]: i64, %[[P:[^:]*]]: tensor<?xi32>)
// CHECK:         %[[QR:.*]] = attnfuse.rope %[[Q]], %[[C]], %[[S]] interleaved offset(%[[N]]) {static_offset = 3 : i64}
// CHECK:         %[[KR:.*]] = attnfuse.rope %[[K]], %[[S]], %[[C]] half positions(%[[P]] : tensor<?xi32>)
// CHECK:         %[[O:.*]], %[[LSE:.*]] = attnfuse.attention q(%[[QR]]) k(%[[KR]]) v(%[[K]]) bands
// CHECK-SAME:      softmax {scale = 1.250000e-01 : f64, user = "kept"}
// CHECK:         return %[[O]], %[[LSE]]
func.func @both(%q: tensor<1x4x?x64xf16>, %k: tensor<1x2x?x64xf16>, %c: tensor<512x16xf32>, %s: tensor<512x16xf32>, %n: i64, %p: tensor<?xi32>) -> (tensor<1x4x?x64xf16>, tensor<1x4x?xf32>) {
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <interleaved, offset = 3>(%c, %s, offset %n) rotate_k <half, offset = 0>(%s, %c, positions %p)
      bands [#attnfuse.band<bottom_right, right = 0>] softmax {rotation_plan = #attnfuse.rotation_plan<q = split, k = by_size>, scale = 0.125 : f64, user = "kept"}
      : (tensor<1x4x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<512x16xf32>, tensor<512x16xf32>, i64, tensor<512x16xf32>, tensor<512x16xf32>, tensor<?xi32>) -> (tensor<1x4x?x64xf16>, tensor<1x4x?xf32>)
  return %o, %lse : tensor<1x4x?x64xf16>, tensor<1x4x?xf32>
}

// CHECK-LABEL: func.func @fused(
// CHECK-NOT:     attnfuse.rope
// CHECK:         rotate_q <half, offset = 0>
// CHECK-SAME:    rotation_plan = #attnfuse.rotation_plan<q = fused, k = fused>
func.func @fused(%q: tensor<1x4x?x64xf16>, %c: tensor<512x32xf32>) -> tensor<1x4x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_q <half, offset = 0>(%c, %c) softmax {rotation_plan = #attnfuse.rotation_plan<q = fused, k = fused>, scale = 0.125 : f64}
      : (tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>) -> tensor<1x4x?x64xf16>
  return %o : tensor<1x4x?x64xf16>
}
