// RUN: sed s/CHIP/sm_80/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: sed s/CHIP/sm_86/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM86
// RUN: sed s/CHIP/sm_87/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM87
// RUN: sed s/CHIP/sm_89/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM89
// RUN: sed s/CHIP/sm_90/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: sed s/CHIP/sm_100/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: sed s/CHIP/sm_120/ %s | attnfuse-opt --attnfuse-select-schedule | FileCheck %s --check-prefixes=CHECK,SM120

// The tile of every chip for the usual head sizes, and how shapes and masks change it.

module attributes {attnfuse.target = #attnfuse.target<"CHIP">} {
// CHECK-LABEL: func @d8(
// SM80: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM87: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM90: schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = true, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = true, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
func.func @d8(%q: tensor<?x8x?x8xbf16>, %k: tensor<?x8x?x8xbf16>, %v: tensor<?x8x?x8xbf16>) -> tensor<?x8x?x8xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x8xbf16>, tensor<?x8x?x8xbf16>, tensor<?x8x?x8xbf16>) -> tensor<?x8x?x8xbf16>
  return %o : tensor<?x8x?x8xbf16>
}

// CHECK-LABEL: func @d16(
// SM80: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM87: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM90: schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = true, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = true, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
func.func @d16(%q: tensor<?x8x?x16xbf16>, %k: tensor<?x8x?x16xbf16>, %v: tensor<?x8x?x16xbf16>) -> tensor<?x8x?x16xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x16xbf16>, tensor<?x8x?x16xbf16>, tensor<?x8x?x16xbf16>) -> tensor<?x8x?x16xbf16>
  return %o : tensor<?x8x?x16xbf16>
}

// CHECK-LABEL: func @d32(
// CHECK: schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = false, stages = 2>
func.func @d32(%q: tensor<?x8x?x32xbf16>, %k: tensor<?x8x?x32xbf16>, %v: tensor<?x8x?x32xbf16>) -> tensor<?x8x?x32xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x32xbf16>, tensor<?x8x?x32xbf16>, tensor<?x8x?x32xbf16>) -> tensor<?x8x?x32xbf16>
  return %o : tensor<?x8x?x32xbf16>
}

// CHECK-LABEL: func @d64(
// SM80: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM87: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM90: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
func.func @d64(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %v: tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}

// CHECK-LABEL: func @d80(
// SM80: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM87: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM90: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
func.func @d80(%q: tensor<?x8x?x80xbf16>, %k: tensor<?x8x?x80xbf16>, %v: tensor<?x8x?x80xbf16>) -> tensor<?x8x?x80xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x80xbf16>, tensor<?x8x?x80xbf16>, tensor<?x8x?x80xbf16>) -> tensor<?x8x?x80xbf16>
  return %o : tensor<?x8x?x80xbf16>
}

// CHECK-LABEL: func @d96(
// SM80: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 128, tile_n = 16, warps = 8, q_in_registers = false, stages = 2>
// SM87: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 128, tile_n = 16, warps = 8, q_in_registers = false, stages = 2>
// SM90: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 16, warps = 8, q_in_registers = false, stages = 2>
func.func @d96(%q: tensor<?x8x?x96xbf16>, %k: tensor<?x8x?x96xbf16>, %v: tensor<?x8x?x96xbf16>) -> tensor<?x8x?x96xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x96xbf16>, tensor<?x8x?x96xbf16>, tensor<?x8x?x96xbf16>) -> tensor<?x8x?x96xbf16>
  return %o : tensor<?x8x?x96xbf16>
}

// CHECK-LABEL: func @d128(
// SM80: schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 64, tile_n = 32, warps = 4, q_in_registers = false>
// SM87: schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 64, tile_n = 32, warps = 4, q_in_registers = false>
// SM90: schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, stages = 2>
// SM120: schedule <tile_m = 64, tile_n = 32, warps = 4, q_in_registers = false>
func.func @d128(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}

