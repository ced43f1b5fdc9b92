// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --canonicalize --split-input-file | FileCheck %s

// A row without a visible key is shifted by 0, sums to 0 and divides by nothing.

// CHECK-LABEL: func @softmax(
//  CHECK-SAME:   %[[S:.*]]: tensor<2x3x?x?xf32>)
func.func @softmax(%s: tensor<2x3x?x?xf32>) -> (tensor<2x3x?x?xf32>, tensor<2x3x?xf32>) {
  //  CHECK-DAG: %[[MASKED:.*]] = arith.constant 0xFF800000 : f32
  //  CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  //      CHECK: %[[LOWEST:.*]] = linalg.fill ins(%[[MASKED]] : f32)
  //      CHECK: %[[MAX:.*]] = linalg.generic {{.*}} ins(%[[S]] : {{.*}}) outs(%[[LOWEST]] : tensor<2x3x?xf32>)
  //      CHECK:   arith.maximumf
  //      CHECK: %[[EXP:.*]] = linalg.generic {{.*}} ins(%[[MAX]] : tensor<2x3x?xf32>) outs(%[[S]] : {{.*}})
  // CHECK-NEXT: ^bb0(%[[M:.*]]: f32, %[[X:.*]]: f32):
  //      CHECK:   %[[EMPTY:.*]] = arith.cmpf oeq, %[[M]], %[[MASKED]]
  //      CHECK:   %[[SHIFT:.*]] = arith.select %[[EMPTY]], %[[ZERO]], %[[M]]
  //      CHECK:   %[[REL:.*]] = arith.subf %[[X]], %[[SHIFT]]
  //      CHECK:   math.exp %[[REL]]
  //      CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[EXP]] : {{.*}})
  //      CHECK:   arith.addf
  //      CHECK: %[[PROBS:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : {{.*}}) outs(%[[EXP]] : {{.*}})
  // CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[E:.*]]: f32):
  //      CHECK:   %[[NONE:.*]] = arith.cmpf oeq, %[[L]], %[[ZERO]]
  //      CHECK:   %[[P:.*]] = arith.divf %[[E]], %[[L]]
  //      CHECK:   arith.select %[[NONE]], %[[ZERO]], %[[P]]
  //      CHECK: %[[LSE:.*]] = linalg.generic {{.*}} ins(%[[MAX]], %[[SUM]] : {{.*}})
  //      CHECK:   %[[LOG:.*]] = math.log
  //      CHECK:   %[[SHIFT:.*]] = arith.select
  //      CHECK:   arith.addf %[[LOG]], %[[SHIFT]]
  //      CHECK: return %[[PROBS]], %[[LSE]]
  %p, %lse = attnfuse.softmax %s : tensor<2x3x?x?xf32>, tensor<2x3x?xf32>
  return %p, %lse : tensor<2x3x?x?xf32>, tensor<2x3x?xf32>
}

// -----

// CHECK-LABEL: func @softmax_alone(
//   CHECK-NOT: math.log
//       CHECK: return
func.func @softmax_alone(%s: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %p = attnfuse.softmax %s : tensor<2x3x4x5xf32>
  return %p : tensor<2x3x4x5xf32>
}

// -----

// CHECK-LABEL: func @relu_sum(
func.func @relu_sum(%s: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  //  CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  //      CHECK: %[[W:.*]] = linalg.generic
  //      CHECK:   arith.maximumf %{{.*}}, %[[ZERO]]
  //      CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[W]] : {{.*}})
  //      CHECK: linalg.generic {{.*}} ins(%[[SUM]] : {{.*}}) outs(%[[W]] : {{.*}})
  //      CHECK:   %[[NONE:.*]] = arith.cmpf oeq
  //      CHECK:   arith.divf
  //      CHECK:   arith.select %[[NONE]], %[[ZERO]]
  %p = attnfuse.relu_attention %s sum : tensor<2x3x4x5xf32>
  return %p : tensor<2x3x4x5xf32>
}

// -----

// CHECK-LABEL: func @relu_length(
//  CHECK-SAME:   %[[S:.*]]: tensor<2x3x4x?xf32>
func.func @relu_length(%s: tensor<2x3x4x?xf32>) -> tensor<2x3x4x?xf32> {
  //  CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
  //      CHECK: %[[NKV:.*]] = tensor.dim %[[S]], %[[C3]]
  //      CHECK: %[[I:.*]] = arith.index_cast %[[NKV]]
  //      CHECK: %[[LENGTH:.*]] = arith.sitofp %[[I]] : i64 to f32
  //      CHECK: %[[W:.*]] = arith.maximumf
  //      CHECK: arith.divf %[[W]], %[[LENGTH]]
  %p = attnfuse.relu_attention %s length : tensor<2x3x4x?xf32>
  return %p : tensor<2x3x4x?xf32>
}

// -----

// CHECK-LABEL: func @relu_none(
//       CHECK: arith.maximumf
//   CHECK-NOT: arith.divf
//       CHECK: return
func.func @relu_none(%s: tensor<2x3x4x?xf32>) -> tensor<2x3x4x?xf32> {
  %p = attnfuse.relu_attention %s none : tensor<2x3x4x?xf32>
  return %p : tensor<2x3x4x?xf32>
}
