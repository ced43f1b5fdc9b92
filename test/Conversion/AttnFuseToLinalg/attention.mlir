// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --canonicalize --split-input-file | FileCheck %s

// The parts in their order: rotations, product, region, bands, blocks, normaliser, sum.

// CHECK-LABEL: func @all(
//  CHECK-SAME:   %[[Q:.*]]: tensor<2x4x?x16xf16>, %[[K:.*]]: tensor<2x2x?x16xf16>, %[[V:.*]]: tensor<2x2x?x24xf16>, %[[BIAS:.*]]: tensor<?xf32>,
func.func @all(%q: tensor<2x4x?x16xf16>, %k: tensor<2x2x?x16xf16>, %v: tensor<2x2x?x24xf16>, %bias: tensor<?xf32>,
               %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>, %rows: tensor<?xi32>, %cols: tensor<?xi32>, %off: i64)
    -> (tensor<2x4x?x24xf16>, tensor<2x4x?xf32>) {
  //  CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  //  CHECK-DAG: %[[C5:.*]] = arith.constant 5 : index
  //  CHECK-DAG: %[[LEFT:.*]] = arith.constant -7 : index
  //  CHECK-DAG: %[[NQ:.*]] = tensor.dim %[[Q]], %[[C2]]
  //      CHECK: %[[QR:.*]] = linalg.generic {{.*}} ins(%[[Q]] :
  //      CHECK:   arith.index_cast %{{.*}} : i64 to index
  //      CHECK:   arith.maxsi
  // CHECK-NEXT:   arith.addi %{{.*}}, %[[C5]]
  //      CHECK: %[[KR:.*]] = linalg.generic {{.*}} ins(%[[K]] :
  //      CHECK:   arith.xori
  //      CHECK: linalg.generic {{.*}} ins(%[[KR]] :
  //      CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[QR]] :
  //      CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} outs(%[[S]] :
  // The region, with its arguments replaced.
  //      CHECK: %[[MODIFIED:.*]] = linalg.generic {{.*}} outs(%[[SCALED]] :
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
  //  CHECK-DAG:   %[[H:.*]] = linalg.index 1
  //  CHECK-DAG:   %[[J:.*]] = linalg.index 3
  //      CHECK:   %[[T:.*]] = tensor.extract %[[BIAS]][%[[J]]]
  //      CHECK:   math.exp2
  //      CHECK:   arith.addf %[[X]], %{{.*}}
  //      CHECK: %[[CAUSAL:.*]] = linalg.generic {{.*}} outs(%[[MODIFIED]] :
  //      CHECK:   arith.cmpi sle
  //      CHECK: %[[WINDOW:.*]] = linalg.generic {{.*}} outs(%[[CAUSAL]] :
  //      CHECK:   arith.cmpi sge, %{{.*}}, %[[LEFT]]
  //      CHECK: scf.for
  //      CHECK: %[[MASKED:.*]] = linalg.generic {{.*}} outs(%[[WINDOW]] :
  //      CHECK: linalg.generic {{.*}} ins(%[[MASKED]] :
  //      CHECK:   arith.maximumf
  //      CHECK: %[[LSE:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x4x?xf32>, tensor<2x4x?xf32>)
  //      CHECK:   math.log
  //      CHECK: %[[OUT:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x4x?x24xf16>)
  //      CHECK: return %[[OUT]], %[[LSE]]
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%v)
      rotate_q <half, offset = 5>(%cos, %sin, offset %off) rotate_k <interleaved, offset = 0>(%cos, %sin)
      blocks <16x16>(%rows, %cols)
      bands [#attnfuse.band<top_left, right = 0>, #attnfuse.band<bottom_right, left = 7>] softmax
      score operands(%bias) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<?xf32>):
        %x = tensor.extract %t[%j] : tensor<?xf32>
        %m = attnfuse.alibi_slope %h, %hq
        %y = arith.mulf %x, %m : f32
        %z = arith.addf %s, %y : f32
        attnfuse.yield %z : f32
      } {scale = 0.5 : f64}
      : (tensor<2x4x?x16xf16>, tensor<2x2x?x16xf16>, tensor<2x2x?x24xf16>, tensor<64x8xf32>, tensor<64x8xf32>, i64,
         tensor<64x8xf32>, tensor<64x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>)
      -> (tensor<2x4x?x24xf16>, tensor<2x4x?xf32>)
  return %o, %lse : tensor<2x4x?x24xf16>, tensor<2x4x?xf32>
}

// -----

// CHECK-LABEL: func @relu(
//   CHECK-NOT: math.exp
//       CHECK: arith.maximumf
//       CHECK: arith.divf
//   CHECK-NOT: attnfuse
func.func @relu(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) -> tensor<1x1x4x8xf32> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) relu_length {scale = 1.0 : f64}
      : (tensor<1x1x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> tensor<1x1x4x8xf32>
  return %o : tensor<1x1x4x8xf32>
}

// -----

// Lengths and the number of heads reach the region as values.

// CHECK-LABEL: func @lengths(
//  CHECK-SAME:   %[[Q:.*]]: tensor<1x?x?x8xf32>, %[[K:.*]]: tensor<1x?x?x8xf32>, %{{.*}}: tensor<1x?x?x8xf32>)
func.func @lengths(%q: tensor<1x?x?x8xf32>, %k: tensor<1x?x?x8xf32>, %v: tensor<1x?x?x8xf32>) -> tensor<1x?x?x8xf32> {
  //  CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  //  CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  //  CHECK-DAG: %[[HQ:.*]] = tensor.dim %[[Q]], %[[C1]]
  //  CHECK-DAG: %[[NQ:.*]] = tensor.dim %[[Q]], %[[C2]]
  //  CHECK-DAG: %[[NKV:.*]] = tensor.dim %[[K]], %[[C2]]
  //      CHECK: %[[A:.*]] = arith.muli %[[NQ]], %[[NKV]]
  //      CHECK: arith.muli %[[A]], %[[HQ]]
  %o = attnfuse.attention q(%q) k(%k) v(%v) relu_none score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %0 = arith.muli %nq, %nkv : index
        %1 = arith.muli %0, %hq : index
        %2 = arith.index_cast %1 : index to i64
        %3 = arith.sitofp %2 : i64 to f32
        %4 = arith.divf %s, %3 : f32
        attnfuse.yield %4 : f32
      } {scale = 1.0 : f64}
      : (tensor<1x?x?x8xf32>, tensor<1x?x?x8xf32>, tensor<1x?x?x8xf32>) -> tensor<1x?x?x8xf32>
  return %o : tensor<1x?x?x8xf32>
}
