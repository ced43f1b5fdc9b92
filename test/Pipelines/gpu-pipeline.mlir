// RUN: attnfuse-opt %s --attnfuse-gpu-pipeline | FileCheck %s

// From building blocks to a kernel in one pipeline; nothing but the llvm and
// nvvm dialects is left in the kernel.

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
// CHECK-LABEL: func.func @causal
// CHECK: attnfuse.attention {{.*}} bands [#attnfuse.band<top_left, right = 0>] softmax schedule <
func.func @causal(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x?xf32>
  %f = attnfuse.full %s : tensor<?x8x?x?xf32>
  %m = attnfuse.causal %f top_left : tensor<?x8x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x8x?x?xf32>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}
// CHECK: gpu.module @causal_kernels
// CHECK-SAME: attnfuse.manifest
// CHECK: llvm.func @causal(
// CHECK-NOT: scf.
// CHECK-NOT: arith.
// CHECK-NOT: unrealized_conversion_cast
// CHECK: nvvm.mma.sync
// CHECK-NOT: scf.
// CHECK-NOT: arith.
// CHECK: llvm.return
}
