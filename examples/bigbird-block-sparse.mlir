// BigBird: each block of 64 queries sees a list of blocks of 64 keys (global, window and
// random ones), a list per head. Only listed blocks cost work.
//
// attnfuse-run examples/bigbird-block-sparse.mlir --device=cpu --random=1 --dims B=1,N=300 --check

func.func @bigbird_block_sparse(
    %q: tensor<?x12x?x64xf16>, %k: tensor<?x12x?x64xf16>, %v: tensor<?x12x?x64xf16>,
    %rows: tensor<1x12x?xi32>, %cols: tensor<?xi32>) -> tensor<?x12x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16> -> tensor<?x12x?x?xf32>
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 64, key_block = 64}
      : tensor<?x12x?x?xf32>, tensor<1x12x?xi32>, tensor<?xi32>
  %p = attnfuse.softmax %m : tensor<?x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x12x?x64xf16> -> tensor<?x12x?x64xf16>
  return %o : tensor<?x12x?x64xf16>
}
