// Mistral 7B v0.1: 32 query heads share 8 key heads, and a token sees itself and the
// 4095 tokens before it. The two masks become one band.
//
// attnfuse-run examples/mistral-window-gqa.mlir --device=cpu --random=1 --dims B=1,N=70 --check

func.func @mistral_window_gqa(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>,
                              %v: tensor<?x8x?x128xbf16>) -> tensor<?x32x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x?xf32>
  %c = attnfuse.causal %s bottom_right : tensor<?x32x?x?xf32>
  %m = attnfuse.sliding_window %c bottom_right {left = 4095} : tensor<?x32x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x32x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x32x?x?xf32>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}
