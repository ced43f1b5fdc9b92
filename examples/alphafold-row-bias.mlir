// AlphaFold 2, row-wise gated self-attention with pair bias: B counts the rows of the
// alignment. The pair bias is shared by all rows, the mask bias (0 or -inf) by all heads
// and queries of a row; neither is copied to full size.
//
// attnfuse-run examples/alphafold-row-bias.mlir --device=cpu --random=1 --dims B=5,N=43 --check

func.func @alphafold_row_bias(
    %q: tensor<?x8x?x32xbf16>, %k: tensor<?x8x?x32xbf16>, %v: tensor<?x8x?x32xbf16>,
    %pair: tensor<1x8x?x?xbf16> {attnfuse.name = "pair_bias"},
    %mask: tensor<?x1x1x?xbf16> {attnfuse.name = "mask_bias"}) -> tensor<?x8x?x32xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x8x?x32xbf16>, tensor<?x8x?x32xbf16> -> tensor<?x8x?x?xf32>
  %a = attnfuse.additive_bias %s, %mask : tensor<?x8x?x?xf32>, tensor<?x1x1x?xbf16>
  %b = attnfuse.additive_bias %a, %pair : tensor<?x8x?x?xf32>, tensor<1x8x?x?xbf16>
  %p = attnfuse.softmax %b : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x8x?x?xf32>, tensor<?x8x?x32xbf16> -> tensor<?x8x?x32xbf16>
  return %o : tensor<?x8x?x32xbf16>
}
