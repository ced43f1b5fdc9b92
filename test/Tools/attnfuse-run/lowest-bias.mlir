// Scores below -2^127 may be taken as that (spec S5), which a log-sum-exp shows.
//
// RUN: %python -c "import numpy; numpy.save(r'%t.npy', numpy.float32(-3.4028234663852886e38))"
// RUN: attnfuse-run %s --device=cpu --random=1 --dims B=1,N=3 --input bias=%t.npy --check | FileCheck %s
// CHECK: output: {{.*}}: PASS
// CHECK: lse: {{.*}}: PASS
// CHECK: 1 passed, 0 failed

func.func @lowest(%q: tensor<?x1x?x8xf32>, %k: tensor<?x1x?x8xf32>, %v: tensor<?x1x?x8xf32>, %bias: tensor<f32> {attnfuse.name = "bias"}) -> (tensor<?x1x?x8xf32>, tensor<?x1x?xf32>) {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32> -> tensor<?x1x?x?xf32>
  %t = attnfuse.additive_bias %s, %bias : tensor<?x1x?x?xf32>, tensor<f32>
  %p, %lse = attnfuse.softmax %t : tensor<?x1x?x?xf32>, tensor<?x1x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x1x?x?xf32>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
  return %o, %lse : tensor<?x1x?x8xf32>, tensor<?x1x?xf32>
}
