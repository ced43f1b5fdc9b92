// RUN: attnfuse-opt %s --attnfuse-select-schedule | FileCheck %s --check-prefix=OPEN
// RUN: attnfuse-opt %s --attnfuse-select-schedule=key-splits=4 | FileCheck %s --check-prefix=GIVEN
// RUN: not attnfuse-opt %s --attnfuse-select-schedule=key-splits=1025 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not attnfuse-opt %s --attnfuse-select-schedule=key-splits=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: sed 's/key_splits = 7/key_splits = 1025/' %s | not attnfuse-opt 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: sed 's/key_splits = 7/key_splits = x/' %s | not attnfuse-opt 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: sed 's/key_splits = 7/parts = 7/' %s | not attnfuse-opt 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed 's/key_splits = 7/key_splits = 7, key_splits = 7/' %s | not attnfuse-opt 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed 's/key_splits = 7/stages = 2, key_splits = 7/' %s | attnfuse-opt | FileCheck %s --check-prefix=ORDER
// RUN: sed 's/key_splits = 7/pipeline = <stages = 2, ping_pong = true, row_order = rows, partial_sums = 1, partial_maxima = 1, skip_rescale = true, product_wait = end>, key_splits = 7/' %s | attnfuse-opt | FileCheck %s --check-prefix=PIPELINE

// PIPELINE: q_in_registers = false, key_splits = 7, pipeline = <
// ORDER: q_in_registers = false, key_splits = 7, stages = 2>

// The schedule says over how many blocks keys are spread; the pass fills in what is left open.

// MANY: error: expected 'key-splits' from 0 to 1024, got 1025
// NEGATIVE: error: expected 'key-splits' from 0 to 1024, got -1
// ATTRIBUTE: error: {{.*}}expected key_splits from 0 to 1024, got 1025
// MALFORMED: error: {{.*}}expected integer value
// UNKNOWN: error: {{.*}}expected 'key_splits', 'packed_heads', 'stages' or 'pipeline', each once

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// OPEN-LABEL: func.func @chosen
// OPEN:         schedule <tile_m = 128, tile_n = 128, warps = 8, q_in_registers = true, pipeline = <
// GIVEN-LABEL: func.func @chosen
// GIVEN:        schedule <tile_m = 128, tile_n = 128, warps = 8, q_in_registers = true, key_splits = 4, pipeline = <
func.func @chosen(%q: tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}

// OPEN-LABEL: func.func @asked_for
// OPEN:         schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 7>
// GIVEN-LABEL: func.func @asked_for
// GIVEN:        schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 7>
func.func @asked_for(%q: tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 7> {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}

// OPEN-LABEL: func.func @half_open
// OPEN:         schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false>
// GIVEN-LABEL: func.func @half_open
// GIVEN:        schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 4>
func.func @half_open(%q: tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = false> {scale = 0.125 : f64} : (tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}
}
