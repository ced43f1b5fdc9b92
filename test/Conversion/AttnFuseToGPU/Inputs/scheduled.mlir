module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  func.func @k(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax
        schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = true> {scale = 0.125 : f64}
        : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %o : tensor<1x2x64x64xf16>
  }
}
