// RUN: attnfuse-opt %s --canonicalize --allow-unregistered-dialect | FileCheck %s

!s = tensor<?x?x?x?xf32>

// CHECK-LABEL: func @full
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @full(%s: !s) -> !s {
  // CHECK-NEXT: return %[[S]]
  %m = attnfuse.full %s : !s
  return %m : !s
}

// CHECK-LABEL: func @causal_twice
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @causal_twice(%s: !s) -> !s {
  // CHECK-NEXT: %[[A:.+]] = attnfuse.causal %[[S]] bottom_right
  // CHECK-NEXT: return %[[A]]
  %a = attnfuse.causal %s bottom_right : !s
  %b = attnfuse.causal %a bottom_right : !s
  return %b : !s
}

// The two alignments differ where Nq and Nkv may differ.
// CHECK-LABEL: func @causal_both_alignments
func.func @causal_both_alignments(%s: !s) -> !s {
  // CHECK-NEXT: attnfuse.causal %{{.+}} bottom_right
  // CHECK-NEXT: attnfuse.causal %{{.+}} top_left
  // CHECK-NEXT: return
  %a = attnfuse.causal %s bottom_right : !s
  %b = attnfuse.causal %a top_left : !s
  return %b : !s
}

// Redundant even if the first has other uses, and behind another score op.
// CHECK-LABEL: func @causal_twice_shared
func.func @causal_twice_shared(%s: !s, %bias: tensor<?x?xf32>) -> (!s, !s) {
  // CHECK-NEXT: %[[A:.+]] = attnfuse.causal
  // CHECK-NEXT: %[[B:.+]] = attnfuse.additive_bias %[[A]]
  // CHECK-NEXT: return %[[A]], %[[B]]
  %a = attnfuse.causal %s bottom_right : !s
  %b = attnfuse.additive_bias %a, %bias : !s, tensor<?x?xf32>
  %c = attnfuse.causal %b bottom_right : !s
  return %a, %c : !s, !s
}

// CHECK-LABEL: func @causal_and_window
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @causal_and_window(%s: !s) -> !s {
  // CHECK-NEXT: %[[W:.+]] = attnfuse.sliding_window %[[S]] bottom_right {left = 7 : i64, right = 0 : i64}
  // CHECK-NEXT: return %[[W]]
  %a = attnfuse.causal %s bottom_right : !s
  %b = attnfuse.sliding_window %a bottom_right {left = 7, right = 3} : !s
  return %b : !s
}

// A causal mask is implied by a window that ends at the diagonal.
// CHECK-LABEL: func @window_then_causal
func.func @window_then_causal(%s: !s) -> !s {
  // CHECK-NEXT: %[[W:.+]] = attnfuse.sliding_window %{{.+}} bottom_right {left = 7 : i64, right = 0 : i64}
  // CHECK-NEXT: return %[[W]]
  %a = attnfuse.sliding_window %s bottom_right {left = 7, right = 0} : !s
  %b = attnfuse.causal %a bottom_right : !s
  return %b : !s
}

// CHECK-LABEL: func @windows_intersect
func.func @windows_intersect(%s: !s) -> !s {
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} top_left {left = 4 : i64, right = 5 : i64}
  // CHECK-NEXT: return
  %a = attnfuse.sliding_window %s top_left {left = 4, right = 9} : !s
  %b = attnfuse.sliding_window %a top_left {left = 8, right = 5} : !s
  return %b : !s
}

// Masks between the two do not matter.
// CHECK-LABEL: func @windows_intersect_across_masks
func.func @windows_intersect_across_masks(%s: !s, %r: tensor<?xi32>, %c: tensor<?xi32>) -> !s {
  // CHECK-NEXT: attnfuse.block_sparse
  // CHECK-NEXT: attnfuse.causal %{{.+}} bottom_right
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} top_left {left = 4 : i64, right = 5 : i64}
  // CHECK-NEXT: return
  %a = attnfuse.sliding_window %s top_left {left = 4} : !s
  %b = attnfuse.block_sparse %a, %r, %c {query_block = 16, key_block = 16} : !s, tensor<?xi32>, tensor<?xi32>
  %d = attnfuse.causal %b bottom_right : !s
  %e = attnfuse.sliding_window %d top_left {right = 5} : !s
  return %e : !s
}

