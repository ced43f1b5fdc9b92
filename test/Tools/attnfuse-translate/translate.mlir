// RUN: attnfuse-translate %s --attnfuse-to-ptx | FileCheck %s --check-prefix=PTX
// RUN: attnfuse-translate %s --attnfuse-to-manifest | FileCheck %s --check-prefix=MANIFEST
// RUN: sed 's/, attnfuse.other.*//; s/attributes {attnfuse.target.*}/ /' %s > %t.mlir
// RUN: not attnfuse-translate %t.mlir --attnfuse-to-ptx 2>&1 | FileCheck %s --check-prefix=ERROR

// PTX: .target sm_80
// PTX: .entry f(
// MANIFEST: "chip": "sm_80"
// MANIFEST: "name": "f"
// ERROR: error: no machine is given
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  func.func @f(%q: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
        : (tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
    return %o : tensor<1x2x?x64xf16>
  }
}
