// Rotary embedding and ALiBi in one kernel, causal. The tables are in the element type
// and of a size known at run time; the slopes are given.
//
// attnfuse-run examples/rope-alibi-causal.mlir --device=cpu --random=1 --dims B=2,N=70 --check

func.func @rope_alibi_causal(%q: tensor<?x16x?x64xf16>, %k: tensor<?x16x?x64xf16>,
                             %v: tensor<?x16x?x64xf16>, %cos: tensor<?x32xf16>,
                             %sin: tensor<?x32xf16>,
                             %slopes: tensor<16xf32>) -> tensor<?x16x?x64xf16> {
  %qr = attnfuse.rope %q, %cos, %sin half
      : tensor<?x16x?x64xf16>, tensor<?x32xf16>, tensor<?x32xf16>
  %kr = attnfuse.rope %k, %cos, %sin half
      : tensor<?x16x?x64xf16>, tensor<?x32xf16>, tensor<?x32xf16>
  %s = attnfuse.scaled_dot_product %qr, %kr
      : tensor<?x16x?x64xf16>, tensor<?x16x?x64xf16> -> tensor<?x16x?x?xf32>
  %a = attnfuse.alibi %s bottom_right slopes(%slopes : tensor<16xf32>)
      : tensor<?x16x?x?xf32>
  %m = attnfuse.causal %a bottom_right : tensor<?x16x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x16x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x16x?x?xf32>, tensor<?x16x?x64xf16> -> tensor<?x16x?x64xf16>
  return %o : tensor<?x16x?x64xf16>
}
