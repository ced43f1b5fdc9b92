// Manifests that a module brings along are not trusted.
//
// RUN: attnfuse-compile %s --explain --emit=schedule -o %t.mlir | FileCheck %s
// CHECK:      f for sm_80 (sm_80):
// CHECK:        fused: all of it, into one attention
// CHECK-NEXT:   launches the first that applies:
// CHECK-NEXT:     , then x, by B
// CHECK-NEXT:   normalizer: softmax

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  gpu.module @a attributes {attnfuse.manifest = "[]"} {
    llvm.func @f()
  }
  gpu.module @b attributes {attnfuse.manifest = "{"} {
    llvm.func @f()
  }
  gpu.module @c attributes {attnfuse.manifest = "{\22name\22: \22f\22, \22versions\22: [1, {\22kernels\22: [7, {}, {\22name\22: \22x\22}], \22when\22: [[], [\22le\22, \22B\22, {}]]}]}"} {
    llvm.func @f()
  }
  func.func @f(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
        : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %o : tensor<1x2x64x64xf16>
  }
}
