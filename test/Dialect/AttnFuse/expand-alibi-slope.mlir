// RUN: attnfuse-opt %s --attnfuse-expand-alibi-slope | FileCheck %s
// RUN: attnfuse-opt %s --attnfuse-expand-alibi-slope --canonicalize | FileCheck %s --check-prefix=FOLDED

// CHECK-LABEL: func @dynamic
// CHECK-SAME: (%[[H:.+]]: index, %[[N:.+]]: index)
func.func @dynamic(%h: index, %n: index) -> f32 {
  // CHECK-DAG: %[[H32:.+]] = arith.index_cast %[[H]] : index to i32
  // CHECK-DAG: %[[N32:.+]] = arith.index_cast %[[N]] : index to i32
  // CHECK-DAG: %[[C31:.+]] = arith.constant 31 : i32
  // CHECK: %[[Z:.+]] = math.ctlz %[[N32]] : i32
  // CHECK: %[[LOG:.+]] = arith.subi %[[C31]], %[[Z]] : i32
  // CHECK: %[[P:.+]] = arith.shli %{{.+}}, %[[LOG]] : i32
  // CHECK: %[[FIRST:.+]] = arith.cmpi slt, %[[H32]], %[[P]] : i32
  // CHECK: %[[EXTRA:.+]] = arith.subi %[[H32]], %[[P]] : i32
  // CHECK: %[[BASE:.+]] = arith.select %[[FIRST]], %[[H32]], %[[EXTRA]] : i32
  // CHECK: %[[SHIFT:.+]] = arith.select %[[FIRST]], %{{.+}}, %{{.+}} : i32
  // CHECK: %[[MUL:.+]] = arith.muli %[[BASE]], %{{.+}} : i32
  // CHECK: %[[E:.+]] = arith.addi %[[MUL]], %[[SHIFT]] : i32
  // CHECK: %[[EF:.+]] = arith.sitofp %[[E]] : i32 to f32
  // CHECK: %[[PF:.+]] = arith.sitofp %[[P]] : i32 to f32
  // CHECK: %[[DIV:.+]] = arith.divf %[[EF]], %[[PF]] : f32
  // CHECK: %[[NEG:.+]] = arith.negf %[[DIV]] : f32
  // CHECK: %[[R:.+]] = math.exp2 %[[NEG]] : f32
  // CHECK: return %[[R]]
  %m = attnfuse.alibi_slope %h, %n
  return %m : f32
}

// The expansion folds to the same numbers as attnfuse.alibi_slope itself,
// whose fold is tested in canonicalize.mlir. Heads 0, 7, 8 and 11 of 12: the
// last of the powers of two, and both ends of the rest.
// FOLDED-LABEL: func @twelve_heads
func.func @twelve_heads() -> (f32, f32, f32, f32) {
  // FOLDED-DAG: %[[A:.+]] = arith.constant 5.000000e-01 : f32
  // FOLDED-DAG: %[[B:.+]] = arith.constant 3.906250e-03 : f32
  // FOLDED-DAG: %[[C:.+]] = arith.constant 0.707106769 : f32
  // FOLDED-DAG: %[[D:.+]] = arith.constant 0.0883883461 : f32
  // FOLDED: return %[[A]], %[[B]], %[[C]], %[[D]]
  %n = arith.constant 12 : index
  %h0 = arith.constant 0 : index
  %h7 = arith.constant 7 : index
  %h8 = arith.constant 8 : index
  %h11 = arith.constant 11 : index
  %a = attnfuse.alibi_slope %h0, %n
  %b = attnfuse.alibi_slope %h7, %n
  %c = attnfuse.alibi_slope %h8, %n
  %d = attnfuse.alibi_slope %h11, %n
  return %a, %b, %c, %d : f32, f32, f32, f32
}

// Inside a score region too.
// CHECK-LABEL: func @in_region
func.func @in_region(%q: tensor<1x?x8x16xf16>) -> tensor<1x?x8x16xf16> {
  // CHECK: attnfuse.attention
  // CHECK-NOT: alibi_slope
  // CHECK: math.exp2
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      %m = attnfuse.alibi_slope %h, %hq
      %t = arith.subf %s, %m : f32
      attnfuse.yield %t : f32
    } {scale = 0.25} : (tensor<1x?x8x16xf16>, tensor<1x?x8x16xf16>, tensor<1x?x8x16xf16>) -> tensor<1x?x8x16xf16>
  return %o : tensor<1x?x8x16xf16>
}
