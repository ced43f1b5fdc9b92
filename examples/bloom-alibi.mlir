// BLOOM 7B1: causal attention with ALiBi. Without a slopes operand the slopes are the
// standard geometric ones for 32 heads.
//
// attnfuse-run examples/bloom-alibi.mlir --device=cpu --random=1 --dims B=1,N=70 --check

func.func @bloom_alibi(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x32x?x128xbf16>,
                       %v: tensor<?x32x?x128xbf16>) -> tensor<?x32x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16> -> tensor<?x32x?x?xf32>
  %a = attnfuse.alibi %s bottom_right : tensor<?x32x?x?xf32>
  %m = attnfuse.causal %a bottom_right : tensor<?x32x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x32x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x32x?x?xf32>, tensor<?x32x?x128xbf16> -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}
