// RUN: attnfuse-opt %s --attnfuse-report-fusion --verify-diagnostics
// RUN: attnfuse-opt %s --attnfuse-report-fusion -o %t
// RUN: attnfuse-opt %s -o - | diff - %t
// RUN: attnfuse-opt %s --attnfuse-fuse --remarks-filter=attnfuse-fuse --remark-format=emitRemark -o %t 2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: %mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s \
// RUN:   --pass-pipeline='builtin.module(func.func(attnfuse-fuse))' \
// RUN:   --remarks-filter=attnfuse-fuse --remark-format=yaml --remarks-output-file=%t.yaml -o %t
// RUN: FileCheck %s --check-prefix=YAML < %t.yaml

// REMARKS-DAG: NotFused{{.*}}the scores have more than one use
// REMARKS-DAG: Fused{{.*}}fused into one attention: 1 bands, softmax
// YAML-DAG: --- !Missed
// YAML-DAG: --- !Passed
// YAML-DAG: Pass: attnfuse-fuse
// YAML-DAG: Function: two_of_three

// expected-remark @+1 {{'two_of_three': 1 of 3 attentions fused}}
func.func @two_of_three(%q: tensor<2x4x16x64xf16>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x16xf32>) {
  %a = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16>
  %s = attnfuse.scaled_dot_product %q, %q : tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16> -> tensor<2x4x16x16xf32>
  %m = attnfuse.causal %s top_left : tensor<2x4x16x16xf32>
  %p = attnfuse.softmax %m : tensor<2x4x16x16xf32>
  // expected-remark @+1 {{not fused: attnfuse-fuse has not run}}
  %o = attnfuse.weighted_sum %p, %q : tensor<2x4x16x16xf32>, tensor<2x4x16x64xf16> -> tensor<2x4x16x64xf16>
  // expected-remark @+1 {{not fused: the scores have more than one use}}
  %s2 = attnfuse.scaled_dot_product %q, %q : tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16> -> tensor<2x4x16x16xf32>
  %p2 = attnfuse.softmax %s2 : tensor<2x4x16x16xf32>
  // expected-note @+1 {{the chain ends here}}
  %o2 = attnfuse.weighted_sum %p2, %q : tensor<2x4x16x16xf32>, tensor<2x4x16x64xf16> -> tensor<2x4x16x64xf16>
  // expected-note @+1 {{used here too}}
  return %a, %o, %o2, %s2 : tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x16xf32>
}
