// RUN: attnfuse-opt %s --canonicalize | FileCheck %s

!q = tensor<1x2x5x16xf16>
!k = tensor<1x2x8x16xf16>
!d = tensor<1x2x?x16xf16>

// Of one alignment one band is left; what the lengths imply goes.
// CHECK-LABEL: func @bands
func.func @bands(%q: !q, %k: !k) -> !q {
  // CHECK-NEXT: attnfuse.attention {{.*}} bands [#attnfuse.band<bottom_right, left = 6, right = 0>, #attnfuse.band<top_left, right = 5>] softmax
  %o = attnfuse.attention q(%q) k(%k) v(%k) bands [
      #attnfuse.band<bottom_right, left = 7, right = 0>, #attnfuse.band<top_left, left = 4, right = 5>,
      #attnfuse.band<bottom_right, left = 6>, #attnfuse.band<top_left>] softmax {scale = 0.25} : (!q, !k, !k) -> !q
  return %o : !q
}

// CHECK-LABEL: func @bands_all_implied
func.func @bands_all_implied(%q: !q, %k: !k) -> !q {
  // CHECK-NEXT: attnfuse.attention
  // CHECK-NOT: bands
  // CHECK-SAME: softmax
  %o = attnfuse.attention q(%q) k(%k) v(%k) bands [#attnfuse.band<bottom_right, left = 7, right = 4>] softmax {scale = 0.25} : (!q, !k, !k) -> !q
  return %o : !q
}

// CHECK-LABEL: func @bands_square
func.func @bands_square(%q: !q) -> !q {
  // CHECK-NEXT: attnfuse.attention {{.*}} bands [#attnfuse.band<top_left, left = 2, right = 0>]
  %o = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<bottom_right, right = 0>, #attnfuse.band<top_left, left = 2>] softmax {scale = 0.25} : (!q, !q, !q) -> !q
  return %o : !q
}

// CHECK-LABEL: func @bands_dynamic
func.func @bands_dynamic(%q: !d) -> !d {
  // CHECK-NEXT: attnfuse.attention {{.*}} bands [#attnfuse.band<bottom_right, right = 0>, #attnfuse.band<top_left, left = 1000>]
  %o = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<bottom_right, right = 0>, #attnfuse.band<top_left, left = 1000>] softmax {scale = 0.25} : (!d, !d, !d) -> !d
  return %o : !d
}

// CHECK-LABEL: func @identity_score
// CHECK-SAME: (%[[Q:.+]]: tensor<1x2x5x16xf16>, %{{.+}}: tensor
func.func @identity_score(%q: !q, %t: tensor<8xf32>) -> !q {
  // CHECK-NEXT: attnfuse.attention q(%[[Q]]) k(%[[Q]]) v(%[[Q]]) softmax {scale = 2.500000e-01 : f64} :
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %a: tensor<8xf32>):
      attnfuse.yield %s : f32
    } {scale = 0.25} : (!q, !q, !q, tensor<8xf32>) -> !q
  return %o : !q
}

// One operand is passed twice and one is not read.
// CHECK-LABEL: func @score_operands
// CHECK-SAME: %[[T:[^:]+]]: tensor<?xf32>, %[[U:[^:]+]]: tensor<?xf32>)
func.func @score_operands(%q: !q, %t: tensor<?xf32>, %u: tensor<?xf32>) -> !q {
  // CHECK-NEXT: attnfuse.attention {{.*}} score operands(%[[T]]) {
  // CHECK-NEXT: ^bb0(%[[S:.+]]: f32, %{{.+}}: index, %[[H:.+]]: index, %{{.+}}: index, %[[J:.+]]: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index, %[[A:.+]]: tensor<?xf32>):
  // CHECK-NEXT: %[[X:.+]] = tensor.extract %[[A]][%[[H]]]
  // CHECK-NEXT: %[[Y:.+]] = tensor.extract %[[A]][%[[J]]]
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t, %u, %t) {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %a: tensor<?xf32>, %c: tensor<?xf32>, %d: tensor<?xf32>):
      %x = tensor.extract %a[%h] : tensor<?xf32>
      %y = tensor.extract %d[%j] : tensor<?xf32>
      %z = arith.mulf %x, %y : f32
      %r = arith.addf %s, %z : f32
      attnfuse.yield %r : f32
    } {scale = 0.25} : (!q, !q, !q, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> !q
  return %o : !q
}

