// Llama 3 8B, prefill: rotary embedding of q and k, causal, 32 query heads on 8 key
// heads. q and k read one pair of tables (8192 positions, f32), and both rotations are
// part of the kernel.
//
// attnfuse-run examples/llama3-rope-causal-gqa.mlir --device=cpu --random=1 --dims B=1,N=70 --check

func.func @llama3(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>,
                  %v: tensor<?x8x?x128xbf16>, %cos: tensor<8192x64xf32>,
                  %sin: tensor<8192x64xf32>) -> tensor<?x32x?x128xbf16> {
  %qr = attnfuse.rope %q, %cos, %sin half
      : tensor<?x32x?x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
  %kr = attnfuse.rope %k, %cos, %sin half
      : tensor<?x8x?x128xbf16>, tensor<8192x64xf32>, tensor<8192x64xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr
      : tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x32x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x32x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x32x?x?xf32>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}
