// BERT base, encoder self-attention: every token sees every token.
//
// attnfuse-run examples/bert-dense.mlir --device=cpu --random=1 --dims B=2,N=77 --check

func.func @bert_dense(%q: tensor<?x12x?x64xf16>, %k: tensor<?x12x?x64xf16>,
                      %v: tensor<?x12x?x64xf16>) -> tensor<?x12x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %k
      : tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16> -> tensor<?x12x?x?xf32>
  %m = attnfuse.full %s : tensor<?x12x?x?xf32>
  %p = attnfuse.softmax %m : tensor<?x12x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v
      : tensor<?x12x?x?xf32>, tensor<?x12x?x64xf16> -> tensor<?x12x?x64xf16>
  return %o : tensor<?x12x?x64xf16>
}
