// RUN: attnfuse-opt %s --attnfuse-to-ptx-pipeline --split-input-file --verify-diagnostics

// A function that is launched becomes kernels, so nothing else may need it.

module attributes {attnfuse.target = #attnfuse.target<"a100">} {
  func.func @host(%q: tensor<1x2x64x64xf16>) -> (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) {
    // expected-error @below {{'attnfuse.launch' op expected 'f' to be private and to have no uses but launches; launch a copy of it}}
    %a = attnfuse.launch @f ins(%q : tensor<1x2x64x64xf16>) outs(%q : tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    // expected-note @below {{it is also used here}}
    %b = func.call @f(%q) : (tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %a, %b : tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>
  }
  func.func private @f(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
        : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %o : tensor<1x2x64x64xf16>
  }
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"a100">} {
  func.func @host(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    // expected-error @below {{'attnfuse.launch' op expected 'f' to be private and to have no uses but launches; launch a copy of it}}
    %a = attnfuse.launch @f ins(%q : tensor<1x2x64x64xf16>) outs(%q : tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %a : tensor<1x2x64x64xf16>
  }
  // expected-note @below {{it is not private}}
  func.func @f(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
        : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %o : tensor<1x2x64x64xf16>
  }
}
