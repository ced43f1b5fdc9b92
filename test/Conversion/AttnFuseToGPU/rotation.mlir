// RUN: attnfuse-opt %s --attnfuse-decide-rotation --attnfuse-select-schedule --convert-attnfuse-to-gpu 2>/dev/null | FileCheck %s

// Rotations that have kernels of their own write to the workspace. On sm_90a the attention starts
// while they run, and waits before it loads what they write.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: gpu.module @split_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    \22kernels\22:[{{.*}}\22name\22:\22split$rotate\22{{.*}}\22name\22:\22split\22{{.*}}\22starts_early\22:true
// CHECK-SAME:    \22workspace\22:[{\22name\22:\22k.rotated\22,\22role\22:\22rotated\22,\22shape\22:[4,8,4096,128],\22type\22:\22bf16\22}]
// CHECK-NOT:     $fused
// CHECK:         llvm.func @split$rotate(
// CHECK:           griddepcontrol.launch_dependents
// CHECK:           llvm.load {{.*}} vector<8xf32>
// CHECK:           llvm.load {{.*}} vector<8xbf16>
// CHECK:           llvm.store {{.*}} vector<8xbf16>
// CHECK:           llvm.return
// CHECK:         llvm.func @split(
// Q is not rotated before: it is loaded first.
// CHECK:           cp.async.bulk.tensor.4d.shared
// CHECK:           griddepcontrol.wait; fence.proxy.async
// CHECK:           cp.async.bulk.tensor.4d.shared
func.func @split(%q: tensor<4x32x4096x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %c: tensor<4096x64xf32>) -> tensor<4x32x4096x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%c, %c) rotate_k <half, offset = 0>(%c, %c)
      softmax {scale = 0.125 : f64}
      : (tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4096x64xf32>, tensor<4096x64xf32>, tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<4x32x4096x128xbf16>
  return %o : tensor<4x32x4096x128xbf16>
}

// The sizes of a launch decide: the fused way where its time is below that of the split one.
// CHECK-LABEL: gpu.module @by_size_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    \22name\22:\22by_size$fused$few_rows\22
// CHECK-SAME:    \22when\22:[\22mul\22,[\22le\22
// CHECK-SAME:    [\22add\22,1000000,
// CHECK-SAME:    \22name\22:\22by_size$fused\22
// CHECK-SAME:    \22when\22:[\22le\22
// CHECK-SAME:    [\22add\22,1000000,
// CHECK-SAME:    \22name\22:\22by_size$rotate\22
// CHECK-SAME:    \22name\22:\22by_size$few_rows\22
// CHECK-SAME:    \22name\22:\22by_size$rotate\22
// CHECK-SAME:    \22name\22:\22by_size\22
// CHECK-COUNT-1: llvm.func @by_size$rotate(
// CHECK-NOT:     llvm.func @by_size$rotate
func.func @by_size(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %c: tensor<4096x64xf32>) -> (tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>) {
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%k) rotate_k <half, offset = 0>(%c, %c)
      softmax {scale = 0.125 : f64}
      : (tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<4096x64xf32>, tensor<4096x64xf32>) -> (tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>)
  return %o, %lse : tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>
}

// A rotation that is left as an op has its kernel, too; what is not rotated is copied.
// CHECK-LABEL: gpu.module @given_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    have fewer rows than offset + length
// CHECK-SAME:    \22name\22:\22q.rotated\22
// CHECK:         llvm.func @given$rotate(
// CHECK:           llvm.load {{.*}} -> vector<8xf16>
// CHECK:         llvm.func @given(
// Q is rotated before: the wait comes first.
// CHECK:           griddepcontrol.wait
// CHECK:           cp.async.bulk.tensor.4d.shared
func.func @given(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %c: tensor<512x16xf32>, %n: i64) -> tensor<?x8x?x64xf16> {
  %r = attnfuse.rope %q, %c, %c half offset(%n) : tensor<?x8x?x64xf16>, tensor<512x16xf32>, tensor<512x16xf32>
  %o = attnfuse.attention q(%r) k(%k) v(%k) softmax schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>> {scale = 0.125 : f64}
      : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}
}
