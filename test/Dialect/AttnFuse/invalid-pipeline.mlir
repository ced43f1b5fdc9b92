// RUN: attnfuse-opt %s --attnfuse-select-schedule --split-input-file --verify-diagnostics

// expected-error @below {{expected 2, 4 or 8 stages, got 3}}
#bad = #attnfuse.pipeline<stages = 3, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>

// -----

// expected-error @below {{expected 1 to 4 partial_sums, got 5}}
#bad = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 5, partial_maxima = 1, skip_rescale = false, product_wait = end>

// -----

// expected-error @below {{expected 1 to 4 partial_maxima, got 0}}
#bad = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 0, skip_rescale = false, product_wait = end>

// -----

// expected-error @below {{expected row_order = rows for product_wait = between_rows, got joint}}
#bad = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = between_rows>

// -----

#pipeline = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>
// expected-error @below {{expected 4, 8 or 12 warps with a pipeline, got 2}}
#bad = #attnfuse.schedule<tile_m = 32, tile_n = 64, warps = 2, q_in_registers = false, pipeline = #pipeline>

// -----

#pipeline = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>
// expected-error @below {{expected tile_m to be 16 rows for each of 4 warps with a pipeline, got 128}}
#bad = #attnfuse.schedule<tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, pipeline = #pipeline>

// -----

#pipeline = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>
// expected-error @below {{expected tile_n to be at most 256 with a pipeline, got 272}}
#bad = #attnfuse.schedule<tile_m = 64, tile_n = 272, warps = 4, q_in_registers = false, pipeline = #pipeline>

// -----

#pipeline = #attnfuse.pipeline<stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>
// expected-error @below {{expected no stages beside those of the pipeline, got 2}}
#bad = #attnfuse.schedule<tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, stages = 2, pipeline = #pipeline>

// -----

// expected-error @below {{expected 1 to 4 stages, got 0}}
#bad = #attnfuse.schedule<tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, stages = 0>

// -----

// expected-error @below {{expected 1 to 4 stages, got 5}}
#bad = #attnfuse.schedule<tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 2, stages = 5>

// -----

// expected-error @+1 {{expected 'key_splits', 'packed_heads', 'stages' or 'pipeline', each once}}
#bad = #attnfuse.schedule<tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, stages = 2, stages = 2>

// -----

// Limits of the machine.

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
func.func @no_wgmma(%q: tensor<?x1x?x64xf16>) -> tensor<?x1x?x64xf16> {
  // expected-error @below {{expected a schedule without a pipeline for sm_80, which has no warpgroup-wide MMA}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>) -> tensor<?x1x?x64xf16>
  return %o : tensor<?x1x?x64xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
func.func @registers(%q: tensor<?x1x?x128xf16>) -> tensor<?x1x?x128xf16> {
  // expected-error @below {{the schedule needs about 192 registers per computing thread, 12 warps and a pipeline leave 160; use a smaller tile_n or fewer warps}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 192, tile_n = 128, warps = 12, q_in_registers = false, pipeline = <stages = 2, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x1x?x128xf16>, tensor<?x1x?x128xf16>, tensor<?x1x?x128xf16>) -> tensor<?x1x?x128xf16>
  return %o : tensor<?x1x?x128xf16>
}
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
func.func @shared_memory(%q: tensor<?x1x?x64xf16>) -> tensor<?x1x?x64xf16> {
  // expected-error @below {{bytes of shared memory per block, sm_90a has 232448; use a smaller tile_m or tile_n}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 128, warps = 4, q_in_registers = false, pipeline = <stages = 8, ping_pong = true, row_order = joint, partial_sums = 1, partial_maxima = 1, skip_rescale = false, product_wait = end>> {scale = 0.125 : f64} : (tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>) -> tensor<?x1x?x64xf16>
  return %o : tensor<?x1x?x64xf16>
}
}
