// A search on a GPU: every schedule that is tried is right, and the tuned
// module runs.

// REQUIRES: cuda
// RUN: attnfuse-run %s --device=cuda --random=1 --dims=B=2,N=500 --tune --tune-budget=20 --check -o %t.mlir --tune-json=%t.json | FileCheck %s
// RUN: attnfuse-run %t.mlir --device=cuda --random=1 --dims=B=2,N=500 --check
// CHECK: wave 1: {{[1-9][0-9]*}} schedules
// CHECK: {{[1-9][0-9]*}} timed, 0 failed,
// CHECK: (the model's choice
// CHECK: {{best: |the model's choice stays}}

func.func @attend(%q: tensor<?x4x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x4x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x4x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x4x?x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x4x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x64xf16> -> tensor<?x4x?x64xf16>
  return %o : tensor<?x4x?x64xf16>
}
