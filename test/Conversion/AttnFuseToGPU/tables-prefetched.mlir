// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=split --attnfuse-select-schedule=key-splits=1 --convert-attnfuse-to-gpu 2>/dev/null | FileCheck %s

// Where Q is rotated in shared memory, the loading thread has the tables' rows brought to the cache, a
// tile ahead: if there is a next tile, and if rows follow each other at most 4 of their sizes apart, of
// 128 bytes here. Strides may be negative, sizes not.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @prefetched(
// CHECK:         setmaxregister decrease
// CHECK:         llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         %[[HAS:.*]] = arith.cmpi sge, %{{.*}}#3, %c0_i32 : i32
// CHECK-NEXT:    scf.if %[[HAS]] {
// CHECK:           %[[STRIDE:.*]] = arith.muli %arg{{.*}}, %c4_i64
// CHECK:           arith.cmpi sge, %[[STRIDE]], %c0_i64
// CHECK:           arith.cmpi sle, %[[STRIDE]], %c512_i64
// CHECK-COUNT-2:   cp.async.bulk.prefetch.L2.global
// CHECK:         scf.while
// CHECK-COUNT-2: cp.async.bulk.prefetch.L2.global
// CHECK-NOT:     cp.async.bulk.prefetch
// CHECK:         setmaxregister increase
func.func @prefetched(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x8x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%cos, %sin) softmax {scale = 0.125 : f64}
      : (tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}

// Rows at given positions need not be neighbours.
// CHECK-LABEL: llvm.func @placed(
// CHECK-NOT:     cp.async.bulk.prefetch
func.func @placed(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>, %positions: tensor<?xi64>) -> tensor<?x8x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%cos, %sin, positions %positions) softmax {scale = 0.125 : f64}
      : (tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi64>) -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}
}