// The first window has another use and stays; merging would compute more.
// CHECK-LABEL: func @windows_shared
func.func @windows_shared(%s: !s) -> (!s, !s) {
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} top_left {left = 4 : i64}
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} top_left {right = 5 : i64}
  // CHECK-NEXT: return
  %a = attnfuse.sliding_window %s top_left {left = 4} : !s
  %b = attnfuse.sliding_window %a top_left {right = 5} : !s
  return %a, %b : !s, !s
}

// CHECK-LABEL: func @windows_of_two_alignments
func.func @windows_of_two_alignments(%s: !s) -> !s {
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} top_left {left = 4 : i64}
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} bottom_right {right = 5 : i64}
  // CHECK-NEXT: return
  %a = attnfuse.sliding_window %s top_left {left = 4} : !s
  %b = attnfuse.sliding_window %a bottom_right {right = 5} : !s
  return %b : !s
}

// CHECK-LABEL: func @window_unbounded
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @window_unbounded(%s: !s) -> !s {
  // CHECK-NEXT: return %[[S]]
  %a = attnfuse.sliding_window %s bottom_right : !s
  return %a : !s
}

// CHECK-LABEL: func @window_that_is_causal
func.func @window_that_is_causal(%s: !s) -> !s {
  // CHECK-NEXT: attnfuse.causal %{{.+}} bottom_right
  // CHECK-NEXT: return
  %a = attnfuse.sliding_window %s bottom_right {right = 0} : !s
  return %a : !s
}

// The smallest windows that cover 5 queries and 8 keys, and one less.
// CHECK-LABEL: func @covering_top_left
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @covering_top_left(%s: tensor<1x1x5x8xf32>) -> (tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>) {
  // CHECK-NEXT: %[[L:.+]] = attnfuse.sliding_window %[[S]] top_left {left = 3 : i64}
  // CHECK-NEXT: %[[R:.+]] = attnfuse.sliding_window %[[S]] top_left {right = 6 : i64}
  // CHECK-NEXT: return %[[S]], %[[L]], %[[R]]
  %a = attnfuse.sliding_window %s top_left {left = 4, right = 7} : tensor<1x1x5x8xf32>
  %b = attnfuse.sliding_window %s top_left {left = 3, right = 7} : tensor<1x1x5x8xf32>
  %c = attnfuse.sliding_window %s top_left {left = 4, right = 6} : tensor<1x1x5x8xf32>
  return %a, %b, %c : tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>
}

// CHECK-LABEL: func @covering_bottom_right
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @covering_bottom_right(%s: tensor<1x1x5x8xf32>) -> (tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>) {
  // CHECK-NEXT: %[[L:.+]] = attnfuse.sliding_window %[[S]] bottom_right {left = 6 : i64}
  // CHECK-NEXT: %[[R:.+]] = attnfuse.sliding_window %[[S]] bottom_right {right = 3 : i64}
  // CHECK-NEXT: return %[[S]], %[[L]], %[[R]]
  %a = attnfuse.sliding_window %s bottom_right {left = 7, right = 4} : tensor<1x1x5x8xf32>
  %b = attnfuse.sliding_window %s bottom_right {left = 6, right = 4} : tensor<1x1x5x8xf32>
  %c = attnfuse.sliding_window %s bottom_right {left = 7, right = 3} : tensor<1x1x5x8xf32>
  return %a, %b, %c : tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>
}

// A decode step sees all keys, however many they are. With top_left it sees
// the first alone.
// CHECK-LABEL: func @decode
// CHECK-SAME: (%[[S:.+]]: tensor
func.func @decode(%s: tensor<1x1x1x?xf32>) -> (tensor<1x1x1x?xf32>, tensor<1x1x1x?xf32>) {
  // CHECK-NEXT: %[[T:.+]] = attnfuse.causal %[[S]] top_left
  // CHECK-NEXT: return %[[S]], %[[T]]
  %a = attnfuse.causal %s bottom_right : tensor<1x1x1x?xf32>
  %b = attnfuse.causal %s top_left : tensor<1x1x1x?xf32>
  return %a, %b : tensor<1x1x1x?xf32>, tensor<1x1x1x?xf32>
}

