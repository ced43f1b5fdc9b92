// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// What the kernel for sm_80 does at the ends of tiles and tensors.

// The block takes 32 rows of a tile at a time: of 48 keys, only the second step has rows that the tile
// has not.

// CHECK-LABEL: llvm.func @ragged(
// CHECK:         nvvm.cp.async.commit.group loc("prologue"
// CHECK:         scf.if
// CHECK-NOT:       {{scf.if|arith.cmpi slt}}
// CHECK:           nvvm.cp.async.shared.global {{.*}} loc("prologue"
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %c48_i32{{.*}} loc("prologue"
// CHECK:           scf.if %[[EXISTS]] {
// CHECK:             nvvm.cp.async.shared.global {{.*}} loc("prologue"
// CHECK:           }
// CHECK:         nvvm.cp.async.commit.group loc("prologue"
// Rows past the end are no less finite than others if there is no score region.
// CHECK:         llvm.intr.fma({{.*}} loc("epilogue"
// CHECK-NOT:     arith.cmpi sle
// CHECK:         nvvm.barrier #nvvm.reduction<or> {{.*}} loc("epilogue"
func.func @ragged(%q: tensor<1x2x?x32xf16>, %k: tensor<1x2x?x32xf16>, %v: tensor<1x2x?x32xf16>) -> tensor<1x2x?x32xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax
      schedule <tile_m = 64, tile_n = 48, warps = 4, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x?x32xf16>, tensor<1x2x?x32xf16>, tensor<1x2x?x32xf16>) -> tensor<1x2x?x32xf16>
  return %o : tensor<1x2x?x32xf16>
}

// -----

// A score region may make NaN of rows past the end: of both rows of a thread, the probe for what is not
// finite skips them.

// CHECK-LABEL: llvm.func @probe(
// Not compared before the key loop, over which the results would be kept.
// CHECK:         %[[ROW:.*]] = llvm.inline_asm has_side_effects {{.*}} loc("epilogue"
// CHECK-NEXT:    %[[LEFT:.*]] = arith.subi %{{.*}}, %[[ROW]] : i32 loc("epilogue"
// CHECK-COUNT-3: llvm.intr.fma({{.*}} loc("epilogue"
// CHECK:         %[[FIRST:.*]] = llvm.intr.fma({{.*}} loc("epilogue"
// CHECK-NEXT:    %[[ENDS:.*]] = arith.cmpi sle, %[[LEFT]], %c0_i32{{.*}} : i32
// CHECK-NEXT:    %[[BEFORE:.*]] = arith.select %[[ENDS]], %[[ZERO:.*]], %[[FIRST]] : f32
// CHECK:         llvm.intr.fma(%{{.*}}, %[[ZERO]], %[[BEFORE]])
// CHECK-COUNT-2: llvm.intr.fma({{.*}} loc("epilogue"
// CHECK:         %[[SECOND:.*]] = llvm.intr.fma({{.*}} loc("epilogue"
// CHECK-NEXT:    %[[ENDS:.*]] = arith.cmpi sle, %[[LEFT]], %c8_i32{{.*}} : i32
// CHECK-NEXT:    %[[PROBE:.*]] = arith.select %[[ENDS]], %[[BEFORE]], %[[SECOND]] : f32
// CHECK:         arith.cmpf oeq, %[[PROBE]], %[[ZERO]]
// CHECK:         nvvm.barrier #nvvm.reduction<or> {{.*}} loc("epilogue"
func.func @probe(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %x = math.log %s : f32
        attnfuse.yield %x : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}
