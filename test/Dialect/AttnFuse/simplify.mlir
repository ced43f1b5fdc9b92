// RUN: attnfuse-opt %s --attnfuse-simplify | FileCheck %s

// CHECK-LABEL: func.func @attention
// CHECK-NOT:   attnfuse.full
// CHECK:       attnfuse.scaled_dot_product
func.func @attention(%q: tensor<2x4x16x64xf16>) -> tensor<2x4x16x16xf32> {
  %s = attnfuse.scaled_dot_product %q, %q
      : tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16> -> tensor<2x4x16x16xf32>
  %f = attnfuse.full %s : tensor<2x4x16x16xf32>
  return %f : tensor<2x4x16x16xf32>
}

// What another function could be simplified to is its owner's choice.
// CHECK-LABEL: func.func @other
// CHECK-NEXT:  %[[ZERO:.*]] = arith.constant 0
// CHECK-NEXT:  %[[SUM:.*]] = arith.addi %{{.*}}, %[[ZERO]]
// CHECK-NEXT:  return %[[SUM]]
func.func @other(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %x, %zero : i32
  return %sum : i32
}
