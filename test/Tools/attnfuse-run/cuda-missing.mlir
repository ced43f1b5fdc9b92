// On a machine without a GPU, or without its driver, the message says so.

// UNSUPPORTED: cuda
// RUN: not attnfuse-run %s --random=1 --device=cuda --output=output=%t.npy 2>&1 | FileCheck %s
// RUN: not ls %t.npy
// CHECK-NOT: error:
// CHECK: attnfuse-run: error: {{.*(libcuda|CUDA|device)}}
// CHECK-NOT: error:

func.func @attend(%q: tensor<1x1x?x16xf16>, %k: tensor<1x1x?x16xf16>, %v: tensor<1x1x?x16xf16>) -> tensor<1x1x?x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x?x?xf32>
  %p = attnfuse.softmax %s : tensor<1x1x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x1x?x?xf32>, tensor<1x1x?x16xf16> -> tensor<1x1x?x16xf16>
  return %o : tensor<1x1x?x16xf16>
}