// CHECK-LABEL: func @d192(
// CHECK: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
func.func @d192(%q: tensor<?x8x?x192xbf16>, %k: tensor<?x8x?x192xbf16>, %v: tensor<?x8x?x192xbf16>) -> tensor<?x8x?x192xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x192xbf16>, tensor<?x8x?x192xbf16>, tensor<?x8x?x192xbf16>) -> tensor<?x8x?x192xbf16>
  return %o : tensor<?x8x?x192xbf16>
}

// CHECK-LABEL: func @d256(
// SM80: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM86: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false>
// SM87: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM89: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false>
// SM90: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = false>
func.func @d256(%q: tensor<?x8x?x256xbf16>, %k: tensor<?x8x?x256xbf16>, %v: tensor<?x8x?x256xbf16>) -> tensor<?x8x?x256xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x256xbf16>, tensor<?x8x?x256xbf16>, tensor<?x8x?x256xbf16>) -> tensor<?x8x?x256xbf16>
  return %o : tensor<?x8x?x256xbf16>
}

// CHECK-LABEL: func @d192_128(
// SM80: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false>
// SM86: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = true, stages = 2>
// SM87: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false>
// SM89: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = true, stages = 2>
// SM90: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM100: schedule <tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>
// SM120: schedule <tile_m = 128, tile_n = 32, warps = 8, q_in_registers = true, stages = 2>
func.func @d192_128(%q: tensor<?x8x?x192xf16>, %k: tensor<?x8x?x192xf16>, %v: tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x?x192xf16>, tensor<?x8x?x192xf16>, tensor<?x8x?x128xf16>) -> tensor<?x8x?x128xf16>
  return %o : tensor<?x8x?x128xf16>
}

// CHECK-LABEL: func @decode(
// CHECK: schedule <tile_m = 16, tile_n = 32, warps = 1, q_in_registers = true>
func.func @decode(%q: tensor<?x8x1x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x1x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x1x128xbf16>
  return %o : tensor<?x8x1x128xbf16>
}

// CHECK-LABEL: func @cross(
// CHECK: schedule <tile_m = 64, tile_n = 32, warps = 4, q_in_registers = true>
func.func @cross(%q: tensor<?x8x40x64xbf16>, %k: tensor<?x8x20x64xbf16>, %v: tensor<?x8x20x64xbf16>) -> tensor<?x8x40x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.125 : f64} : (tensor<?x8x40x64xbf16>, tensor<?x8x20x64xbf16>, tensor<?x8x20x64xbf16>) -> tensor<?x8x40x64xbf16>
  return %o : tensor<?x8x40x64xbf16>
}

// CHECK-LABEL: func @window(
// CHECK: schedule <tile_m = 64, tile_n = 16, warps = 2, q_in_registers = false, stages = 2>
func.func @window(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x8x?x64xbf16>, %v: tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, left = 15, right = 0>] softmax {scale = 0.125 : f64} : (tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}

// CHECK-LABEL: func @blocks(
// SM80: schedule <tile_m = 32, tile_n = 32, warps = 2, q_in_registers = false>
// SM86: schedule <tile_m = 32, tile_n = 16, warps = 2, q_in_registers = true, stages = 2>
// SM87: schedule <tile_m = 32, tile_n = 32, warps = 2, q_in_registers = false>
// SM89: schedule <tile_m = 32, tile_n = 16, warps = 2, q_in_registers = true, stages = 2>
// SM90: schedule <tile_m = 32, tile_n = 64, warps = 2, q_in_registers = false>
// SM100: schedule <tile_m = 32, tile_n = 64, warps = 2, q_in_registers = false>
// SM120: schedule <tile_m = 32, tile_n = 16, warps = 2, q_in_registers = true, stages = 2>
func.func @blocks(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>, %r: tensor<?xi32>, %c: tensor<?xi32>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) blocks <32x64>(%r, %c) softmax {scale = 0.125 : f64} : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}

}
