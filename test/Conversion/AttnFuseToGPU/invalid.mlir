// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file --verify-diagnostics

// A function without attention is left alone.
func.func @no_attention(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  return %q : tensor<1x2x8x16xf16>
}

// -----

func.func @not_fused(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x8xf32> {
  // expected-error @below {{not part of one attnfuse.attention, so 'not_fused' has no kernel of its own}}
  %s = attnfuse.scaled_dot_product %q, %q : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x8xf32>
  return %s : tensor<1x2x8x8xf32>
}

// -----

func.func @two(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // expected-note @below {{the first is here}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  // expected-error @below {{a second attention in 'two'; a kernel computes one}}
  %p = attnfuse.attention q(%o) k(%q) v(%q) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  return %p : tensor<1x2x8x16xf16>
}

// -----

func.func @no_schedule(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  // expected-error @below {{expected a schedule: run attnfuse-select-schedule first}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

func.func @output_not_returned(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8xf32> {
  %o, %lse = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8xf32>)
  // expected-error @below {{expected the function to return the attention's output}}
  return %lse : tensor<1x2x8xf32>
}

// -----

func.func @argument_returned(%q: tensor<1x2x8x16xf16>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  // expected-error @below {{expected each result of the function to be a different result of the attention}}
  return %o, %q : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>
}

// -----

func.func @no_device_form(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        // expected-error @below {{has no device form in a score region}}
        %y = math.erf %s : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

func.func @tiles_across_blocks(%q: tensor<1x2x128x16xf16>, %rows: tensor<3xi32>, %cols: tensor<?xi32>) -> tensor<1x2x128x16xf16> {
  // expected-error @below {{expected tile_m to divide the query block of 64, got 128}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <64x64>(%rows, %cols) softmax
      schedule <tile_m = 128, tile_n = 128, warps = 4, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x128x16xf16>, tensor<1x2x128x16xf16>, tensor<1x2x128x16xf16>, tensor<3xi32>, tensor<?xi32>) -> tensor<1x2x128x16xf16>
  return %o : tensor<1x2x128x16xf16>
}

// -----

func.func @elements_below_a_byte(%q: tensor<1x2x8x16xf16>, %mask: tensor<8x8xi1>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%mask) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<8x8xi1>):
        // expected-error @below {{expected elements of whole bytes, got 'i1'}}
        %m = tensor.extract %t[%i, %j] : tensor<8x8xi1>
        %y = arith.select %m, %s, %s : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<8x8xi1>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// expected-error @below {{expected a name of letters, digits and '_' for a kernel, got 'a.b'}}
func.func @a.b(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax
      schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}

// -----

// The kernel that combines the parts of the first function has the second one's name.
func.func @a(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax
      schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false, key_splits = 2> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}
// expected-error @below {{expected a name of letters, digits and '_' for a kernel, got 'a$combine'}}
func.func @"a$combine"(%q: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax
      schedule <tile_m = 16, tile_n = 16, warps = 1, q_in_registers = false> {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  return %o : tensor<1x2x8x16xf16>
}
