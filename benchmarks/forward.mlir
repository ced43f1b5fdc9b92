// The variants that docs/performance.md quotes, a function each, for any heads and lengths:
//
//   attnfuse-run benchmarks/forward.mlir --device=cuda --random=1 --time \
//       --function=causal_d128 --dims=B=4,H=16,N=4096

func.func @dense_d64(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> tensor<?x?x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

func.func @causal_d64(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> tensor<?x?x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

func.func @dense_d96(%q: tensor<?x?x?x96xbf16>, %k: tensor<?x?x?x96xbf16>, %v: tensor<?x?x?x96xbf16>)
    -> tensor<?x?x?x96xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x96xbf16>
  return %o : tensor<?x?x?x96xbf16>
}

func.func @causal_d96(%q: tensor<?x?x?x96xbf16>, %k: tensor<?x?x?x96xbf16>, %v: tensor<?x?x?x96xbf16>)
    -> tensor<?x?x?x96xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x96xbf16>
  return %o : tensor<?x?x?x96xbf16>
}

func.func @dense_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @causal_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @dense_d192(%q: tensor<?x?x?x192xbf16>, %k: tensor<?x?x?x192xbf16>, %v: tensor<?x?x?x192xbf16>)
    -> tensor<?x?x?x192xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x192xbf16> -> tensor<?x?x?x192xbf16>
  return %o : tensor<?x?x?x192xbf16>
}

func.func @causal_d192(%q: tensor<?x?x?x192xbf16>, %k: tensor<?x?x?x192xbf16>, %v: tensor<?x?x?x192xbf16>)
    -> tensor<?x?x?x192xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x192xbf16> -> tensor<?x?x?x192xbf16>
  return %o : tensor<?x?x?x192xbf16>
}

func.func @dense_d256(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>)
    -> tensor<?x?x?x256xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}

func.func @causal_d256(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>)
    -> tensor<?x?x?x256xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}

func.func @gpt2_dense(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>)
    -> tensor<?x?x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @gpt2_causal(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>)
    -> tensor<?x?x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @gpt2_window256(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>)
    -> tensor<?x?x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.sliding_window %s bottom_right {left = 255, right = 255} : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @gpt2_causal_alibi(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>)
    -> tensor<?x?x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.alibi %s bottom_right : tensor<?x?x?x?xf32>
  %s1 = attnfuse.causal %s0 bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s1 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @window256_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %s1 = attnfuse.sliding_window %s0 bottom_right {left = 255} : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s1 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @window1024_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %s1 = attnfuse.sliding_window %s0 bottom_right {left = 1023} : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s1 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @window4096_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %s1 = attnfuse.sliding_window %s0 bottom_right {left = 4095} : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s1 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @bias_full_d64(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>,
    %bias: tensor<1x?x?x?xbf16>)
    -> tensor<?x?x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %bias : tensor<?x?x?x?xf32>, tensor<1x?x?x?xbf16>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

func.func @bias_keys_d64(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>,
    %bias: tensor<?x1x1x?xbf16>)
    -> tensor<?x?x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %bias : tensor<?x?x?x?xf32>, tensor<?x1x1x?xbf16>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

func.func @bias_full_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>,
    %bias: tensor<1x?x?x?xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %bias : tensor<?x?x?x?xf32>, tensor<1x?x?x?xbf16>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @bias_keys_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>,
    %bias: tensor<?x1x1x?xbf16>)
    -> tensor<?x?x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %bias : tensor<?x?x?x?xf32>, tensor<?x1x1x?xbf16>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @bigbird64(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>,
    %rows: tensor<1x1x?xi32>,
    %cols: tensor<?xi32>)
    -> tensor<?x?x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.block_sparse %s, %rows, %cols {query_block = 64, key_block = 64} : tensor<?x?x?x?xf32>, tensor<1x1x?xi32>, tensor<?xi32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @bigbird128(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>,
    %rows: tensor<1x1x?xi32>,
    %cols: tensor<?xi32>)
    -> tensor<?x?x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.block_sparse %s, %rows, %cols {query_block = 128, key_block = 128} : tensor<?x?x?x?xf32>, tensor<1x1x?xi32>, tensor<?xi32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @gpt2_rope_causal(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>,
    %cos: tensor<?x32xf32>,
    %sin: tensor<?x32xf32>)
    -> tensor<?x?x?x64xf16> {
  %qr = attnfuse.rope %q, %cos, %sin half : tensor<?x?x?x64xf16>, tensor<?x32xf32>, tensor<?x32xf32>
  %kr = attnfuse.rope %k, %cos, %sin half : tensor<?x?x?x64xf16>, tensor<?x32xf32>, tensor<?x32xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @gpt2_rope_causal_alibi(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>,
    %cos: tensor<?x32xf32>,
    %sin: tensor<?x32xf32>)
    -> tensor<?x?x?x64xf16> {
  %qr = attnfuse.rope %q, %cos, %sin half : tensor<?x?x?x64xf16>, tensor<?x32xf32>, tensor<?x32xf32>
  %kr = attnfuse.rope %k, %cos, %sin half : tensor<?x?x?x64xf16>, tensor<?x32xf32>, tensor<?x32xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.alibi %s bottom_right : tensor<?x?x?x?xf32>
  %s1 = attnfuse.causal %s0 bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s1 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

func.func @rope_causal_d128(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>,
    %cos: tensor<?x64xf32>,
    %sin: tensor<?x64xf32>)
    -> tensor<?x?x?x128xbf16> {
  %qr = attnfuse.rope %q, %cos, %sin half : tensor<?x?x?x128xbf16>, tensor<?x64xf32>, tensor<?x64xf32>
  %kr = attnfuse.rope %k, %cos, %sin half : tensor<?x?x?x128xbf16>, tensor<?x64xf32>, tensor<?x64xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x?xf32>
  %s0 = attnfuse.causal %s bottom_right : tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s0 : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
