// RUN: attnfuse-opt %s --attnfuse-select-schedule --convert-attnfuse-to-gpu --split-input-file -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Blocks share the keys of a query tile where a launch has too few tiles to fill the machine: parts of
// the results go to the workspace, and a second kernel combines them.

module attributes {attnfuse.target = #attnfuse.target<"h200">} {
// Room for two blocks on each SM.
// CHECK-LABEL: gpu.module @decode_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    2^30 or more parts of tiles of queries; split the batch
// CHECK-SAME:    \22versions\22:[{\22kernels\22:[{\22block\22:[256,1,1],\22grid\22:{{\[\[}}\22mul\22,{{.*}},[\22max\22,[\22min\22,[\22ceildiv\22,[\22add\22,[\22sub\22,[\22mul\22,\22$sm_count\22,2],{{.*}},[\22ceildiv\22,[\22ceildiv\22,\22Nkv\22,32],2],256],1]],1,1],\22name\22:\22decode$split_keys\22
// CHECK-NOT:     \22starts_early\22
// CHECK-SAME:    {\22block\22:[256,1,1],\22grid\22:{{[^:]*}},\22name\22:\22decode$split_keys$combine\22
// CHECK-SAME:    \22shared_memory\22:4096,\22starts_early\22:true
// CHECK-SAME:    \22when\22:[\22mul\22,[\22le\22,2,
// CHECK-SAME:    \22name\22:\22decode\22
// CHECK-SAME:    \22workspace\22:[{\22name\22:\22output.parts\22,\22role\22:\22partial_output\22,\22shape\22:[\22B\22,8,[\22mul\22,[\22max\22,{{.*}},[\22le\22,2,{{.*}},1,128],\22type\22:\22f32\22}
// CHECK-SAME:    {\22name\22:\22output.states\22,\22role\22:\22partial_states\22,\22shape\22:[\22B\22,8,[\22mul\22,[\22max\22,{{.*}},[\22le\22,2,{{.*}},1,2],\22type\22:\22f32\22}]

// Nothing tells LLVM that the workspace is not written meanwhile.
// CHECK:         llvm.func @decode$split_keys(
// CHECK-COUNT-3:   llvm.byval
// CHECK-NOT:       llvm.byval
// CHECK-SAME:      !llvm.ptr<1> loc(
// The second kernel may start at once.
// CHECK:           griddepcontrol.launch_dependents
// CHECK:           mbarrier.init
// The part of the tile, before those of the head.
// CHECK:           arith.remui
// CHECK:           loc("walk"
// States and outputs go straight to memory.
// CHECK:           llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1> loc("epilogue"
// CHECK:           llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1> loc("epilogue"
// CHECK-NOT:       cp.async.bulk.tensor.4d.global

// CHECK:         llvm.func @decode$split_keys$combine(
// CHECK-SAME:      nvvm.reqntid = array<i32: 256>
// Nothing is read of the parts before the kernel that writes them has ended.
// CHECK-NOT:       llvm.load
// CHECK:           griddepcontrol.wait
// Each lane has parts: the largest reference, then the sum.
// CHECK:           scf.while
// CHECK:             llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32> loc("states"
// CHECK-COUNT-5:   nvvm.shfl.sync bfly {{.*}} loc("states"
// CHECK:           scf.while
// CHECK:             llvm.load {{.*}} loc("states"
// CHECK-COUNT-5:   nvvm.shfl.sync bfly {{.*}} loc("states"
// Four parts at a time, of 128 columns two pairs a lane; those of weight 0 are left out.
// CHECK:           scf.while
// CHECK-COUNT-12:    llvm.load {{.*}} -> vector<2xf32> loc("outputs"
// CHECK-COUNT-16:    arith.select {{.*}} loc("outputs"
// A row that all warps have a share of, or one for each.
// CHECK:           scf.if
// CHECK:             llvm.store {{.*}} vector<2xf32>, !llvm.ptr<3> loc("store"
// CHECK:             nvvm.barrier loc("store"
// CHECK:             llvm.load {{.*}} !llvm.ptr<3> -> vector<2xf32> loc("store"
// CHECK:             llvm.store {{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1> loc("store"
// CHECK:           } else {
// CHECK:             llvm.store {{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1> loc("store"
// CHECK:         llvm.func @decode(
func.func @decode(%q: tensor<?x8x1x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x1x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16>
  return %o : tensor<?x8x1x128xbf16>
}

// A rotation before, the parts, and what combines them: three kernels, each of which may start early.
// CHECK-LABEL: gpu.module @rotated_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    \22name\22:\22rotated$rotate\22
// CHECK-SAME:    \22name\22:\22rotated$split_keys\22{{.*}}\22starts_early\22:true{{.*}}\22name\22:\22rotated$split_keys$combine\22{{.*}}\22starts_early\22:true{{.*}}\22name\22:\22rotated$rotate\22{{.*}}\22name\22:\22rotated$few_rows\22
// CHECK-SAME:    \22name\22:\22k.rotated\22{{.*}}\22name\22:\22output.parts\22
// CHECK:         llvm.func @rotated$split_keys(
// CHECK:           griddepcontrol.launch_dependents
// CHECK:           griddepcontrol.wait
func.func @rotated(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %c: tensor<4096x64xf32>) -> tensor<?x32x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_k <half, offset = 0>(%c, %c)
      softmax {scale = 0.125 : f64, rotation_plan = #attnfuse.rotation_plan<q = fused, k = split>}
      : (tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}

// Where the types decide: a narrow window, few keys, many tiles.
// CHECK-LABEL: gpu.module @window_kernels
// CHECK-NOT:     split_keys
func.func @window(%q: tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<bottom_right, left = 127, right = 0>] softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}
// CHECK-LABEL: gpu.module @few_keys_kernels
// CHECK-NOT:     split_keys
func.func @few_keys(%q: tensor<?x8x1x64xf16>, %k: tensor<?x8x100x64xf16>) -> tensor<?x8x1x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<?x8x1x64xf16>, tensor<?x8x100x64xf16>, tensor<?x8x100x64xf16>) -> tensor<?x8x1x64xf16>
  return %o : tensor<?x8x1x64xf16>
}
// CHECK-LABEL: gpu.module @many_tiles_kernels
// CHECK-NOT:     split_keys
func.func @many_tiles(%q: tensor<64x64x4096x64xf16>, %k: tensor<64x64x?x64xf16>) -> tensor<64x64x4096x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64} : (tensor<64x64x4096x64xf16>, tensor<64x64x?x64xf16>, tensor<64x64x?x64xf16>) -> tensor<64x64x4096x64xf16>
  return %o : tensor<64x64x4096x64xf16>
}
}

