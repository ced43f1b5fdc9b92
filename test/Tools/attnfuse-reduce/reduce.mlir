// What has nothing to do with an attention goes away.
//
// RUN: printf '#!/bin/sh\ngrep -q attnfuse.weighted_sum "$1" && exit 1\nexit 0\n' > %t.sh && chmod +x %t.sh
// RUN: attnfuse-reduce %s --reduction-tree='traversal-mode=0 test=%t.sh' | FileCheck %s

// CHECK-NOT: @other
// CHECK:     attnfuse.weighted_sum
// CHECK-NOT: @another
func.func @other(%x: f32) -> f32 {
  return %x : f32
}
func.func @f(%p: tensor<1x2x8x8xf32>, %v: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %o : tensor<1x2x8x64xf16>
}
func.func @another(%x: f32) -> f32 {
  return %x : f32
}
