// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=split --attnfuse-select-schedule=key-splits=1 --convert-attnfuse-to-gpu 2>/dev/null | FileCheck %s

// The loading thread works out which query tile is next, a tile ahead, hands it over through shared
// memory, and loads its Q. Those who compute divide by nothing that they do not know.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @ahead(
// CHECK:         setmaxregister decrease
// The first tile, then the next one once the first K is on its way.
// CHECK:         arith.divui
// CHECK:         llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-2: cp.async.bulk.tensor.4d.shared
// CHECK:         scf.while
// CHECK-COUNT-2:   cp.async.bulk.tensor.4d.shared
// CHECK:           arith.divui
// CHECK:           llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-2:   cp.async.bulk.tensor.4d.shared
// CHECK:           scf.while
// CHECK-COUNT-4:     cp.async.bulk.tensor.4d.shared
// CHECK:         setmaxregister increase
// CHECK:         llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-8: ldmatrix
// CHECK:         scf.while
// CHECK-NOT:       {{div|rem}}ui %{{.*}}, %{{[0-9]+}}
// CHECK:           wgmma.wait_group
// The next tile is taken, and its Q, while the last product runs.
// CHECK:           llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-8:   ldmatrix
// The accelerator overwrites it, but not before it is read.
// CHECK:           fence.proxy.async.shared::cta
// CHECK:           bar.warp.sync
// CHECK:           mbarrier.arrive
// CHECK:           wgmma.wait_group.sync.aligned 0
// CHECK:           cp.async.bulk.tensor.4d.global.shared
func.func @ahead(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64}
      : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}
}
