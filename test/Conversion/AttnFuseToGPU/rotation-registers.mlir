// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=fused --attnfuse-select-schedule=key-splits=1 --convert-attnfuse-to-gpu 2>/dev/null | FileCheck %s

// Q is rotated in registers where both features of a pair are in one lane, by tables in shared memory:
// by two rows of a lane and 8 columns one load of each table, as the table has it. Only the features
// that rotate have some. What a step of the first product needs is rotated while those before it run.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// Of 64 features 32 pairs in 4 groups, which are copied in 8 steps of 4; rows of 160 bytes, and those of
// sin 32 rows later.
// CHECK-LABEL: llvm.func @few_features(
// CHECK:         %[[STEPS:.*]] = arith.constant 256 : i32
// CHECK:         scf.for %{{.*}} to %[[STEPS]] step
// CHECK:           nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK:           llvm.getelementptr %{{.*}}[5120]
// CHECK:           nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK:         setmaxregister increase
// CHECK-COUNT-8: ldmatrix
// CHECK:         fence.proxy.async
// CHECK:         bar.warp.sync
// CHECK:         mbarrier.arrive
// CHECK-COUNT-16: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT:     llvm.load {{.*}} -> vector<2xf32>
// The first of 8 steps of the product needs a quarter of the rotated features, and of their partners;
// the second, before which the others follow, makes the last ones complete.
// CHECK-COUNT-8: nvvm.convert.f32x2.to.bf16x2
// CHECK:         wgmma.fence.sync.aligned; add.u32 low, $68, 0; {{[^;]*}}; wgmma.mma_async{{[^;]*}}, zero, 1, 1, 0; wgmma.commit_group
// CHECK-COUNT-8: nvvm.convert.f32x2.to.bf16x2
// CHECK-NOT:     nvvm.convert.f32x2.to.bf16x2
// CHECK:         wgmma.fence.sync.aligned; add.u32 low, $156, 2; {{[^;]*}}; wgmma.mma_async{{[^;]*}}, one, 1, 1, 0; add.u32
// CHECK-SAME:    wgmma.commit_group
// No fence stands before the release of the tables, which no accelerator writes.
// CHECK-NOT:     fence.proxy.async
// CHECK:         bar.warp.sync
// CHECK:         mbarrier.arrive
// CHECK:         wgmma.wait_group.sync.aligned 0
// CHECK:         scf.while
func.func @few_features(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x32x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%cos, %sin) softmax {scale = 0.125 : f64}
      : (tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}

// Pairs of neighbours: a lane has one of every 8 columns. Positions are loaded where tables are copied.
// CHECK-LABEL: llvm.func @interleaved(
// CHECK:         scf.for
// CHECK:           llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK-COUNT-2:   nvvm.cp.async.shared.global {{.*}}, 8, cache = ca
// CHECK:         setmaxregister increase
// CHECK-NOT:     llvm.load {{.*}} -> i32
// CHECK-COUNT-6: ldmatrix
// CHECK-COUNT-48: llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> f16
// CHECK-NOT:     llvm.load {{.*}} -> f16
// CHECK:         scf.while
func.func @interleaved(%q: tensor<?x32x?x96xbf16>, %k: tensor<?x8x?x96xbf16>, %cos: tensor<?x48xf16>, %sin: tensor<?x48xf16>, %p: tensor<?x?xi32>) -> tensor<?x32x?x96xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <interleaved, offset = 0>(%cos, %sin, positions %p) softmax {scale = 0.125 : f64}
      : (tensor<?x32x?x96xbf16>, tensor<?x8x?x96xbf16>, tensor<?x8x?x96xbf16>, tensor<?x48xf16>, tensor<?x48xf16>, tensor<?x?xi32>) -> tensor<?x32x?x96xbf16>
  return %o : tensor<?x32x?x96xbf16>
}

// The halves of 24 features are 12 apart, in other lanes: Q is rotated in shared memory.
// CHECK-LABEL: llvm.func @other_lanes(
// CHECK:         setmaxregister increase
// CHECK:         llvm.store {{.*}} : vector<4xbf16>, !llvm.ptr<3>
// CHECK:         ldmatrix
func.func @other_lanes(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %cos: tensor<?x12xf32>, %sin: tensor<?x12xf32>) -> tensor<?x32x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%cos, %sin) softmax {scale = 0.125 : f64}
      : (tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x12xf32>, tensor<?x12xf32>) -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}

// Warps that rotate K have no time to copy tables.
// CHECK-LABEL: llvm.func @keys_too(
// CHECK:         setmaxregister increase
// CHECK:         llvm.store {{.*}} : vector<8xbf16>, !llvm.ptr<3>
// CHECK:         wgmma
func.func @keys_too(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x32x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%cos, %sin) rotate_k <half, offset = 0>(%cos, %sin) softmax {scale = 0.125 : f64}
      : (tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}

// Where the schedule has Q in registers although K is rotated, the next tile is dealt, and its Q
// loaded, after all of a tile's keys: a warp that rotates has few registers.
// CHECK-LABEL: llvm.func @keys_alone(
// CHECK:         setmaxregister decrease
// CHECK:         llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-2: cp.async.bulk.tensor.4d.shared
// CHECK:         scf.while
// CHECK-COUNT-2:   cp.async.bulk.tensor.4d.shared
// CHECK-NOT:       vector<4xi32>, !llvm.ptr<3>
// CHECK:           scf.while
// CHECK:             llvm.store {{.*}} : vector<8xbf16>, !llvm.ptr<3>
// CHECK:             cp.async.bulk.tensor.4d.shared
// CHECK:           llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-2:   cp.async.bulk.tensor.4d.shared
// CHECK-NOT:     cp.async.bulk.tensor.4d.shared
// CHECK:         setmaxregister increase
func.func @keys_alone(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_k <half, offset = 0>(%cos, %sin) softmax
      schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = true, pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = with_next_key>>
      {scale = 0.125 : f64}
      : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}
}
