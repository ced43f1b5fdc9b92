// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// A block with roles: one computing warpgroup, 16 keys a step.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK:       gpu.module @causal_kernels attributes {attnfuse.manifest = "{{.*}}\22grid\22:{{\[\[}}\22min\22,{{.*}},{{\[}}\22mul\22,\22$sm_count\22,3{{\]\],1,1\]}}
// CHECK-SAME:    \22box\22:[1,64,64],\22kind\22:\22tensor_map\22,\22of\22:\22q\22
// CHECK-SAME:    \22box\22:[1,16,64],\22kind\22:\22tensor_map\22,\22of\22:\22k\22
// CHECK:         llvm.func @causal(
// CHECK-SAME:      !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}
// CHECK-SAME:      nvvm.minctasm = 3 : i32, nvvm.reqntid = array<i32: 256>
// CHECK:           mbarrier.init{{.*}} loc("barriers"
// CHECK:           fence.mbarrier_init
// CHECK:           nvvm.barrier loc("barriers"
// The loading warpgroup: K, Q, then the next K and V in turns, always after a wait for the slot.
// CHECK:           scf.if
// CHECK:             nvvm.setmaxregister{{ +}}decrease 32
// CHECK:             scf.while
// CHECK:               mbarrier.try_wait
// CHECK:               mbarrier.arrive.expect_tx{{.*}} 2048;
// CHECK:               cp.async.bulk.tensor.4d.shared
// CHECK:               mbarrier.try_wait
// CHECK:               mbarrier.arrive.expect_tx{{.*}} 8192;
// CHECK:               cp.async.bulk.tensor.4d.shared
// CHECK:               scf.while
// CHECK-COUNT-2:         cp.async.bulk.tensor.4d.shared
// The computing warpgroup. The first tile is masked, and starts the output from 0.
// CHECK:           } else {
// CHECK:             nvvm.setmaxregister{{ +}}increase 128
// CHECK:             scf.while
// CHECK:               mbarrier.try_wait{{.*}} loc("query"
// CHECK:               wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16{{.*}} loc("first_step"
// CHECK:               wgmma.wait_group.sync.aligned 0{{.*}} loc("first_step"
// CHECK-COUNT-8:       arith.select {{.*}} loc("mask"
// CHECK:               nvvm.convert.f32x2.to.f16x2
// Boundary tiles: products of this and of the step before, masks, normalizer; then, without masks and
// with a rescale under a condition, the tiles that the diagonal does not cut.
// CHECK:               scf.while
// CHECK:                 wgmma.mma_async{{.*}}m64n16k16{{.*}} loc("step"
// CHECK:                 wgmma.mma_async{{.*}}m64n64k16{{.*}} loc("step"
// CHECK:                 wgmma.wait_group.sync.aligned 1
// CHECK-COUNT-8:         arith.select {{.*}} loc("mask"
// CHECK:                 mbarrier.try_wait
// CHECK-NEXT:            wgmma.wait_group.sync.aligned 0
// CHECK:               scf.while
// CHECK:                 wgmma.mma_async{{.*}}m64n16k16{{.*}} loc("step"
// CHECK:                 wgmma.mma_async{{.*}}m64n64k16{{.*}} loc("step"
// CHECK-NOT:             loc("mask"
// CHECK:                 nvvm.vote.sync any
// CHECK:                 scf.if
// CHECK:                   arith.mulf {{.*}} loc("rescale"
// CHECK:               wgmma.mma_async{{.*}}m64n64k16{{.*}} loc("last_product"
// CHECK:               stmatrix{{.*}} loc("epilogue"
// What is not finite is computed anew.
// CHECK:               scf.if
// CHECK:                 nvvm.mma.sync {{.*}} loc("exact_rows"
// CHECK:               fence.proxy.async
// CHECK:               cp.async.bulk.tensor.4d.global
// CHECK:           llvm.return
func.func @causal(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>)
    -> (tensor<?x2x?x64xf16>, tensor<?x2x?xf32>) {
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, right = 0>] softmax
      schedule <tile_m = 64, tile_n = 16, warps = 4, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = with_next_key>>
      {scale = 0.125 : f64}
      : (tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) -> (tensor<?x2x?x64xf16>, tensor<?x2x?xf32>)
  return %o, %lse : tensor<?x2x?x64xf16>, tensor<?x2x?xf32>
}
}
