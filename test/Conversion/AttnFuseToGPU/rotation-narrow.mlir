// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=fused --attnfuse-select-schedule --convert-attnfuse-to-gpu 2>/dev/null | FileCheck %s

// A key tile of few features has fewer vectors than the loading warpgroup has threads. All of them
// wait for the tile before they announce it: one that did not would announce later tiles of the same
// slot in place of others.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @narrow$few_rows(
// CHECK:         nvvm.setmaxregister {{ *}}decrease
// Q, the first key tile and the next one.
// CHECK-COUNT-3: mbarrier.arrive.expect_tx
// CHECK:         mbarrier.try_wait
// CHECK-NEXT:    %[[HAS:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}}
// CHECK-NEXT:    scf.if %[[HAS]] {
// CHECK-NOT:     mbarrier
// CHECK:         fence.proxy.async
// CHECK:         mbarrier.arrive.shared::cta.b64
func.func @narrow(%q: tensor<?x2x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>, %cos: tensor<192x8xf32>, %sin: tensor<192x8xf32>) -> tensor<?x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) rotate_k <half, offset = 0>(%cos, %sin) softmax {scale = 0.25 : f64}
      : (tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<192x8xf32>, tensor<192x8xf32>) -> tensor<?x2x?x16xf16>
  return %o : tensor<?x2x?x16xf16>
}
}