// -----

// Without programmatic launch the kernels follow each other, and a launch may be asked to split, or not
// to.
module attributes {attnfuse.target = #attnfuse.target<"a100">} {
// CHECK-LABEL: gpu.module @plain_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    \22name\22:\22plain$split_keys\22
// CHECK-NOT:     starts_early
// CHECK:         llvm.func @plain$split_keys(
// CHECK-NOT:       griddepcontrol
// A list's tiles are divided, not those of the bands.
// CHECK:           llvm.load {{.*}} -> i32 loc("walk"
// CHECK:           llvm.load {{.*}} -> i32 loc("walk"
// CHECK:           arith.divui {{.*}} loc("walk"
// CHECK:           arith.remui {{.*}} loc("walk"
// CHECK:         llvm.func @plain$split_keys$combine(
// CHECK-NOT:       griddepcontrol
// ReLU without a divisor adds the parts up: no states are read.
// CHECK-NOT:       loc("states"
// CHECK:         llvm.func @plain(
func.func @plain(%q: tensor<?x8x?x64xf16>, %r: tensor<?xi32>, %c: tensor<?xi32>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <64x64>(%r, %c) relu_none {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// CHECK-LABEL: gpu.module @always_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    \22kernels\22:[{{.*}}\22grid\22:{{\[\[}}\22mul\22,[\22mul\22,[\22ceildiv\22,\22Nq\22,64],[\22mul\22,\22B\22,8]],3],1,1],\22name\22:\22always\22
// CHECK-SAME:    \22name\22:\22always$combine\22
// CHECK-NOT:     versions
// CHECK-SAME:    \22shape\22:[\22B\22,8,3,\22Nq\22,64]
// CHECK:         llvm.func @always(
// CHECK:         llvm.func @always$combine(
// The log-sum-exp is that of all parts.
// CHECK:           llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"{{.*}} loc("store"
func.func @always(%q: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %o, %lse = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 3> {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}

// CHECK-LABEL: gpu.module @never_kernels
// CHECK-NOT:     split_keys
// CHECK-NOT:     combine
func.func @never(%q: tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 1> {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}
}
