// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// With several stages K and V of a tile are one group of copies, some steps ahead, and a step has one
// barrier. (forward.mlir has one stage.)

// CHECK-LABEL: llvm.func @two(
// CHECK:         scf.while
// Q; K and V of the first tile, if there is one.
// CHECK:           nvvm.cp.async.shared.global {{.*}} loc("prologue"
// CHECK-NEXT:      nvvm.cp.async.commit.group loc("prologue"
// CHECK:           scf.if
// CHECK-COUNT-2:     nvvm.cp.async.shared.global {{.*}} loc("prologue"
// CHECK-NOT:         nvvm.cp.async.shared.global
// CHECK:           }
// CHECK-NEXT:      nvvm.cp.async.commit.group loc("prologue"
// CHECK-NOT:       nvvm.cp.async.wait.group
// CHECK:           scf.while
// All copies of the tile have landed, and every warp is done with the other slot: the second of 1024 bytes.
// CHECK:             nvvm.cp.async.wait.group 0 loc("load_ahead"
// CHECK-NEXT:        nvvm.barrier loc("load_ahead"
// CHECK:             %[[FIRST:.*]] = arith.cmpi eq, %[[SLOT:.*]], %{{.*}} : i32 loc("load_ahead"
// CHECK:             arith.select %[[FIRST]], %c1024{{.*}} loc("load_ahead"
// CHECK:             scf.if
// CHECK-COUNT-2:       nvvm.cp.async.shared.global {{.*}} loc("load_ahead"
// CHECK-NOT:           nvvm.cp.async.shared.global
// CHECK:             }
// An empty group if the walk has ended.
// CHECK-NEXT:        nvvm.cp.async.commit.group loc("load_ahead"
// CHECK:             nvvm.mma.sync {{.*}} loc("qk"
// CHECK:             arith.select {{.*}} loc("mask"
// Neither a wait nor a barrier before V, but where it is filtered.
// CHECK-NOT:         nvvm.cp.async
// CHECK-NOT:         nvvm.barrier
// CHECK:             nvvm.barrier loc("value_filter"
// CHECK-NOT:         nvvm.cp.async
// CHECK-NOT:         nvvm.barrier
// CHECK:             nvvm.mma.sync {{.*}} loc("pv"
// CHECK-NOT:         nvvm.barrier
// CHECK:             scf.yield
// CHECK:           nvvm.cp.async.wait.group 0 loc("epilogue"
// CHECK-NEXT:      nvvm.barrier loc("epilogue"
func.func @two(%q: tensor<?x2x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>) -> tensor<?x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, right = 0>] softmax
      schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false, stages = 2> {scale = 0.25 : f64}
      : (tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>) -> tensor<?x2x?x16xf16>
  return %o : tensor<?x2x?x16xf16>
}

// -----

// Three slots: two groups are under way behind that of Q, which is awaited before the loop, and one when
// a step begins. Rotated K is behind a second barrier.

// CHECK-LABEL: llvm.func @three(
// CHECK:         scf.while
// CHECK-COUNT-3:   nvvm.cp.async.commit.group loc("prologue"
// CHECK-NOT:       nvvm.cp.async.commit.group
// CHECK:           nvvm.cp.async.wait.group 2
// CHECK-NEXT:      nvvm.barrier
// CHECK:           scf.while
// CHECK:             nvvm.cp.async.wait.group 1 loc("load_ahead"
// CHECK-NEXT:        nvvm.barrier loc("load_ahead"
// Two tiles ahead.
// CHECK-NEXT:        arith.subi %{{.*}}, %c2_i32{{.*}} loc("load_ahead"
// CHECK-COUNT-2:     nvvm.cp.async.shared.global {{.*}} loc("load_ahead"
// CHECK:             nvvm.cp.async.commit.group loc("load_ahead"
// CHECK:             llvm.store {{.*}} loc("rotate"
// CHECK:             nvvm.barrier
// CHECK:             nvvm.mma.sync {{.*}} loc("qk"
// CHECK-NOT:         nvvm.cp.async
// CHECK:             nvvm.mma.sync {{.*}} loc("pv"
func.func @three(%q: tensor<1x2x?x16xbf16>, %k: tensor<1x1x?x16xbf16>, %v: tensor<1x1x?x16xbf16>,
                 %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> tensor<1x2x?x16xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) rotate_q <half, offset = 0>(%cos, %sin) rotate_k <half, offset = 0>(%cos, %sin)
      softmax schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = true, stages = 3> {scale = 0.25 : f64}
      : (tensor<1x2x?x16xbf16>, tensor<1x1x?x16xbf16>, tensor<1x1x?x16xbf16>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>)
        -> tensor<1x2x?x16xbf16>
  return %o : tensor<1x2x?x16xbf16>
}

// -----

// In a list of blocks the tile ahead is found by stepping back through the list, each step without a
// load of its own.

// CHECK-LABEL: llvm.func @listed(
// CHECK:         scf.while
// CHECK:           scf.while
// CHECK:             nvvm.cp.async.wait.group 1 loc("load_ahead"
// CHECK-COUNT-1:     llvm.load {{.*}} -> i32 loc("load_ahead"
// CHECK-NOT:         llvm.load {{.*}} loc("load_ahead"
// CHECK:             nvvm.mma.sync
func.func @listed(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>,
                  %rows: tensor<?xi32>, %cols: tensor<?xi32>) -> tensor<1x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) blocks <16x32>(%rows, %cols) softmax
      schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false, stages = 3> {scale = 0.25 : f64}
      : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<?xi32>, tensor<?xi32>)
        -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}
