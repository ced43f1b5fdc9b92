// A local layer of ModernBERT: an encoder whose tokens see 64 tokens to either side.
//
// attnfuse-run examples/bidirectional-window.mlir --device=cpu --random=1 --dims B=2,N=200 --check

func.func @bidirectional_window(%q: tensor<?x12x?x64xbf16>, %k: tensor<?x12x?x64xbf16>,
                                %v: tensor<?x12x?x64xbf16>) -> tensor<?x12x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x12x?x64xbf16>, tensor<?x12x?x64xbf16> -> tensor<?x12x?x?xf32>
  %m = attnfuse.sliding_window %s top_left {left = 64, right = 64} : tensor<?x12x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x12x?x64xbf16> -> tensor<?x12x?x64xbf16>
  return %o : tensor<?x12x?x64xbf16>
}
