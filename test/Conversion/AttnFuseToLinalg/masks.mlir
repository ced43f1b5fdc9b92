// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func @full(
//  CHECK-SAME:   %[[S:.*]]: tensor<1x2x3x4xf32>
//  CHECK-NEXT:   return %[[S]]
func.func @full(%s: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %m = attnfuse.full %s : tensor<1x2x3x4xf32>
  return %m : tensor<1x2x3x4xf32>
}

// -----

// CHECK-LABEL: func @causal_top_left(
func.func @causal_top_left(%s: tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> {
  //  CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  //  CHECK-DAG: %[[MASKED:.*]] = arith.constant 0xFF800000 : f32
  //      CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x2x?x?xf32>)
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
  //      CHECK:   %[[I:.*]] = linalg.index 2
  //      CHECK:   %[[J:.*]] = linalg.index 3
  //      CHECK:   %[[DIST:.*]] = arith.subi %[[J]], %[[I]]
  // CHECK-NEXT:   %[[VISIBLE:.*]] = arith.cmpi sle, %[[DIST]], %[[C0]]
  // CHECK-NEXT:   arith.select %[[VISIBLE]], %[[X]], %[[MASKED]]
  %m = attnfuse.causal %s top_left : tensor<1x2x?x?xf32>
  return %m : tensor<1x2x?x?xf32>
}

// -----

// CHECK-LABEL: func @causal_bottom_right(
//  CHECK-SAME:   %[[S:.*]]: tensor<1x2x?x?xf32>
func.func @causal_bottom_right(%s: tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> {
  //  CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  //  CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
  //      CHECK:   %[[DIST:.*]] = arith.subi
  //      CHECK:   %[[NKV:.*]] = tensor.dim %[[S]], %[[C3]]
  //      CHECK:   %[[NQ:.*]] = tensor.dim %[[S]], %[[C2]]
  //      CHECK:   %[[OFF:.*]] = arith.subi %[[NKV]], %[[NQ]]
  //      CHECK:   %[[ALIGNED:.*]] = arith.subi %[[DIST]], %[[OFF]]
  //      CHECK:   arith.cmpi sle, %[[ALIGNED]],
  %m = attnfuse.causal %s bottom_right : tensor<1x2x?x?xf32>
  return %m : tensor<1x2x?x?xf32>
}

// -----

// Bounds are compared with the distance from the diagonal.

// CHECK-LABEL: func @window(
func.func @window(%s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  //  CHECK-DAG: %[[RIGHT:.*]] = arith.constant 2147483647 : index
  //  CHECK-DAG: %[[LEFT:.*]] = arith.constant -3 : index
  //      CHECK:   %[[DIST:.*]] = arith.subi
  //      CHECK:   arith.cmpi sle, %{{.*}}, %[[RIGHT]]
  //      CHECK:   arith.cmpi sge, %{{.*}}, %[[LEFT]]
  %m = attnfuse.sliding_window %s top_left {left = 3 : i64, right = 2147483647 : i64} : tensor<1x2x8x8xf32>
  return %m : tensor<1x2x8x8xf32>
}

// -----

// CHECK-LABEL: func @unbounded_left(
func.func @unbounded_left(%s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  //      CHECK:   arith.cmpi sle
  //  CHECK-NOT:   arith.cmpi
  %m = attnfuse.sliding_window %s top_left {right = 2 : i64} : tensor<1x2x8x8xf32>
  return %m : tensor<1x2x8x8xf32>
}

// -----

// The lists are searched once per pair of blocks.

// CHECK-LABEL: func @blocks(
//  CHECK-SAME:   %[[S:.*]]: tensor<2x4x100x?xf32>, %[[ROWS:.*]]: tensor<8xi32>, %[[COLS:.*]]: tensor<?xi32>)
func.func @blocks(%s: tensor<2x4x100x?xf32>, %rows: tensor<8xi32>, %cols: tensor<?xi32>) -> tensor<2x4x100x?xf32> {
  //  CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  //  CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  //  CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
  //  CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
  //  CHECK-DAG: %[[NO:.*]] = arith.constant false
  //      CHECK: %[[KB:.*]] = arith.ceildivui %{{.*}}, %[[C32]]
  //      CHECK: tensor.empty(%[[KB]]) : tensor<1x1x7x?xi1>
  //      CHECK: %[[PATTERN:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x7x?xi1>)
  //      CHECK:   %[[ROW:.*]] = linalg.index 2
  //      CHECK:   %[[COL:.*]] = linalg.index 3
  //      CHECK:   %[[NEXT:.*]] = arith.addi %[[ROW]], %[[C1]]
  //      CHECK:   tensor.extract %[[ROWS]][%[[ROW]]]
  //      CHECK:   tensor.extract %[[ROWS]][%[[NEXT]]]
  //      CHECK:   scf.for %[[E:.*]] = %{{.*}} to %{{.*}} step %[[C1]] iter_args(%[[FOUND:.*]] = %[[NO]])
  //      CHECK:     tensor.extract %[[COLS]][%[[E]]]
  //      CHECK:     %[[SAME:.*]] = arith.cmpi eq, %{{.*}}, %[[COL]]
  //      CHECK:     arith.ori %[[FOUND]], %[[SAME]]
  //      CHECK: linalg.generic {{.*}} outs(%[[S]] : tensor<2x4x100x?xf32>)
  //      CHECK:   %[[QB:.*]] = arith.divui %{{.*}}, %[[C16]]
  //      CHECK:   %[[KB:.*]] = arith.divui %{{.*}}, %[[C32]]
  //      CHECK:   tensor.extract %[[PATTERN]][%[[C0]], %[[C0]], %[[QB]], %[[KB]]]
  //      CHECK:   arith.select
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 32}
      : tensor<2x4x100x?xf32>, tensor<8xi32>, tensor<?xi32>
  return %m : tensor<2x4x100x?xf32>
}

// -----

// A pattern per head, shared by the batch.

// CHECK-LABEL: func @blocks_per_head(
//  CHECK-SAME:   %[[ROWS:[^:]*]]: tensor<1x4x8xi32>
func.func @blocks_per_head(%s: tensor<2x4x100x64xf32>, %rows: tensor<1x4x8xi32>, %cols: tensor<?xi32>) -> tensor<2x4x100x64xf32> {
  //  CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  //      CHECK: %[[PATTERN:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x4x7x2xi1>)
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   tensor.extract %[[ROWS]][%[[C0]], %[[H]], %{{.*}}]
  //      CHECK: linalg.generic
  //      CHECK:   %[[H:.*]] = linalg.index 1
  //      CHECK:   tensor.extract %[[PATTERN]][%[[C0]], %[[H]], %{{.*}}, %{{.*}}]
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 32}
      : tensor<2x4x100x64xf32>, tensor<1x4x8xi32>, tensor<?xi32>
  return %m : tensor<2x4x100x64xf32>
}

// -----

// Constant lists in order, with an entry that no row names.
// CHECK-LABEL: func.func @constant_lists
// CHECK-NOT: attnfuse.block_sparse
func.func @constant_lists(%s: tensor<1x1x32x64xf32>) -> tensor<1x1x32x64xf32> {
  %rows = arith.constant dense<[0, 2, 2]> : tensor<3xi32>
  %cols = arith.constant dense<[0, 3, -7]> : tensor<3xi32>
  %m = attnfuse.block_sparse %s, %rows, %cols {query_block = 16, key_block = 16}
      : tensor<1x1x32x64xf32>, tensor<3xi32>, tensor<3xi32>
  return %m : tensor<1x1x32x64xf32>
}
