// One step of generation with Llama 3's shapes: one query at a position that is known at
// run time (the offset, Nkv - 1 in a running model), against a cache whose keys were
// rotated when they were written. The causal mask stands as in prefill and folds away,
// since the last token sees every key.
//
// attnfuse-run examples/decode-rope-offset.mlir --device=cpu --random=1 --dims B=2,Nkv=150 --check

func.func @decode_rope_offset(%q: tensor<?x32x1x128xbf16>, %k: tensor<?x8x?x128xbf16>,
                              %v: tensor<?x8x?x128xbf16>, %cos: tensor<8192x64xf32>,
                              %sin: tensor<8192x64xf32>,
                              %offset: i64) -> tensor<?x32x1x128xbf16> {
  %qr = attnfuse.rope %q, %cos, %sin half offset(%offset)
      : tensor<?x32x1x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
  %s = attnfuse.scaled_dot_product %qr, %k
      : tensor<?x32x1x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x1x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x32x1x?xf32>
  %p = attnfuse.softmax %m : tensor<?x32x1x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x32x1x?xf32>, tensor<?x8x?x128xbf16> -> tensor<?x32x1x128xbf16>
  return %o : tensor<?x32x1x128xbf16>
}
