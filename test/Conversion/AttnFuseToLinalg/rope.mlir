// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --canonicalize --split-input-file | FileCheck %s

// The pair of feature d is d - R/2 or d + R/2; every element is rounded once.

// CHECK-LABEL: func @half(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x3x?x16xbf16>, %[[COS:.*]]: tensor<64x8xf32>, %[[SIN:.*]]: tensor<64x8xf32>)
func.func @half(%x: tensor<2x3x?x16xbf16>, %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> tensor<2x3x?x16xbf16> {
  //  CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  //  CHECK-DAG: %[[C63:.*]] = arith.constant 63 : index
  //  CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  //      CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<2x3x?x16xbf16>) outs(%{{.*}} : tensor<2x3x?x16xbf16>)
  // CHECK-NEXT: ^bb0(%[[IN:.*]]: bf16, %{{.*}}: bf16):
  //      CHECK:   %[[B:.*]] = linalg.index 0
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   %[[N:.*]] = linalg.index 2
  //      CHECK:   %[[D:.*]] = linalg.index 3
  //      CHECK:   %[[SECOND:.*]] = arith.cmpi sge, %[[D]], %[[C8]]
  //      CHECK:   %[[BELOW:.*]] = arith.subi %[[D]], %[[C8]]
  //      CHECK:   %[[ABOVE:.*]] = arith.addi %[[D]], %[[C8]]
  //      CHECK:   %[[PARTNER:.*]] = arith.select %[[SECOND]], %[[BELOW]], %[[ABOVE]]
  //      CHECK:   %[[COLUMN:.*]] = arith.select %[[SECOND]], %[[BELOW]], %[[D]]
  //      CHECK:   %[[LOW:.*]] = arith.minsi %[[N]], %[[C63]]
  //      CHECK:   %[[ROW:.*]] = arith.maxsi %[[LOW]], %[[C0]]
  //      CHECK:   %[[OWN:.*]] = arith.extf %[[IN]] : bf16 to f32
  //      CHECK:   %[[OTHER:.*]] = tensor.extract %[[X]][%[[B]], %[[H]], %[[N]], %[[PARTNER]]]
  //      CHECK:   %[[OTHERF:.*]] = arith.extf %[[OTHER]] : bf16 to f32
  //      CHECK:   %[[C:.*]] = tensor.extract %[[COS]][%[[ROW]], %[[COLUMN]]]
  //      CHECK:   %[[S:.*]] = tensor.extract %[[SIN]][%[[ROW]], %[[COLUMN]]]
  //      CHECK:   %[[PLUS:.*]] = arith.mulf %[[OTHERF]], %[[S]]
  //      CHECK:   %[[MINUS:.*]] = arith.negf %[[PLUS]]
  //      CHECK:   %[[STRAIGHT:.*]] = arith.mulf %[[OWN]], %[[C]]
  //      CHECK:   %[[CROSS:.*]] = arith.select %[[SECOND]], %[[PLUS]], %[[MINUS]]
  //      CHECK:   %[[SUM:.*]] = arith.addf %[[STRAIGHT]], %[[CROSS]]
  //      CHECK:   %[[OUT:.*]] = arith.truncf %[[SUM]] : f32 to bf16
  // CHECK-NEXT:   linalg.yield %[[OUT]]
  //  CHECK-NOT: attnfuse
  %r = attnfuse.rope %x, %cos, %sin half : tensor<2x3x?x16xbf16>, tensor<64x8xf32>, tensor<64x8xf32>
  return %r : tensor<2x3x?x16xbf16>
}

// -----

// Interleaved pairs, a rotary width below D (the rest passes through as it is), 16-bit
// tables, and a position of three terms.

// CHECK-LABEL: func @partial(
//  CHECK-SAME:   %[[X:.*]]: tensor<1x2x5x10xf16>, %[[COS:.*]]: tensor<?x3xf16>, %{{.*}}: tensor<?x3xf16>, %[[OFF:.*]]: i64)
func.func @partial(%x: tensor<1x2x5x10xf16>, %cos: tensor<?x3xf16>, %sin: tensor<?x3xf16>, %off: i64) -> tensor<1x2x5x10xf16> {
  //  CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  //  CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  //  CHECK-DAG: %[[C6:.*]] = arith.constant 6 : index
  //  CHECK-DAG: %[[C7:.*]] = arith.constant 7 : index
  //  CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  //  CHECK-DAG: %[[CM7:.*]] = arith.constant -7 : index
  //      CHECK: ^bb0(%[[IN:.*]]: f16, %{{.*}}: f16):
  //      CHECK:   %[[N:.*]] = linalg.index 2
  //      CHECK:   %[[D:.*]] = linalg.index 3
  //      CHECK:   %[[ODD:.*]] = arith.andi %[[D]], %[[C1]]
  //      CHECK:   arith.cmpi eq, %[[ODD]], %[[C1]]
  //      CHECK:   %[[PAIR:.*]] = arith.xori %[[D]], %[[C1]]
  //      CHECK:   %[[HALF:.*]] = arith.shrui %[[D]], %[[C1]]
  //      CHECK:   %[[ROTATES:.*]] = arith.cmpi slt, %[[D]], %[[C6]]
  //      CHECK:   %[[PARTNER:.*]] = arith.select %[[ROTATES]], %[[PAIR]], %[[D]]
  //      CHECK:   %[[COLUMN:.*]] = arith.minsi %[[HALF]], %[[C2]]
  //      CHECK:   %[[OFFI:.*]] = arith.index_cast %[[OFF]] : i64 to index
  //      CHECK:   %[[POS:.*]] = arith.addi %[[N]], %[[OFFI]]
  //      CHECK:   %[[ROWS:.*]] = tensor.dim %[[COS]]
  //      CHECK:   %[[LAST:.*]] = arith.subi %[[ROWS]], %[[C8]]
  //      CHECK:   %[[BELOW:.*]] = arith.minsi %[[POS]], %[[LAST]]
  //      CHECK:   %[[INSIDE:.*]] = arith.maxsi %[[BELOW]], %[[CM7]]
  //      CHECK:   arith.addi %[[INSIDE]], %[[C7]]
  //      CHECK:   tensor.extract %[[X]][%{{.*}}, %{{.*}}, %[[N]], %[[PARTNER]]]
  //      CHECK:   tensor.extract %[[COS]][%{{.*}}, %[[COLUMN]]]
  //      CHECK:   %[[TURNED:.*]] = arith.truncf
  //      CHECK:   %[[OUT:.*]] = arith.select %[[ROTATES]], %[[TURNED]], %[[IN]]
  // CHECK-NEXT:   linalg.yield %[[OUT]]
  %r = attnfuse.rope %x, %cos, %sin interleaved offset(%off) {static_offset = 7 : i64}
      : tensor<1x2x5x10xf16>, tensor<?x3xf16>, tensor<?x3xf16>
  return %r : tensor<1x2x5x10xf16>
}

// -----

// CHECK-LABEL: func @positions(
//  CHECK-SAME:   %[[POS:[^:]*]]: tensor<?x?xi32>, %[[SHARED:[^:]*]]: tensor<?xi64>)
func.func @positions(%x: tensor<?x2x?x4xf32>, %t: tensor<9x2xf32>, %pos: tensor<?x?xi32>, %shared: tensor<?xi64>)
    -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) {
  //      CHECK:   %[[B:.*]] = linalg.index 0
  //      CHECK:   %[[N:.*]] = linalg.index 2
  //      CHECK:   %[[P:.*]] = tensor.extract %[[POS]][%[[B]], %[[N]]]
  //      CHECK:   %[[I:.*]] = arith.index_cast %[[P]] : i32 to index
  //      CHECK:   arith.minsi %[[I]], %{{.*}}
  %a = attnfuse.rope %x, %t, %t half positions(%pos : tensor<?x?xi32>)
      : tensor<?x2x?x4xf32>, tensor<9x2xf32>, tensor<9x2xf32>
  //      CHECK:   %[[N:.*]] = linalg.index 2
  //      CHECK:   %[[P:.*]] = tensor.extract %[[SHARED]][%[[N]]]
  //      CHECK:   arith.index_cast %[[P]] : i64 to index
  //  CHECK-NOT:   arith.truncf
  %b = attnfuse.rope %x, %t, %t half positions(%shared : tensor<?xi64>)
      : tensor<?x2x?x4xf32>, tensor<9x2xf32>, tensor<9x2xf32>
  return %a, %b : tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>
}
