// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu | FileCheck %s
// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=BOUNDS

// What a distance is multiplied by may be infinite, so the product is with the whole distance, and not
// with what elements of a row have in common and a constant apart.

// CHECK-LABEL: llvm.func @by_distance(
// CHECK:         %[[SLOPE:.*]] = llvm.load
// CHECK-NOT:     fma
// CHECK:         %[[FIRST:.*]] = arith.sitofp %[[BASE:.*]] : i32 to f32
// CHECK-NEXT:    arith.mulf %{{.*}}, %[[FIRST]] fastmath<contract>
// CHECK-NOT:     fma
// CHECK:         arith.sitofp
// CHECK-NOT:     fma
// CHECK:         arith.maxnumf
func.func @by_distance(%q: tensor<1x2x8x16xf16>, %slopes: tensor<8xf32>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%slopes) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<8xf32>):
    %slope = tensor.extract %t[%j] : tensor<8xf32>
    %d = arith.subi %nkv, %j : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %p = arith.mulf %slope, %df : f32
    %r = arith.addf %s, %p : f32
    attnfuse.yield %r : f32
  } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<8xf32>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// A slope that goes by the head is there for rows and keys past the ends, too: they need no bounds,
// and the elements of a row share their distance.
// BOUNDS-LABEL: llvm.func @by_distance(
// BOUNDS:         arith.minsi {{.*}}loc("score_chain"
// BOUNDS-LABEL: llvm.func @by_head(
// BOUNDS-NOT:     arith.minsi {{.*}}loc("score_chain"
func.func @by_head(%q: tensor<1x2x8x16xf16>, %slopes: tensor<2xf32>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%slopes) {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<2xf32>):
    %slope = tensor.extract %t[%h] : tensor<2xf32>
    %d = arith.subi %i, %j : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %p = arith.mulf %slope, %df : f32
    %r = arith.addf %s, %p : f32
    attnfuse.yield %r : f32
  } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<2xf32>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}
