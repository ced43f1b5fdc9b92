// A module's region is a graph: there may be cycles, which no lowering may follow for ever.

// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg --split-input-file --verify-diagnostics

module {
  // expected-error @below {{'attnfuse.full' op expected operands that are defined before, got one that is not}}
  %x = attnfuse.full %x : tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.full' op expected operands that are defined before}}
  %x = attnfuse.full %y : tensor<1x1x2x2xf32>
  // expected-note @below {{it is defined here}}
  %y = attnfuse.full %x : tensor<1x1x2x2xf32>
}

// -----

// Through another op, and with lists that are cycles of casts.
module {
  %cols = tensor.cast %cols1 : tensor<1xi32> to tensor<1xi32>
  %rows = arith.constant dense<[0, 1]> : tensor<2xi32>
  // expected-error @below {{'attnfuse.block_sparse' op expected operands that are defined before}}
  %k = attnfuse.block_sparse %w, %rows, %cols {query_block = 2, key_block = 2}
      : tensor<1x1x2x2xf32>, tensor<2xi32>, tensor<1xi32>
  %cols1 = tensor.cast %cols : tensor<1xi32> to tensor<1xi32>
  // expected-note @below {{it is defined here}}
  %w = attnfuse.sliding_window %k top_left {left = 1} : tensor<1x1x2x2xf32>
}

// -----

// The casts alone.
module {
  %rows = arith.constant dense<[0, 1]> : tensor<2xi32>
  %s = arith.constant dense<0.5> : tensor<1x1x2x2xf32>
  %cols = tensor.cast %cols1 : tensor<1xi32> to tensor<1xi32>
  %cols1 = tensor.cast %cols : tensor<1xi32> to tensor<1xi32>
  %k = attnfuse.block_sparse %s, %rows, %cols1 {query_block = 2, key_block = 2}
      : tensor<1x1x2x2xf32>, tensor<2xi32>, tensor<1xi32>
}

// -----

module {
  // expected-error @below {{'attnfuse.causal' op expected operands that are defined before}}
  %x = attnfuse.causal %x top_left : tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.sliding_window' op expected operands that are defined before}}
  %x = attnfuse.sliding_window %x top_left {left = 1} : tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.alibi' op expected operands that are defined before}}
  %x = attnfuse.alibi %x top_left : tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.softmax' op expected operands that are defined before}}
  %x = attnfuse.softmax %x : tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.relu_attention' op expected operands that are defined before}}
  %x = attnfuse.relu_attention %x sum : tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.scaled_dot_product' op expected operands that are defined before}}
  %x = attnfuse.scaled_dot_product %x, %x : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32> -> tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.weighted_sum' op expected operands that are defined before}}
  %x = attnfuse.weighted_sum %x, %x : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32> -> tensor<1x1x2x2xf32>
}

// -----

module {
  // expected-error @below {{'attnfuse.attention' op expected operands that are defined before}}
  %x = attnfuse.attention q(%x) k(%x) v(%x) softmax {scale = 0.25 : f64} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
}
