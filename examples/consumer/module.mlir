// Two layers: attention among linalg, scf and arith.
//
//   my-opt module.mlir --my-gpu-pipeline
module attributes {attnfuse.target = #attnfuse.target<"a100">} {
  func.func @layers(%x: tensor<2x8x?x64xf16>, %gain: f16, %layers: index,
                    %stream: i64 {attnfuse.stream}) -> tensor<2x8x?x64xf16> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %y = scf.for %layer = %c0 to %layers step %c1 iter_args(%h = %x) -> tensor<2x8x?x64xf16> {
      %s = attnfuse.scaled_dot_product %h, %h
          : tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16> -> tensor<2x8x?x?xf32>
      %m = attnfuse.causal %s bottom_right : tensor<2x8x?x?xf32>
      %p = attnfuse.softmax %m : tensor<2x8x?x?xf32>
      %o = attnfuse.weighted_sum %p, %h
          : tensor<2x8x?x?xf32>, tensor<2x8x?x64xf16> -> tensor<2x8x?x64xf16>
      %r = linalg.generic {
          indexing_maps = [affine_map<(b, h, i, d) -> (b, h, i, d)>,
                           affine_map<(b, h, i, d) -> (b, h, i, d)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
          ins(%o : tensor<2x8x?x64xf16>) outs(%h : tensor<2x8x?x64xf16>) {
        ^bb0(%in: f16, %residual: f16):
          %scaled = arith.mulf %in, %gain : f16
          %sum = arith.addf %scaled, %residual : f16
          linalg.yield %sum : f16
      } -> tensor<2x8x?x64xf16>
      scf.yield %r : tensor<2x8x?x64xf16>
    }
    return %y : tensor<2x8x?x64xf16>
  }

  func.func @scale(%a: f32, %b: f32) -> f32 {
    %c = arith.mulf %a, %b : f32
    return %c : f32
  }
}
