// A check passes only if the bound says something.

// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/write_biases.py %t
// RUN: not attnfuse-run %s --random=1 --input=bias=%t/all.npy --dims=B=2 --check | FileCheck %s --check-prefix=ALL
// RUN: attnfuse-run %s --random=1 --input=bias=%t/one.npy --dims=B=2 --check | FileCheck %s --check-prefix=ONE
// RUN: attnfuse-run %s --random=1 --input=bias=%t/mask.npy --dims=B=2 --check | FileCheck %s --check-prefix=MASK

// ALL: output: max abs error {{.*}}: FAIL, bound is vacuous: {{[0-9]+}} of 1536 elements differ by more than half of their scale, which their bound allows
// ALL: 0 passed, 1 failed
// ONE: output: max abs error {{.*}}: PASS
// ONE: 1 passed, 0 failed
// MASK: output: max abs error {{.*}}: PASS{{$}}
// MASK: 1 passed, 0 failed

func.func @attend(%q: tensor<?x1x?x16xf32>, %k: tensor<?x1x?x16xf32>, %v: tensor<?x1x?x16xf32>,
                  %bias: tensor<?x?xf32>) -> tensor<?x1x?x16xf32> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32> -> tensor<?x1x?x?xf32>
  %b = attnfuse.additive_bias %s, %bias : tensor<?x1x?x?xf32>, tensor<?x?xf32>
  %p = attnfuse.softmax %b : tensor<?x1x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x1x?x?xf32>, tensor<?x1x?x16xf32> -> tensor<?x1x?x16xf32>
  return %o : tensor<?x1x?x16xf32>
}
