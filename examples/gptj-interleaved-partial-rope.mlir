// GPT-J 6B: heads of 256 features, of which the first 64 rotate, in interleaved pairs
// (2i, 2i + 1).
//
// attnfuse-run examples/gptj-interleaved-partial-rope.mlir --device=cpu --random=1 --dims B=1,N=70 --check

func.func @gptj(%q: tensor<?x16x?x256xf16>, %k: tensor<?x16x?x256xf16>,
                %v: tensor<?x16x?x256xf16>, %cos: tensor<2048x32xf32>,
                %sin: tensor<2048x32xf32>) -> tensor<?x16x?x256xf16> {
  %qr = attnfuse.rope %q, %cos, %sin interleaved
      : tensor<?x16x?x256xf16>, tensor<2048x32xf32>, tensor<2048x32xf32>
  %kr = attnfuse.rope %k, %cos, %sin interleaved
      : tensor<?x16x?x256xf16>, tensor<2048x32xf32>, tensor<2048x32xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr
      : tensor<?x16x?x256xf16>, tensor<?x16x?x256xf16> -> tensor<?x16x?x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x16x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x16x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x16x?x?xf32>, tensor<?x16x?x256xf16> -> tensor<?x16x?x256xf16>
  return %o : tensor<?x16x?x256xf16>
}
