// RUN: attnfuse-opt %s --attnfuse-select-schedule --convert-attnfuse-to-gpu | FileCheck %s

// A version that splits keys (split-keys.mlir), one for few rows and, where an operand comes by a
// tensor map, ones for tensors of which no map can be made; a tile that was asked for, or is small
// already, has no smaller version.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// CHECK-LABEL: gpu.module @dense_kernels attributes {attnfuse.manifest =
// CHECK-SAME:    \22versions\22:[{\22kernels\22:[{
// CHECK-SAME:      \22name\22:\22dense$split_keys\22
// CHECK-SAME:      \22name\22:\22dense$few_rows\22
// CHECK-SAME:      \22when\22:[\22le\22,
// CHECK-SAME:        \22Nkv\22,64]
// CHECK-SAME:        \22$sm_count\22
// CHECK-SAME:        \22Nkv\22,128]
// CHECK-SAME:        \22$sm_count\22
// CHECK-SAME:      \22name\22:\22dense\22
// CHECK-NOT:       any_strides
// CHECK:         llvm.func @dense$few_rows(
// CHECK-SAME:      nvvm.minctasm = 2 : i32, nvvm.reqntid = array<i32: 256>
// CHECK:         llvm.func @dense(
// CHECK-SAME:      nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 384>
func.func @dense(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}

// CHECK-LABEL: gpu.module @bias_kernels attributes {attnfuse.manifest =
// CHECK-SAME:      \22name\22:\22bias$few_rows\22
// CHECK-SAME:      \22when\22:[\22mul\22,[\22mul\22,[\22eq\22,[\22mod\22,\22$address.bias\22,16],0],[\22eq\22,\22$stride.bias.3\22,1],[\22le\22,0,\22$stride.bias.0\22],[\22eq\22,[\22mod\22,\22$stride.bias.0\22,8],0]
// CHECK-SAME:      \22kind\22:\22tensor_map\22,\22of\22:\22bias\22
// CHECK-SAME:      \22name\22:\22bias$any_strides$split_keys\22
// CHECK-SAME:      \22name\22:\22bias$any_strides\22
// The tile of the bias is loaded after that of K; the version for any strides reads global memory.
// CHECK:         llvm.func @bias(
// CHECK-COUNT-4:   cp.async.bulk.tensor.4d.shared
// CHECK:         llvm.func @bias$any_strides(
// CHECK-NOT:       cp.async.bulk
func.func @bias(%q: tensor<?x8x?x64xf16>, %k: tensor<?x8x?x64xf16>, %v: tensor<?x8x?x64xf16>, %bias: tensor<1x8x?x?xf16>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score operands(%bias) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %table: tensor<1x8x?x?xf16>):
    %zero = arith.constant 0 : index
    %half = tensor.extract %table[%zero, %h, %i, %j] : tensor<1x8x?x?xf16>
    %x = arith.extf %half : f16 to f32
    %sum = arith.addf %s, %x : f32
    attnfuse.yield %sum : f32
  } {scale = 0.125 : f64} : (tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>, tensor<1x8x?x?xf16>) -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

// Of walks of unequal length the longest counts, or the sum of all.
// CHECK-LABEL: gpu.module @short_kernels attributes {attnfuse.manifest =
// CHECK-SAME:      \22name\22:\22short$few_rows\22
// CHECK-SAME:      \22when\22:[\22le\22,
// CHECK-SAME:        \22Nq\22,64]
// CHECK-SAME:        \22$sm_count\22
// CHECK-SAME:        \22Nq\22,192]
// CHECK-SAME:        \22$sm_count\22
func.func @short(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %v: tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, right = 0>] softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}

// CHECK-LABEL: gpu.module @asked_for_kernels attributes {attnfuse.manifest =
// CHECK-NOT:     few_rows
// CHECK:         llvm.func @asked_for$split_keys(
// CHECK:         llvm.func @asked_for(
func.func @asked_for(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}

// CHECK-LABEL: gpu.module @decode_kernels attributes {attnfuse.manifest =
// CHECK-NOT:     few_rows
// CHECK:         llvm.func @decode$split_keys(
// CHECK:         llvm.func @decode(
func.func @decode(%q: tensor<?x8x1x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x1x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16>
  return %o : tensor<?x8x1x128xbf16>
}
}
