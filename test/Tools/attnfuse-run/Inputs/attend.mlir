func.func @attend(%q: tensor<?x2x?x4xf32>, %k: tensor<?x1x?x4xf32>, %v: tensor<?x1x?x3xf32>)
    -> (tensor<?x2x?x3xf32>, tensor<?x2x?xf32>) {
  %s = attnfuse.scaled_dot_product %q, %k {scale = 1.0 : f64} : tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32> -> tensor<?x2x?x?xf32>
  %p, %lse = attnfuse.softmax %s : tensor<?x2x?x?xf32>, tensor<?x2x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x2x?x?xf32>, tensor<?x1x?x3xf32> -> tensor<?x2x?x3xf32>
  return %o, %lse : tensor<?x2x?x3xf32>, tensor<?x2x?xf32>
}
