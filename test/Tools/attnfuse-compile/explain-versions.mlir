// What decides between versions is named: sizes, and the layout of a tensor that
// the tensor memory accelerator would load.
//
// RUN: attnfuse-compile %s --chip=h200 --explain -o %t.ptx | FileCheck %s
// RUN: attnfuse-compile %s --chip=sm_80 --explain -o %t.ptx | FileCheck %s --check-prefix=ONE

// CHECK: launches the first that applies:
// CHECK-NEXT: biased$split_keys, then biased$split_keys$combine, by the layout of bias, B, Nq
// CHECK-NEXT: biased$few_rows, by the layout of bias, Nq, B
// CHECK-NEXT: biased, by the layout of bias{{$}}
// CHECK-NEXT: biased$any_strides$split_keys, then biased$any_strides$split_keys$combine, by B, Nq
// CHECK-NEXT: biased$any_strides{{$}}
// ONE: launches the first that applies:
// ONE-NEXT: biased$split_keys, then biased$split_keys$combine, by B, Nq
// ONE-NEXT: biased{{$}}

func.func @biased(%q: tensor<?x8x?x64xf16>, %bias: tensor<?x8x?x?xf16>) -> tensor<?x8x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16> -> tensor<?x8x?x?xf32>
  %b = attnfuse.additive_bias %s, %bias : tensor<?x8x?x?xf32>, tensor<?x8x?x?xf16>
  %p = attnfuse.softmax %b : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x8x?x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// Where the sizes decide how k is rotated, and keys are always split, it is rotated before: parts would
// rotate the keys of a head once for each of its query heads.
// RUN: attnfuse-compile %s --chip=sm_80 --key-splits=4 --explain -o %t.ptx | FileCheck %s --check-prefix=FORCED
// RUN: attnfuse-compile %s --chip=sm_80 --key-splits=1 --explain -o %t.ptx | FileCheck %s --check-prefix=WHOLE
// FORCED: launches: biased, then biased$combine
// FORCED: launches: rotated$rotate, then rotated, then rotated$combine
// WHOLE: launches the first that applies:
// WHOLE-NEXT: rotated$fused, by B, Nq{{$}}
// WHOLE-NEXT: rotated$rotate, then rotated{{$}}
func.func @rotated(%q: tensor<?x4x?x64xf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x4x?x64xf16> {
  %r = attnfuse.rope %q, %cos, %sin half : tensor<?x4x?x64xf16>, tensor<?x32xf32>, tensor<?x32xf32>
  %s = attnfuse.scaled_dot_product %r, %r : tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16> -> tensor<?x4x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x4x?x?xf32>, tensor<?x4x?x64xf16> -> tensor<?x4x?x64xf16>
  return %o : tensor<?x4x?x64xf16>
}
