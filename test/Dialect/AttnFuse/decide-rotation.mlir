// RUN: attnfuse-opt %s --attnfuse-decide-rotation --split-input-file --verify-diagnostics | FileCheck %s
// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=split_both --split-input-file | FileCheck %s --check-prefix=BOTH
// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=fused --split-input-file | FileCheck %s --check-prefix=FUSED
// RUN: not attnfuse-opt %s --attnfuse-decide-rotation=way=never --split-input-file 2>&1 | FileCheck %s --check-prefix=WAY

// WAY: for the --way option: Cannot find option named 'never'

// Many query tiles visit each key tile: k is rotated once, before.
module attributes {attnfuse.target = #attnfuse.target<"h200">} {
// CHECK-LABEL: func.func @long(
// CHECK:         rotation_plan = #attnfuse.rotation_plan<q = fused, k = split, k_fused_ps = [[#]], k_split_ps = [[#]]>
// BOTH-LABEL:  func.func @long(
// BOTH:          rotation_plan = #attnfuse.rotation_plan<q = split, k = split>
// FUSED-LABEL: func.func @long(
// FUSED:         rotation_plan = #attnfuse.rotation_plan<q = fused, k = fused>
func.func @long(%q: tensor<4x32x4096x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %c: tensor<4096x64xf32>) -> tensor<4x32x4096x128xbf16> {
  // expected-remark-re @+1 {{rotates k before the kernel: expected to add {{[0-9.]+}} us, in it {{[0-9.]+}} us}}
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%c, %c) rotate_k <half, offset = 0>(%c, %c)
      softmax {scale = 0.125 : f64}
      : (tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4096x64xf32>, tensor<4096x64xf32>, tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<4x32x4096x128xbf16>
  return %o : tensor<4x32x4096x128xbf16>
}

// One query tile does: the copy is not worth it.
// CHECK-LABEL: func.func @short(
// CHECK:         rotation_plan = #attnfuse.rotation_plan<q = fused, k = fused, k_fused_ps = [[#]], k_split_ps = [[#]]>
func.func @short(%q: tensor<4x12x64x64xf16>, %c: tensor<64x32xf32>) -> tensor<4x12x64x64xf16> {
  // expected-remark-re @+1 {{rotates k in the kernel: expected to add {{[0-9.]+}} us, before it {{[0-9.]+}} us}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_q <half, offset = 0>(%c, %c) rotate_k <half, offset = 0>(%c, %c)
      softmax {scale = 0.125 : f64}
      : (tensor<4x12x64x64xf16>, tensor<4x12x64x64xf16>, tensor<4x12x64x64xf16>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<4x12x64x64xf16>
  return %o : tensor<4x12x64x64xf16>
}

// CHECK-LABEL: func.func @any_size(
// CHECK:         rotation_plan = #attnfuse.rotation_plan<q = fused, k = by_size>
func.func @any_size(%q: tensor<?x12x?x64xf16>, %c: tensor<4096x32xf32>) -> tensor<?x12x?x64xf16> {
  // expected-remark @+1 {{rotates k by size: in the kernel where that is expected to be quicker, else before it}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_k <half, offset = 0>(%c, %c)
      softmax {scale = 0.125 : f64}
      : (tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16>, tensor<4096x32xf32>, tensor<4096x32xf32>) -> tensor<?x12x?x64xf16>
  return %o : tensor<?x12x?x64xf16>
}

// A plan that is there stays, and what does not rotate gets none.
// CHECK-LABEL: func.func @planned(
// CHECK:         rotation_plan = #attnfuse.rotation_plan<q = split, k = fused>
// CHECK:         attnfuse.attention
// CHECK-NOT:     rotation_plan
// BOTH-LABEL:  func.func @planned(
// BOTH:          rotation_plan = #attnfuse.rotation_plan<q = split, k = fused>
func.func @planned(%q: tensor<?x12x?x64xf16>, %c: tensor<4096x32xf32>) -> tensor<?x12x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_q <half, offset = 0>(%c, %c)
      softmax {rotation_plan = #attnfuse.rotation_plan<q = split, k = fused>, scale = 0.125 : f64}
      : (tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16>, tensor<4096x32xf32>, tensor<4096x32xf32>) -> tensor<?x12x?x64xf16>
  %p = attnfuse.attention q(%o) k(%q) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16>) -> tensor<?x12x?x64xf16>
  return %p : tensor<?x12x?x64xf16>
}
}