// CHECK-LABEL: func @lse
func.func @lse(%q: !q) -> (!q, tensor<1x2x5xf32>) {
  // CHECK-NEXT: %[[A:[a-z0-9_]+]] = attnfuse.attention {{.*}} bands [#attnfuse.band<top_left, right = 0>] softmax score {
  // CHECK: arith.negf
  // CHECK: } {note = "kept", scale = 2.500000e-01 : f64} : {{.*}} -> tensor<1x2x5x16xf16>
  // CHECK-NEXT: %[[B:.+]], %[[L:.+]] = attnfuse.attention q(%[[A]])
  // CHECK: return %[[B]], %[[L]]
  %a, %unused = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<top_left, right = 0>] softmax score {
    ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      %r = arith.negf %s : f32
      attnfuse.yield %r : f32
    } {scale = 0.25, note = "kept"} : (!q, !q, !q) -> (!q, tensor<1x2x5xf32>)
  %b, %l = attnfuse.attention q(%a) k(%q) v(%q) softmax {scale = 0.25} : (!q, !q, !q) -> (!q, tensor<1x2x5xf32>)
  return %b, %l : !q, tensor<1x2x5xf32>
}

// -----

// Below its diagonal no visible key lies behind the query.
// CHECK-LABEL: func @alibi_below_its_diagonal
// CHECK:         bands [#attnfuse.band<bottom_right, right = 0>]
// CHECK-NOT:     math.absf
// CHECK:         arith.sitofp
// CHECK-NEXT:    arith.mulf
func.func @alibi_below_its_diagonal(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) bands [#attnfuse.band<bottom_right, right = 0>] softmax score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
    %off = arith.subi %nkv, %nq : index
    %diagonal = arith.addi %i, %off : index
    %d = arith.subi %diagonal, %j : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %abs = math.absf %df : f32
    %p = arith.mulf %s, %abs : f32
    attnfuse.yield %p : f32
  } {scale = 1.0 : f64} : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}

// -----

// The other diagonal says nothing, nor does a band that keeps keys behind the query.
// CHECK-LABEL: func @alibi_above_a_diagonal
// CHECK:         math.absf
// CHECK:         math.absf
func.func @alibi_above_a_diagonal(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>) -> (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) {
  %o = attnfuse.attention q(%q) k(%k) v(%k) bands [#attnfuse.band<bottom_right, right = 0>] softmax score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
    %d = arith.subi %i, %j : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %abs = math.absf %df : f32
    %p = arith.mulf %s, %abs : f32
    attnfuse.yield %p : f32
  } {scale = 1.0 : f64} : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16>
  %o1 = attnfuse.attention q(%q) k(%k) v(%k) bands [#attnfuse.band<top_left, right = 1>] softmax score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
    %d = arith.subi %i, %j : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %abs = math.absf %df : f32
    %p = arith.mulf %s, %abs : f32
    attnfuse.yield %p : f32
  } {scale = 1.0 : f64} : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16>
  return %o, %o1 : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>
}

// -----

// With as many queries as keys both diagonals are one.
// CHECK-LABEL: func @alibi_in_a_square
// CHECK-NOT:     math.absf
func.func @alibi_in_a_square(%q: tensor<1x2x9x16xf16>) -> tensor<1x2x9x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<top_left, right = 0>] softmax score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
    %off = arith.subi %nkv, %nq : index
    %diagonal = arith.addi %off, %i : index
    %d = arith.subi %diagonal, %j : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %abs = math.absf %df : f32
    %p = arith.mulf %s, %abs : f32
    attnfuse.yield %p : f32
  } {scale = 1.0 : f64} : (tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>) -> tensor<1x2x9x16xf16>
  return %o : tensor<1x2x9x16xf16>
}

// -----

// A distance in few bits wraps around.
// CHECK-LABEL: func @alibi_of_narrow_distances
// CHECK:         math.absf
func.func @alibi_of_narrow_distances(%q: tensor<1x2x9x16xf16>) -> tensor<1x2x9x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) bands [#attnfuse.band<top_left, right = 0>] softmax score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
    %d = arith.subi %i, %j : index
    %d8 = arith.index_cast %d : index to i8
    %df = arith.sitofp %d8 : i8 to f32
    %abs = math.absf %df : f32
    %p = arith.mulf %s, %abs : f32
    attnfuse.yield %p : f32
  } {scale = 1.0 : f64} : (tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>) -> tensor<1x2x9x16xf16>
  return %o : tensor<1x2x9x16xf16>
}
