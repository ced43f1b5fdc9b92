// T5 base: a learned bias per head and pair of positions, shared by the batch, and
// scores that are not scaled.
//
// attnfuse-run examples/t5-bias.mlir --device=cpu --random=1 --dims B=2,N=77 --check

func.func @t5_bias(%q: tensor<?x12x?x64xbf16>, %k: tensor<?x12x?x64xbf16>,
                   %v: tensor<?x12x?x64xbf16>,
                   %bias: tensor<1x12x?x?xbf16> {attnfuse.name = "position_bias"})
    -> tensor<?x12x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k {scale = 1.0 : f64}
      : tensor<?x12x?x64xbf16>, tensor<?x12x?x64xbf16> -> tensor<?x12x?x?xf32>
  %b = attnfuse.additive_bias %s, %bias : tensor<?x12x?x?xf32>, tensor<1x12x?x?xbf16>
  %p = attnfuse.softmax %b : tensor<?x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x12x?x64xbf16> -> tensor<?x12x?x64xbf16>
  return %o : tensor<?x12x?x64xbf16>
}
