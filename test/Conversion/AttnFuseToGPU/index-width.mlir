// Index arithmetic of a score region means 64 bits. It is done in 32 where the range of the result shows that this
// gives the same.

// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file | FileCheck %s

// CHECK-LABEL: llvm.func @unknown_lengths(
func.func @unknown_lengths(%q: tensor<1x2x?x16xf16>, %t: tensor<?xf32>) -> tensor<1x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %u: tensor<?xf32>):
        // A length is below 2^30: a difference fits, and 4095 times it does not.
        %distance = arith.subi %j, %i : index
        // CHECK: arith.divui %{{.*}}, %c777_i32{{[_0-9]*}} : i32
        %c777 = arith.constant 777 : index
        %bucket = arith.divui %j, %c777 : index
        // CHECK: %[[I:.*]] = arith.extsi %{{.*}} : i32 to i64
        // CHECK: arith.muli %[[I]], %c4095_i64{{[_0-9]*}} : i64
        %c4095 = arith.constant 4095 : index
        %row = arith.muli %i, %c4095 : index
        // CHECK: arith.shli %{{.*}}, %c13_i64{{[_0-9]*}} : i64
        %c13 = arith.constant 13 : index
        %shifted = arith.shli %nkv, %c13 : index
        // The remainder of a wide number is a small one.
        // CHECK: %[[WIDE:.*]] = arith.addi %{{.*}}, %{{.*}} : i64
        // CHECK: %[[R:.*]] = arith.remui %[[WIDE]], %c99_i64{{[_0-9]*}} : i64
        // CHECK: %[[SMALL:.*]] = arith.trunci %[[R]] : i64 to i32
        // CHECK: arith.addi %[[SMALL]], %c11_i32{{[_0-9]*}} : i32
        %sum = arith.addi %row, %shifted : index
        %c99 = arith.constant 99 : index
        %rest = arith.remui %sum, %c99 : index
        %c11 = arith.constant 11 : index
        %more = arith.addi %rest, %c11 : index
        // As an unsigned number, a negative one depends on the width.
        // CHECK: %[[D64:.*]] = arith.extsi %{{.*}} : i32 to i64
        // CHECK: arith.divui %[[D64]], %c555_i64{{[_0-9]*}} : i64
        %c555 = arith.constant 555 : index
        %unsigned = arith.divui %distance, %c555 : index
        // CHECK: arith.minui %{{.*}}, %c30000000000_i64{{[_0-9]*}} : i64
        %limit = arith.constant 30000000000 : index
        %least = arith.minui %unsigned, %limit : index
        %at0 = arith.addi %bucket, %more : index
        %at = arith.addi %at0, %least : index
        %x = tensor.extract %u[%at] : tensor<?xf32>
        %y = arith.addf %s, %x : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<?xf32>) -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}

// -----

// CHECK-LABEL: llvm.func @known_lengths(
// CHECK: %[[C:.*]] = arith.constant 4095 : i32
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[C]] : i32
// CHECK: arith.addi %[[ROW]], %{{.*}} : i32
func.func @known_lengths(%q: tensor<1x2x128x16xf16>, %t: tensor<?xf32>) -> tensor<1x2x128x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %u: tensor<?xf32>):
        %c4095 = arith.constant 4095 : index
        %row = arith.muli %i, %c4095 : index
        %at = arith.addi %row, %j : index
        %x = tensor.extract %u[%at] : tensor<?xf32>
        %y = arith.addf %s, %x : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x128x16xf16>, tensor<1x2x128x16xf16>, tensor<1x2x128x16xf16>, tensor<?xf32>) -> tensor<1x2x128x16xf16>
  return %o : tensor<1x2x128x16xf16>
}

// -----

// Integers of a fixed width keep theirs; a cast from 64 bits loses nothing.
// CHECK-LABEL: llvm.func @casts(
// CHECK: %[[C:.*]] = arith.constant 5000000000 : i64
// CHECK: %[[P:.*]] = arith.muli %{{.*}}, %[[C]] : i64
// CHECK: arith.cmpi slt, %{{.*}}, %[[P]] : i64
func.func @casts(%q: tensor<1x2x128x16xf16>) -> tensor<1x2x128x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %i64 = arith.index_cast %i : index to i64
        %big = arith.constant 5000000000 : i64
        %p64 = arith.muli %i64, %big : i64
        %p = arith.index_cast %p64 : i64 to index
        %less = arith.cmpi slt, %j, %p : index
        %y = arith.uitofp %less : i1 to f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x128x16xf16>, tensor<1x2x128x16xf16>, tensor<1x2x128x16xf16>) -> tensor<1x2x128x16xf16>
  return %o : tensor<1x2x128x16xf16>
}
