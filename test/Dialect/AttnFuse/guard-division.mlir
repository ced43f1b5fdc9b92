// RUN: attnfuse-opt %s --attnfuse-guard-division | FileCheck %s

// CHECK-LABEL: func @unknown
// CHECK-SAME: (%[[X:.+]]: i32, %[[D:.+]]: i32)
func.func @unknown(%x: i32, %d: i32) -> (i32, i32) {
  // CHECK-NEXT: %[[ZERO:.+]] = arith.constant 0 : i32
  // CHECK-NEXT: %[[BAD:.+]] = arith.cmpi eq, %[[D]], %[[ZERO]]
  // CHECK-NEXT: %[[ONE:.+]] = arith.constant 1 : i32
  // CHECK-NEXT: %[[SAFE:.+]] = arith.select %[[BAD]], %[[ONE]], %[[D]]
  // CHECK-NEXT: %[[R:.+]] = arith.remui %[[X]], %[[SAFE]]
  %r = arith.remui %x, %d : i32
  // The lowest number by -1 is bad too.
  // CHECK-DAG: %[[IS0:.+]] = arith.cmpi eq, %[[D]], %{{.+}}
  // CHECK-DAG: %[[MINUS:.+]] = arith.constant -1 : i32
  // CHECK-DAG: %[[IS1:.+]] = arith.cmpi eq, %[[D]], %[[MINUS]]
  // CHECK-DAG: %[[MIN:.+]] = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[ISMIN:.+]] = arith.cmpi eq, %[[X]], %[[MIN]]
  // CHECK-DAG: %[[OVERFLOWS:.+]] = arith.andi %[[IS1]], %[[ISMIN]]
  // CHECK: %[[EITHER:.+]] = arith.ori %[[IS0]], %[[OVERFLOWS]]
  // CHECK: %[[SAFE1:.+]] = arith.select %[[EITHER]], %{{.+}}, %[[D]]
  // CHECK-NEXT: %[[Q:.+]] = arith.divsi %[[X]], %[[SAFE1]]
  // CHECK-NEXT: return %[[R]], %[[Q]]
  %q = arith.divsi %x, %d : i32
  return %r, %q : i32, i32
}

// CHECK-LABEL: func @known
func.func @known(%x: index, %t: tensor<2xi32>) -> (index, index, index, tensor<2xi32>) {
  // CHECK-NEXT: arith.constant 7 : index
  // CHECK-NEXT: arith.constant -1 : index
  // CHECK-NEXT: arith.ceildivsi
  // CHECK-NEXT: arith.floordivsi
  // CHECK-NEXT: arith.divui
  // CHECK-NEXT: arith.divsi
  // CHECK-NEXT: return
  %seven = arith.constant 7 : index
  %minus = arith.constant -1 : index
  %a = arith.ceildivsi %x, %seven : index
  %b = arith.floordivsi %x, %seven : index
  %c = arith.divui %x, %minus : index
  %d = arith.divsi %t, %t : tensor<2xi32>
  return %a, %b, %c, %d : index, index, index, tensor<2xi32>
}

// CHECK-LABEL: func @others
func.func @others(%x: i64, %d: i64, %i: index) -> (i64, i64, i64, index, index) {
  // CHECK: select
  // CHECK: arith.ceildivui
  // CHECK: select
  // CHECK: arith.ceildivsi
  // CHECK: select
  // CHECK: arith.floordivsi
  // CHECK: select
  // CHECK: arith.remsi
  // CHECK: select
  // CHECK: arith.divui
  %a = arith.ceildivui %x, %d : i64
  %b = arith.ceildivsi %x, %d : i64
  %c = arith.floordivsi %x, %d : i64
  %zero = arith.constant 0 : index
  %e = arith.remsi %i, %zero : index
  %f = arith.divui %i, %i : index
  return %a, %b, %c, %e, %f : i64, i64, i64, index, index
}
