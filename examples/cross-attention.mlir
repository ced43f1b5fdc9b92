// Whisper large, decoder to encoder: queries and keys are different sequences, of
// different lengths.
//
// attnfuse-run examples/cross-attention.mlir --device=cpu --random=1 --dims B=2,Nq=19,Nkv=150 --check

func.func @cross_attention(%q: tensor<?x20x?x64xf16>, %k: tensor<?x20x?x64xf16>,
                           %v: tensor<?x20x?x64xf16>) -> tensor<?x20x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x20x?x64xf16>, tensor<?x20x?x64xf16> -> tensor<?x20x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x20x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x20x?x?xf32>, tensor<?x20x?x64xf16> -> tensor<?x20x?x64xf16>
  return %o : tensor<?x20x?x64xf16>
}
