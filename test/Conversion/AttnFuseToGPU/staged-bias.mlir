// RUN: attnfuse-opt %s --attnfuse-fuse --attnfuse-select-schedule --convert-attnfuse-to-gpu 2>/dev/null | FileCheck %s

// Tiles that nothing cuts take the sum of score and bias as it is, in one rounding with the scale,
// and keep the largest elements; other tiles, the first among them, take the whole region.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @biased$few_rows(
// CHECK:         %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK:         nvvm.setmaxregister {{ *}}increase
// CHECK:         arith.cmpf oeq
// CHECK:         arith.maximumf
// CHECK:         wgmma.mma_async
// CHECK-NOT:     arith.maximumf
// CHECK:         arith.maxnumf {{.*}} : vector<2xbf16>
// CHECK-NOT:     arith.maximumf
// CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         %[[BIAS:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK:         arith.addf %[[SCALED]], %[[BIAS]] fastmath<contract> : f32
// CHECK-NOT:     arith.maximumf
// What is read by loads is released behind a fence, since the accelerator overwrites it.
// CHECK:         fence.proxy.async.shared::cta
// CHECK:         bar.warp.sync
// CHECK:         mbarrier.arrive
// CHECK:         llvm.nvvm.ex2
// Sums that the sum of the inner tiles leaves uncertain are made NaN before the output's factors are
// made of them, so that these rows are computed anew.
// CHECK:         %[[SUM:.*]] = arith.select %{{.*}}, %[[NAN]], %{{.*}} : f32
// CHECK:         nvvm.rcp.approx.ftz.f %[[SUM]] : f32
// CHECK:         wgmma.wait_group.sync.aligned 0
func.func @biased(%q: tensor<2x4x?x64xbf16>, %k: tensor<2x4x?x64xbf16>, %v: tensor<2x4x?x64xbf16>, %bias: tensor<2x4x?x?xbf16>) -> tensor<2x4x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16> -> tensor<2x4x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %bias : tensor<2x4x?x?xf32>, tensor<2x4x?x?xbf16>
  %p = attnfuse.softmax %s0 : tensor<2x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<2x4x?x?xf32>, tensor<2x4x?x64xbf16> -> tensor<2x4x?x64xbf16>
  return %o : tensor<2x4x?x64xbf16>
}

// With larger heads it is read while both products run.
// CHECK-LABEL: llvm.func @read_ahead(
// CHECK:         nvvm.setmaxregister {{ *}}increase
// CHECK-COUNT-2: scf.while
// CHECK:         wgmma.mma_async
// CHECK-COUNT-8: ldmatrix
// CHECK:         fence.proxy.async.shared::cta
// CHECK:         bar.warp.sync
// CHECK:         mbarrier.arrive
// CHECK:         wgmma.wait_group.sync.aligned 1
// CHECK-NOT:     ldmatrix
// CHECK:         arith.maxnumf {{.*}} : vector<2xbf16>
func.func @read_ahead(%q: tensor<2x4x?x128xbf16>, %k: tensor<2x4x?x128xbf16>, %v: tensor<2x4x?x128xbf16>, %bias: tensor<2x4x?x?xbf16>) -> tensor<2x4x?x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x4x?x128xbf16>, tensor<2x4x?x128xbf16> -> tensor<2x4x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %bias : tensor<2x4x?x?xf32>, tensor<2x4x?x?xbf16>
  %p = attnfuse.softmax %s0 : tensor<2x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<2x4x?x?xf32>, tensor<2x4x?x128xbf16> -> tensor<2x4x?x128xbf16>
  return %o : tensor<2x4x?x128xbf16>
}

// Another bound than that of additive_bias is kept in all tiles.
// CHECK-LABEL: llvm.func @bounded$few_rows(
// CHECK-NOT:     arith.maxnumf {{.*}} : vector<2xbf16>
func.func @bounded(%q: tensor<2x4x?x64xbf16>, %k: tensor<2x4x?x64xbf16>, %v: tensor<2x4x?x64xbf16>, %bias: tensor<2x4x?x?xbf16>) -> tensor<2x4x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score operands(%bias) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<2x4x?x?xbf16>):
    %e = tensor.extract %t[%b, %h, %i, %j] : tensor<2x4x?x?xbf16>
    %x = arith.extf %e : bf16 to f32
    %inf = arith.constant 0xFF800000 : f32
    %hidden = arith.cmpf oeq, %x, %inf : f32
    %sum = arith.addf %s, %x : f32
    %bound = arith.constant -3.0 : f32
    %bounded = arith.maximumf %sum, %bound : f32
    %r = arith.select %hidden, %inf, %bounded : f32
    attnfuse.yield %r : f32
  } {scale = 0.125 : f64} : (tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x?xbf16>) -> tensor<2x4x?x64xbf16>
  return %o : tensor<2x4x?x64xbf16>
}

// Biases come together: a row of 64 keys for all queries beside 64 rows, announced as one. The row
// lies behind the rows of the other, in the region's order before it: 1024 bytes are kept for it.
// CHECK-LABEL: llvm.func @pair_and_mask(
// CHECK:         nvvm.setmaxregister {{ *}}decrease
// CHECK:         expect_tx.shared::cta.b64 _, [$0], 8320;
// CHECK:         cp.async.bulk.tensor.4d.shared
// CHECK:         arith.addi %{{.*}}, %c1024_i32
// CHECK:         cp.async.bulk.tensor.4d.shared
// CHECK:         nvvm.setmaxregister {{ *}}increase
// CHECK:         wgmma.mma_async
// CHECK:         ld.shared.b32
// CHECK:         ldmatrix
// CHECK:         arith.extf {{.*}} : f16 to f32
// CHECK:         arith.extf {{.*}} : bf16 to f32
// CHECK:         llvm.nvvm.ex2
// Where either has strides that the accelerator cannot take, both are read element by element.
// CHECK-LABEL: llvm.func @pair_and_mask$any_strides(
// CHECK-NOT:     cp.async.bulk
// CHECK:         llvm.load {{.*}} -> f16
// CHECK:         llvm.load {{.*}} -> bf16
func.func @pair_and_mask(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %v: tensor<?x8x?x64xbf16>, %pair: tensor<1x8x?x?xbf16>, %mask: tensor<?x1x1x?xf16>) -> tensor<?x8x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16> -> tensor<?x8x?x?xf32>
  %s0 = attnfuse.additive_bias %s, %mask : tensor<?x8x?x?xf32>, tensor<?x1x1x?xf16>
  %s1 = attnfuse.additive_bias %s0, %pair : tensor<?x8x?x?xf32>, tensor<1x8x?x?xbf16>
  %p = attnfuse.softmax %s1 : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x8x?x?xf32>, tensor<?x8x?x64xbf16> -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}
}
