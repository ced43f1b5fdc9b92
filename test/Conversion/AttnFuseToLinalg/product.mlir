// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --canonicalize --cse --split-input-file | FileCheck %s

// k is transposed as f32, so that the innermost loop runs over keys; query head h reads
// head h / 4.

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[TRANSPOSED:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-LABEL: func @scores(
//  CHECK-SAME:   %[[QUERY:.*]]: tensor<2x8x?x64xf16>, %[[KEY:.*]]: tensor<2x2x?x64xf16>)
func.func @scores(%q: tensor<2x8x?x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x?x?xf32> {
  //  CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  //  CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
  //      CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<2x8x?x?xf32>
  //      CHECK: %[[KT:.*]] = linalg.generic {indexing_maps = [#[[TRANSPOSED]], #[[ID]]]
  // CHECK-SAME:   ins(%[[KEY]] : tensor<2x2x?x64xf16>) outs(%{{.*}} : tensor<2x2x64x?xf32>)
  //      CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[Q]], #[[S]]]
  // CHECK-SAME:   iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]
  // CHECK-SAME:   ins(%[[QUERY]] : tensor<2x8x?x64xf16>) outs(%[[ZEROS]] : tensor<2x8x?x?xf32>)
  // CHECK-NEXT: ^bb0(%[[IN:.*]]: f16, %[[ACC:.*]]: f32):
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   %[[HKV:.*]] = arith.divui %[[H]], %[[C4]]
  //      CHECK:   %[[K:.*]] = tensor.extract %[[KT]][%{{.*}}, %[[HKV]], %{{.*}}, %{{.*}}]
  //      CHECK:   %[[QF:.*]] = arith.extf %[[IN]]
  //      CHECK:   %[[PROD:.*]] = arith.mulf %[[QF]], %[[K]] : f32
  //      CHECK:   arith.addf %[[ACC]], %[[PROD]] : f32
  //      CHECK: linalg.generic {{.*}} outs(%[[SUM]] : tensor<2x8x?x?xf32>)
  // CHECK-NEXT: ^bb0(%[[OUT:.*]]: f32):
  // CHECK-NEXT:   arith.mulf %[[OUT]], %[[SCALE]]
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x8x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x?x?xf32>
  return %s : tensor<2x8x?x?xf32>
}

// -----

// A group that is known at run time only divides safely by the heads of an empty tensor.

// CHECK-LABEL: func @dynamic_group(
//  CHECK-SAME:   %[[Q:.*]]: tensor<?x?x?x8xf32>, %[[K:.*]]: tensor<?x?x?x8xf32>)
func.func @dynamic_group(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>) -> tensor<?x?x?x?xf32> {
  //  CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  //  CHECK-DAG: %[[HQ:.*]] = tensor.dim %[[Q]], %[[C1]]
  //  CHECK-DAG: %[[HKV:.*]] = tensor.dim %[[K]], %[[C1]]
  //      CHECK: %[[DIVISOR:.*]] = arith.maxui %[[HKV]], %[[C1]]
  //      CHECK: %[[RATIO:.*]] = arith.divui %[[HQ]], %[[DIVISOR]]
  //      CHECK: %[[GROUP:.*]] = arith.maxui %[[RATIO]], %[[C1]]
  //      CHECK: arith.divui %{{.*}}, %[[GROUP]]
  // A scale of 1 is no multiplication of the scores.
  //  CHECK-NOT: linalg.generic
  %s = attnfuse.scaled_dot_product %q, %k {scale = 1.0 : f64} : tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32> -> tensor<?x?x?x?xf32>
  return %s : tensor<?x?x?x?xf32>
}

// -----

// A weight of 0 adds nothing whatever v holds; the sum is f32 and rounded once.

// CHECK-LABEL: func @sum(
//  CHECK-SAME:   %[[P:.*]]: tensor<1x6x?x?xf32>, %[[V:.*]]: tensor<1x2x?x24xbf16>)
func.func @sum(%p: tensor<1x6x?x?xf32>, %v: tensor<1x2x?x24xbf16>) -> tensor<1x6x?x24xbf16> {
  //  CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
  //  CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  //      CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<1x6x?x24xf32>
  //      CHECK: %[[VF:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<1x2x?x24xbf16>) outs(%{{.*}} : tensor<1x2x?x24xf32>)
  //      CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<1x6x?x?xf32>) outs(%[[ZEROS]] : tensor<1x6x?x24xf32>)
  // CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[ACC:.*]]: f32):
  //      CHECK:   arith.divui %{{.*}}, %[[C3]]
  //      CHECK:   %[[X:.*]] = tensor.extract %[[VF]]
  //      CHECK:   %[[NOTHING:.*]] = arith.cmpf oeq, %[[IN]], %[[ZERO]]
  //      CHECK:   %[[PROD:.*]] = arith.mulf %[[IN]], %[[X]]
  //      CHECK:   %[[MORE:.*]] = arith.addf %[[ACC]], %[[PROD]]
  //      CHECK:   %[[NEW:.*]] = arith.select %[[NOTHING]], %[[ACC]], %[[MORE]]
  // CHECK-NEXT:   linalg.yield %[[NEW]]
  //      CHECK: linalg.generic {{.*}} ins(%[[SUM]] : tensor<1x6x?x24xf32>) outs(%{{.*}} : tensor<1x6x?x24xbf16>)
  //      CHECK:   arith.truncf
  %o = attnfuse.weighted_sum %p, %v : tensor<1x6x?x?xf32>, tensor<1x2x?x24xbf16> -> tensor<1x6x?x24xbf16>
  return %o : tensor<1x6x?x24xbf16>
}
