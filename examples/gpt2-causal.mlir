// GPT-2 small, causal self-attention. With a cache of earlier keys (Nkv > Nq) the
// queries are the last Nq tokens, which is what bottom_right says.
//
// attnfuse-run examples/gpt2-causal.mlir --device=cpu --random=1 --dims B=2,N=77 --check

func.func @gpt2_causal(%q: tensor<?x12x?x64xf16>, %k: tensor<?x12x?x64xf16>,
                       %v: tensor<?x12x?x64xf16>) -> tensor<?x12x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16> -> tensor<?x12x?x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x12x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x12x?x64xf16> -> tensor<?x12x?x64xf16>
  return %o : tensor<?x12x?x64xf16>
}
