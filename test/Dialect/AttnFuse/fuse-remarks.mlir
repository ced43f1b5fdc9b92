// RUN: attnfuse-opt %s --attnfuse-fuse --allow-unregistered-dialect --split-input-file --verify-diagnostics | FileCheck %s

// One function per remark. A chain stays as it is; a rotation that stays is
// in front of the fused op.

// CHECK-LABEL: func @probs_from_argument
func.func @probs_from_argument(%p: tensor<1x2x8x8xf32>, %v: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // CHECK: attnfuse.weighted_sum
  // expected-remark @below {{not fused: the probabilities come from a block argument}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @scores_from_argument
func.func @scores_from_argument(%s: tensor<1x2x8x8xf32>, %v: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // CHECK: attnfuse.softmax
  // expected-remark @below {{not fused: the scores come from a block argument}}
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @no_normalizer
func.func @no_normalizer(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // CHECK: attnfuse.scaled_dot_product
  // expected-remark @below {{not fused: expected softmax or relu_attention before weighted_sum, got 'attnfuse.scaled_dot_product'}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %s, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @foreign_score_op
func.func @foreign_score_op(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  // CHECK: math.tanh
  // expected-remark @below {{not fused: expected a score op of attnfuse or scaled_dot_product, got 'math.tanh'}}
  %t = math.tanh %s : tensor<1x2x8x8xf32>
  %m = attnfuse.causal %t bottom_right : tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %m : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @probs_used_twice
func.func @probs_used_twice(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8x8xf32>) {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  // CHECK: attnfuse.softmax
  // expected-remark @below {{not fused: the probabilities have more than one use}}
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  // expected-note @below {{used here too}}
  return %o, %p : tensor<1x2x8x16xf16>, tensor<1x2x8x8xf32>
}

// -----

// A bias made of the scores themselves is a second use of them.
// CHECK-LABEL: func @scores_used_twice
func.func @scores_used_twice(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // CHECK: attnfuse.scaled_dot_product
  // expected-remark @below {{not fused: the scores have more than one use}}
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %t = attnfuse.additive_bias %s, %s : tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %t : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @two_block_sparse
func.func @two_block_sparse(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>,
                            %r: tensor<2xi32>, %c: tensor<?xi32>, %d: tensor<?xi32>) -> tensor<1x2x8x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  // CHECK-COUNT-2: attnfuse.block_sparse
  // expected-remark @below {{not fused: a chain may hold one block_sparse; merge the lists}}
  %a = attnfuse.block_sparse %s, %r, %c {query_block = 8, key_block = 4} : tensor<1x2x8x8xf32>, tensor<2xi32>, tensor<?xi32>
  // expected-note @below {{the other one}}
  %b = attnfuse.block_sparse %a, %r, %d {query_block = 8, key_block = 4} : tensor<1x2x8x8xf32>, tensor<2xi32>, tensor<?xi32>
  %p = attnfuse.softmax %b : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @mixed_element_types
func.func @mixed_element_types(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  // CHECK: attnfuse.weighted_sum
  // expected-remark @below {{not fused: expected q, k and v of one element type, got 'f16', 'f16' and 'bf16'}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x16xbf16>
  return %o : tensor<1x2x8x16xbf16>
}

// -----

// CHECK-LABEL: func @other_block
func.func @other_block(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>, %c: i1) -> tensor<1x2x8x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  // CHECK: attnfuse.softmax
  // expected-remark @below {{not fused: it is in another block than the end of its chain}}
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  %r = scf.if %c -> tensor<1x2x8x16xf16> {
    // expected-note @below {{the chain ends here}}
    %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
    scf.yield %o : tensor<1x2x8x16xf16>
  } else {
    scf.yield %v : tensor<1x2x8x16xf16>
  }
  return %r : tensor<1x2x8x16xf16>
}

// -----

// v depends on the log-sum-exp, so no place has both.
// CHECK-LABEL: func @lse_used_before_v
func.func @lse_used_before_v(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  // CHECK: attnfuse.softmax
  // expected-remark @below {{not fused: its log-sum-exp is used before v is defined}}
  %p, %lse = attnfuse.softmax %s : tensor<1x2x8x8xf32>, tensor<1x2x8xf32>
  %v = "test.make_v"(%lse) : (tensor<1x2x8xf32>) -> tensor<1x2x8x16xf16>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// The dynamic scores hide that q and v have different batch sizes.
// CHECK-LABEL: func @hidden_contradiction
func.func @hidden_contradiction(%q: tensor<2x2x8x16xf16>, %k: tensor<2x2x8x16xf16>, %v: tensor<3x2x8x16xf16>) -> tensor<3x2x8x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<2x2x8x16xf16>, tensor<2x2x8x16xf16> -> tensor<?x2x8x8xf32>
  %p = attnfuse.softmax %s : tensor<?x2x8x8xf32>
  // CHECK: attnfuse.weighted_sum
  // CHECK-NOT: attnfuse.attention
  // expected-remark @below {{not fused: 'attnfuse.attention' op expected dimension B of 'value' to be 2 as in 'query', got 3}}
  %o = attnfuse.weighted_sum %p, %v : tensor<?x2x8x8xf32>, tensor<3x2x8x16xf16> -> tensor<3x2x8x16xf16>
  return %o : tensor<3x2x8x16xf16>
}

// -----

// The rest of a chain fuses behind a rotation that has to stay.
// CHECK-LABEL: func @rotation_used_twice
func.func @rotation_used_twice(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>)
    -> (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) {
  // CHECK: %[[K:.+]] = attnfuse.rope
  // expected-remark @below {{not fused: the rotated k has another use}}
  %kr = attnfuse.rope %k, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  // CHECK-NOT: rotate
  // CHECK: attnfuse.attention q(%{{.*}}) k(%[[K]])
  %s = attnfuse.scaled_dot_product %q, %kr : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  // expected-note @below {{used here too}}
  return %o, %kr : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @rotation_in_other_block
func.func @rotation_in_other_block(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>, %c: i1)
    -> tensor<1x2x8x16xf16> {
  // expected-remark @below {{not fused: the rotation of q is in another block than the end of its chain}}
  %qr = attnfuse.rope %q, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  %r = scf.if %c -> tensor<1x2x8x16xf16> {
    %s = attnfuse.scaled_dot_product %qr, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
    %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
    // CHECK: attnfuse.attention
    // CHECK-NOT: rotate
    // expected-note @below {{the chain ends here}}
    %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
    scf.yield %o : tensor<1x2x8x16xf16>
  } else {
    scf.yield %v : tensor<1x2x8x16xf16>
  }
  return %r : tensor<1x2x8x16xf16>
}

// -----

// CHECK-LABEL: func @nested_rotation
func.func @nested_rotation(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>, %v: tensor<1x2x8x16xf16>, %t: tensor<8x8xf32>)
    -> tensor<1x2x8x16xf16> {
  // CHECK: %[[Q:.+]] = attnfuse.rope %{{.*}}half
  // expected-remark @below {{not fused: q is rotated twice and only the last rotation can be fused}}
  %q1 = attnfuse.rope %q, %t, %t half : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  %q2 = attnfuse.rope %q1, %t, %t interleaved : tensor<1x2x8x16xf16>, tensor<8x8xf32>, tensor<8x8xf32>
  // CHECK: attnfuse.attention q(%[[Q]]) {{.*}} rotate_q <interleaved, offset = 0>
  %s = attnfuse.scaled_dot_product %q2, %k : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  // expected-note @below {{the chain ends here}}
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}
