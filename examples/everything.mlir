// Every block that can stand in one chain, in one kernel: rotations of q (at an offset)
// and of k (at given positions) by tables of run-time size, two biases, ALiBi, a causal
// mask, a window, a block-sparse pattern, grouped heads, heads of v narrower than those
// of q and k, and the log-sum-exp as a second result.
//
// attnfuse-run examples/everything.mlir --device=cpu --random=1 --dims B=2,Nq=101,Nkv=170 --check

func.func @everything(
    %q: tensor<?x12x?x128xbf16>, %k: tensor<?x4x?x128xbf16>, %v: tensor<?x4x?x64xbf16>,
    %cos: tensor<?x48xf32>, %sin: tensor<?x48xf32>, %offset: i64, %positions: tensor<?x?xi32>,
    %slopes: tensor<12xf32>, %bias: tensor<1x12x?x?xbf16>,
    %mask: tensor<?x1x1x?xf32> {attnfuse.name = "mask_bias"},
    %rows: tensor<?xi32>, %cols: tensor<?xi32>)
    -> (tensor<?x12x?x64xbf16>, tensor<?x12x?xf32>) {
  %qr = attnfuse.rope %q, %cos, %sin half offset(%offset)
      : tensor<?x12x?x128xbf16>, tensor<?x48xf32>, tensor<?x48xf32>
  %kr = attnfuse.rope %k, %cos, %sin half positions(%positions : tensor<?x?xi32>)
      : tensor<?x4x?x128xbf16>, tensor<?x48xf32>, tensor<?x48xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr
      : tensor<?x12x?x128xbf16>, tensor<?x4x?x128xbf16> -> tensor<?x12x?x?xf32>
  %f = attnfuse.full %s : tensor<?x12x?x?xf32>
  %b = attnfuse.additive_bias %f, %bias : tensor<?x12x?x?xf32>, tensor<1x12x?x?xbf16>
  %c = attnfuse.causal %b bottom_right : tensor<?x12x?x?xf32>
  %a = attnfuse.alibi %c bottom_right slopes(%slopes : tensor<12xf32>)
      : tensor<?x12x?x?xf32>
  %w = attnfuse.sliding_window %a bottom_right {left = 95, right = 8}
      : tensor<?x12x?x?xf32>
  %x = attnfuse.block_sparse %w, %rows, %cols {query_block = 32, key_block = 64}
      : tensor<?x12x?x?xf32>, tensor<?xi32>, tensor<?xi32>
  %y = attnfuse.additive_bias %x, %mask : tensor<?x12x?x?xf32>, tensor<?x1x1x?xf32>
  %p, %lse = attnfuse.softmax %y : tensor<?x12x?x?xf32>, tensor<?x12x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x4x?x64xbf16> -> tensor<?x12x?x64xbf16>
  return %o, %lse : tensor<?x12x?x64xbf16>, tensor<?x12x?xf32>
}
