// RUN: attnfuse-opt %s --attnfuse-select-schedule --split-input-file --verify-diagnostics

// A schedule that is given and fits is left as it is.
module attributes {attnfuse.target = #attnfuse.target<"h200">} {
func.func @given(%q: tensor<1x8x?x64xf16>) -> tensor<1x8x?x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 48, tile_n = 48, warps = 3, q_in_registers = true> {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>) -> tensor<1x8x?x64xf16>
  return %o : tensor<1x8x?x64xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"rtx3090">} {
func.func @shared_memory(%q: tensor<1x8x?x256xf16>) -> tensor<1x8x?x256xf16> {
  // expected-error @+1 {{'attnfuse.attention' op the schedule needs 131072 bytes of shared memory per block, rtx3090 has 101376; use a smaller tile_m or tile_n}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = false> {scale = 0.125 : f64}
    : (tensor<1x8x?x256xf16>, tensor<1x8x?x256xf16>, tensor<1x8x?x256xf16>) -> tensor<1x8x?x256xf16>
  return %o : tensor<1x8x?x256xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
func.func @registers(%q: tensor<1x8x?x128xf16>) -> tensor<1x8x?x128xf16> {
  // expected-error @+1 {{the schedule needs about 271 registers per thread, sm_80 has 255; use a smaller tile_n or more warps for tile_m}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 128, tile_n = 80, warps = 4, q_in_registers = false> {scale = 0.125 : f64}
    : (tensor<1x8x?x128xf16>, tensor<1x8x?x128xf16>, tensor<1x8x?x128xf16>) -> tensor<1x8x?x128xf16>
  return %o : tensor<1x8x?x128xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
func.func @query_block(%q: tensor<1x8x?x64xf16>, %r: tensor<?xi32>, %c: tensor<?xi32>) -> tensor<1x8x?x64xf16> {
  // expected-error @+1 {{expected tile_m to divide the query block of 96, got 64}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <96x64>(%r, %c) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false> {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<?xi32>, tensor<?xi32>) -> tensor<1x8x?x64xf16>
  return %o : tensor<1x8x?x64xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
func.func @key_block(%q: tensor<1x8x?x64xf16>, %r: tensor<?xi32>, %c: tensor<?xi32>) -> tensor<1x8x?x64xf16> {
  // expected-error @+1 {{expected a key block that is a multiple of 16 for the GPU, got 24; round the block size to one, or execute on the CPU}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <64x24>(%r, %c) softmax {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<?xi32>, tensor<?xi32>) -> tensor<1x8x?x64xf16>
  return %o : tensor<1x8x?x64xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
func.func @head_size(%q: tensor<1x8x?x64xf16>, %v: tensor<1x8x?x260xf16>) -> tensor<1x8x?x260xf16> {
  // expected-error @+1 {{expected the head size of v to be a multiple of 8 from 8 to 256 for the GPU, got 260; pad it, or execute on the CPU}}
  %o = attnfuse.attention q(%q) k(%q) v(%v) softmax {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x260xf16>) -> tensor<1x8x?x260xf16>
  return %o : tensor<1x8x?x260xf16>
}

// One error does not hide the next.
func.func @element_type(%q: tensor<1x8x?x64xf32>) -> tensor<1x8x?x64xf32> {
  // expected-error @+1 {{expected query of f16 or bf16 for the GPU, got 'f32'; convert it, or execute on the CPU}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>) -> tensor<1x8x?x64xf32>
  return %o : tensor<1x8x?x64xf32>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_80", {max_shared_per_block = 4096 : i64}>} {
func.func @nothing_fits(%q: tensor<1x8x?x256xf16>) -> tensor<1x8x?x256xf16> {
  // expected-error @+1 {{no tile fits on sm_80: the schedule needs 24576 bytes of shared memory per block, sm_80 has 4096; use a smaller tile_m or tile_n}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
    : (tensor<1x8x?x256xf16>, tensor<1x8x?x256xf16>, tensor<1x8x?x256xf16>) -> tensor<1x8x?x256xf16>
  return %o : tensor<1x8x?x256xf16>
}
}

// -----

func.func @no_target(%q: tensor<1x8x?x64xf16>) -> tensor<1x8x?x64xf16> {
  // expected-error @+1 {{no machine is given; use --chip, or put 'attnfuse.target = #attnfuse.target<"sm_80">' on the module}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>) -> tensor<1x8x?x64xf16>
  return %o : tensor<1x8x?x64xf16>
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_75">} {
func.func @unknown_target(%q: tensor<1x8x?x64xf16>) -> tensor<1x8x?x64xf16> {
  // expected-error @+1 {{unknown chip or machine 'sm_75'; known are a100, rtx3090}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
    : (tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>) -> tensor<1x8x?x64xf16>
  return %o : tensor<1x8x?x64xf16>
}
}
