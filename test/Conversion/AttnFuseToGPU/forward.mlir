// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// One warp, one step of the MMA in every direction: the kernel as a page. Locations name its parts.

// CHECK-LABEL: func.func @causal(
// CHECK:         attnfuse.attention
// CHECK:       gpu.module @causal_kernels
// CHECK:         llvm.mlir.global external @attnfuse$shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK:         llvm.func @causal(
// CHECK-SAME:      !llvm.ptr<1> {llvm.noalias, llvm.readonly}
// CHECK-SAME:      nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 32>
// Q and the first K, then the walk over the key tiles, inside the loop over the modes.
// CHECK:           scf.while
// CHECK:             nvvm.cp.async.shared.global {{.*}} loc("prologue"
// CHECK-NEXT:        nvvm.cp.async.commit.group loc("prologue"
// CHECK:             scf.if
// CHECK:               nvvm.cp.async.shared.global {{.*}} loc("prologue"
// CHECK:             }
// CHECK:             nvvm.cp.async.commit.group loc("prologue"
// CHECK:             scf.while
// V is loaded while S = Q K^T is computed.
// CHECK:               nvvm.cp.async.wait.group 0 loc("load_v"
// CHECK-NEXT:          nvvm.barrier loc("load_v"
// CHECK:               nvvm.cp.async.shared.global {{.*}} loc("load_v"
// CHECK-NEXT:          nvvm.cp.async.commit.group loc("load_v"
// CHECK:               nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>{{.*}} loc("qk"
// CHECK:               nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>{{.*}} loc("qk"
// CHECK-COUNT-2:       nvvm.mma.sync
// CHECK-NOT:           nvvm.mma.sync
// A boundary tile alone runs mask code: two accumulators of four elements.
// CHECK:               %[[MASKED:.*]]:8 = scf.if
// CHECK-COUNT-8:         arith.select {{.*}} loc("mask"
// CHECK:                 scf.yield
// CHECK:               } else {
// CHECK-NOT:             arith.select
// CHECK:                 scf.yield
// The next K is loaded while the normaliser and P V run.
// CHECK:               nvvm.cp.async.wait.group 0 loc("load_k"
// CHECK-NEXT:          nvvm.barrier loc("load_k"
// CHECK:               scf.if
// CHECK:                 nvvm.cp.async.shared.global {{.*}} loc("load_k"
// V is filtered only in the modes that look for values that are not finite.
// CHECK:               scf.if {{.*}} {
// CHECK:                 llvm.store {{.*}} loc("value_filter"
// CHECK:                 nvvm.barrier loc("value_filter"
// CHECK:               }
// CHECK:               nvvm.shfl.sync bfly {{.*}} loc("normalize"
// CHECK:               llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"{{.*}} loc("normalize"
// P stays in registers.
// CHECK:               nvvm.convert.f32x2.to.f16x2 {{.*}} loc("pv"
// CHECK-NOT:           llvm.store
// CHECK:               nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>{{.*}} loc("pv"
// CHECK-COUNT-2:       nvvm.mma.sync {{.*}} loc("pv"
// CHECK:               scf.yield
// CHECK:             nvvm.barrier loc("epilogue"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"{{.*}} loc("epilogue"
// CHECK:             nvvm.barrier #nvvm.reduction<or> {{.*}} loc("epilogue"
// CHECK:           llvm.return
func.func @causal(%q: tensor<?x2x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>)
    -> (tensor<?x2x?x16xf16>, tensor<?x2x?xf32>) {
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, right = 0>] softmax
      schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>) -> (tensor<?x2x?x16xf16>, tensor<?x2x?xf32>)
  return %o, %lse : tensor<?x2x?x16xf16>, tensor<?x2x?xf32>
}

// -----

// Q is rotated once, before the loop, and lies in registers; K is rotated in every step.

// CHECK-LABEL: llvm.func @rotated(
// CHECK:         scf.while
// CHECK:           nvvm.cp.async.wait.group 1
// CHECK-NEXT:      nvvm.barrier
// CHECK:           scf.if
// CHECK:             llvm.load {{.*}} vector<8xf32> loc("rotate"
// CHECK:             llvm.store {{.*}} vector<8xbf16>
// CHECK:           nvvm.barrier
// CHECK:           nvvm.ldmatrix
// CHECK:           scf.while
// CHECK:             loc("load_v"
// CHECK:             scf.if
// CHECK:               llvm.load {{.*}} vector<8xf32> loc("rotate"
// CHECK:             nvvm.barrier
// CHECK:             nvvm.ldmatrix {{.*}} loc("qk"
// CHECK-NEXT:        llvm.extractvalue
// CHECK:             nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}} loc("qk"
func.func @rotated(%q: tensor<1x2x?x16xbf16>, %k: tensor<1x1x?x16xbf16>, %v: tensor<1x1x?x16xbf16>,
                   %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> tensor<1x2x?x16xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) rotate_q <half, offset = 0>(%cos, %sin) rotate_k <half, offset = 0>(%cos, %sin)
      softmax schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = true> {scale = 0.25 : f64}
      : (tensor<1x2x?x16xbf16>, tensor<1x1x?x16xbf16>, tensor<1x1x?x16xbf16>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>)
        -> tensor<1x2x?x16xbf16>
  return %o : tensor<1x2x?x16xbf16>
}

// -----

// Listed blocks alone are visited: the walk seeks through the list. The score region is evaluated
// per element, its bias read inside the score matrix.

// CHECK-LABEL: llvm.func @sparse_bias(
// CHECK:         llvm.load {{.*}} -> i32 loc("walk"
// CHECK:         scf.while
// CHECK:           scf.while
// CHECK:             scf.while
// CHECK-COUNT-8:       llvm.load {{.*}} -> f32 loc("score_chain"
// CHECK-NOT:           llvm.load {{.*}} loc("score_chain"
// CHECK:               llvm.return
func.func @sparse_bias(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>,
                       %rows: tensor<?xi32>, %cols: tensor<?xi32>, %bias: tensor<?x?xf32>) -> tensor<1x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) blocks <16x32>(%rows, %cols) relu_sum score operands(%bias) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<?x?xf32>):
        %x = tensor.extract %t[%i, %j] : tensor<?x?xf32>
        %y = arith.addf %s, %x : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xf32>)
        -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}
