// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func @alibi(
//  CHECK-SAME:   %[[S:.*]]: tensor<?x12x?x?xf32>, %[[SLOPES:.*]]: tensor<12xf32>)
func.func @alibi(%s: tensor<?x12x?x?xf32>, %slopes: tensor<12xf32>) -> tensor<?x12x?x?xf32> {
  //  CHECK-DAG: %[[MASKED:.*]] = arith.constant 0xFF800000 : f32
  //      CHECK: linalg.generic {{.*}} outs(%[[S]] : tensor<?x12x?x?xf32>)
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   %[[M:.*]] = tensor.extract %[[SLOPES]][%[[H]]]
  //      CHECK:   %[[ABS:.*]] = math.absi
  //      CHECK:   %[[DIST:.*]] = arith.sitofp %[[ABS]] : i64 to f32
  //      CHECK:   %[[PENALTY:.*]] = arith.mulf %[[M]], %[[DIST]]
  //      CHECK:   %[[NEW:.*]] = arith.subf %[[X]], %[[PENALTY]]
  //      CHECK:   %[[STICKS:.*]] = arith.cmpf oeq, %[[X]], %[[MASKED]]
  //      CHECK:   arith.select %[[STICKS]], %[[X]], %[[NEW]]
  %a = attnfuse.alibi %s bottom_right slopes(%slopes : tensor<12xf32>) : tensor<?x12x?x?xf32>
  return %a : tensor<?x12x?x?xf32>
}

// -----

// The standard slopes are computed once per head.

// CHECK-LABEL: func @standard_slopes(
func.func @standard_slopes(%s: tensor<1x?x4x4xf32>) -> tensor<1x?x4x4xf32> {
  //      CHECK: %[[SLOPES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?xf32>)
  //      CHECK:   math.exp2
  //      CHECK: linalg.generic
  //      CHECK:   tensor.extract %[[SLOPES]]
  //  CHECK-NOT: attnfuse
  %a = attnfuse.alibi %s top_left : tensor<1x?x4x4xf32>
  return %a : tensor<1x?x4x4xf32>
}

// -----

// CHECK-LABEL: func @slopes_per_batch(
//  CHECK-SAME:   %[[SLOPES:[^:]*]]: tensor<2x3xf32>
func.func @slopes_per_batch(%s: tensor<2x3x4x4xf32>, %slopes: tensor<2x3xf32>) -> tensor<2x3x4x4xf32> {
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   %[[B:.*]] = linalg.index 0
  //      CHECK:   tensor.extract %[[SLOPES]][%[[B]], %[[H]]]
  %a = attnfuse.alibi %s top_left slopes(%slopes : tensor<2x3xf32>) : tensor<2x3x4x4xf32>
  return %a : tensor<2x3x4x4xf32>
}

// -----

// -inf on either side masks, whatever the other side is.

// CHECK-LABEL: func @bias(
//  CHECK-SAME:   %[[S:.*]]: tensor<2x3x4x5xf32>, %[[BIAS:.*]]: tensor<3x1x5xbf16>)
func.func @bias(%s: tensor<2x3x4x5xf32>, %bias: tensor<3x1x5xbf16>) -> tensor<2x3x4x5xf32> {
  //  CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  //  CHECK-DAG: %[[MASKED:.*]] = arith.constant 0xFF800000 : f32
  //  CHECK-DAG: %[[LOWEST:.*]] = arith.constant -1.70141183E+38 : f32
  //      CHECK: ^bb0(%[[X:.*]]: f32):
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   %[[J:.*]] = linalg.index 3
  //      CHECK:   %[[ENTRY:.*]] = tensor.extract %[[BIAS]][%[[H]], %[[C0]], %[[J]]]
  //      CHECK:   %[[T:.*]] = arith.extf %[[ENTRY]] : bf16 to f32
  //      CHECK:   %[[TERMS:.*]] = arith.addf %[[X]], %[[T]]
  //      CHECK:   %[[SUM:.*]] = arith.maximumf %[[TERMS]], %[[LOWEST]]
  //      CHECK:   %[[OLD:.*]] = arith.cmpf oeq, %[[X]], %[[MASKED]]
  //      CHECK:   %[[NEW:.*]] = arith.cmpf oeq, %[[T]], %[[MASKED]]
  //      CHECK:   %[[ANY:.*]] = arith.ori %[[OLD]], %[[NEW]]
  //      CHECK:   arith.select %[[ANY]], %[[MASKED]], %[[SUM]]
  %b = attnfuse.additive_bias %s, %bias : tensor<2x3x4x5xf32>, tensor<3x1x5xbf16>
  return %b : tensor<2x3x4x5xf32>
}

// -----

// A dimension of unknown size is never broadcast (S13).

// CHECK-LABEL: func @dynamic_bias(
//  CHECK-SAME:   %[[BIAS:[^:]*]]: tensor<?xf32>
func.func @dynamic_bias(%s: tensor<2x3x4x?xf32>, %bias: tensor<?xf32>) -> tensor<2x3x4x?xf32> {
  //      CHECK:   %[[J:.*]] = linalg.index 3
  //  CHECK-NOT:   arith.select
  //      CHECK:   tensor.extract %[[BIAS]][%[[J]]]
  %b = attnfuse.additive_bias %s, %bias : tensor<2x3x4x?xf32>, tensor<?xf32>
  return %b : tensor<2x3x4x?xf32>
}
