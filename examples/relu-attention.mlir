// A vision transformer with ReLU in place of softmax, divided by the sequence length
// (Wortsman et al., arXiv 2309.08586).
//
// attnfuse-run examples/relu-attention.mlir --device=cpu --random=1 --dims B=2,N=77 --check

func.func @relu_attention(%q: tensor<?x12x?x64xf16>, %k: tensor<?x12x?x64xf16>,
                          %v: tensor<?x12x?x64xf16>) -> tensor<?x12x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16> -> tensor<?x12x?x?xf32>
  %p = attnfuse.relu_attention %s length : tensor<?x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x12x?x64xf16> -> tensor<?x12x?x64xf16>
  return %o : tensor<?x12x?x64xf16>
}