// CHECK-LABEL: func @alignment_of_square
func.func @alignment_of_square(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  // CHECK-NEXT: attnfuse.sliding_window %{{.+}} top_left {left = 3 : i64, right = 0 : i64}
  // CHECK-NEXT: return
  %a = attnfuse.causal %s bottom_right : tensor<1x1x8x8xf32>
  %b = attnfuse.sliding_window %a top_left {left = 3, right = 7} : tensor<1x1x8x8xf32>
  return %b : tensor<1x1x8x8xf32>
}

// CHECK-LABEL: func @block_sparse_twice
func.func @block_sparse_twice(%s: !s, %r: tensor<?xi32>, %c: tensor<?xi32>) -> !s {
  // CHECK-NEXT: attnfuse.block_sparse
  // CHECK-NEXT: attnfuse.causal
  // CHECK-NEXT: return
  %a = attnfuse.block_sparse %s, %r, %c {query_block = 16, key_block = 16} : !s, tensor<?xi32>, tensor<?xi32>
  %b = attnfuse.causal %a bottom_right : !s
  %d = attnfuse.block_sparse %b, %r, %c {query_block = 16, key_block = 16} : !s, tensor<?xi32>, tensor<?xi32>
  return %d : !s
}

// Other lists, or other sizes, are another mask.
// CHECK-LABEL: func @block_sparse_different
func.func @block_sparse_different(%s: !s, %r: tensor<?xi32>, %c: tensor<?xi32>, %d: tensor<?xi32>) -> !s {
  // CHECK-COUNT-3: attnfuse.block_sparse
  // CHECK-NEXT: return
  %0 = attnfuse.block_sparse %s, %r, %c {query_block = 16, key_block = 16} : !s, tensor<?xi32>, tensor<?xi32>
  %1 = attnfuse.block_sparse %0, %r, %d {query_block = 16, key_block = 16} : !s, tensor<?xi32>, tensor<?xi32>
  %2 = attnfuse.block_sparse %1, %r, %c {query_block = 16, key_block = 32} : !s, tensor<?xi32>, tensor<?xi32>
  return %2 : !s
}

// CHECK-LABEL: func @masks_move_behind_modifiers
// CHECK-SAME: (%[[S:[^:]+]]: tensor
func.func @masks_move_behind_modifiers(%s: !s, %r: tensor<?xi32>, %c: tensor<?xi32>, %bias: tensor<?x?xf32>) -> !s {
  // CHECK-NEXT: %[[A:.+]] = attnfuse.additive_bias %[[S]]
  // CHECK-NEXT: %[[B:.+]] = attnfuse.alibi %[[A]]
  // CHECK-NEXT: %[[C:.+]] = attnfuse.block_sparse %[[B]]
  // CHECK-NEXT: %[[D:.+]] = attnfuse.sliding_window %[[C]] bottom_right {left = 9 : i64, right = 0 : i64}
  // CHECK-NEXT: return %[[D]]
  %0 = attnfuse.causal %s bottom_right : !s
  %1 = attnfuse.additive_bias %0, %bias : !s, tensor<?x?xf32>
  %2 = attnfuse.block_sparse %1, %r, %c {query_block = 16, key_block = 16} : !s, tensor<?xi32>, tensor<?xi32>
  %3 = attnfuse.alibi %2 bottom_right : !s
  %4 = attnfuse.sliding_window %3 bottom_right {left = 9} : !s
  return %4 : !s
}

// The masked scores are used elsewhere too.
// CHECK-LABEL: func @shared_mask_does_not_move
func.func @shared_mask_does_not_move(%s: !s) -> (!s, !s) {
  // CHECK-NEXT: %[[A:.+]] = attnfuse.causal
  // CHECK-NEXT: %[[B:.+]] = attnfuse.alibi %[[A]]
  // CHECK-NEXT: return %[[A]], %[[B]]
  %0 = attnfuse.causal %s bottom_right : !s
  %1 = attnfuse.alibi %0 bottom_right : !s
  return %0, %1 : !s, !s
}

// A module's region is a graph: chains may be cycles there.
// CHECK-LABEL: module @cycle
module @cycle {
  // CHECK-COUNT-2: attnfuse.causal
  %0 = attnfuse.causal %1 bottom_right : !s
  %1 = attnfuse.causal %0 top_left : !s
  "test.use"(%1) : (!s) -> ()
  %2 = attnfuse.full %2 : !s
  "test.use"(%2) : (!s) -> ()
}
