// RUN: attnfuse-opt %s --convert-attnfuse-to-gpu --split-input-file --verify-diagnostics | FileCheck %s
// Kernels that are there are not made again.
// RUN: attnfuse-opt %S/Inputs/scheduled.mlir --convert-attnfuse-to-gpu -o %t.once
// RUN: attnfuse-opt %S/Inputs/scheduled.mlir --convert-attnfuse-to-gpu --convert-attnfuse-to-gpu | diff - %t.once

// A launched private function goes, one with other uses stays.
// CHECK-LABEL: func.func @host
// CHECK:         attnfuse.launch @k_kernels::@k
// CHECK:         attnfuse.launch @used
// CHECK-NOT:   func.func private @k(
// CHECK:       gpu.module @k_kernels
// CHECK:       func.func private @used(
// CHECK:       gpu.module @used_kernels
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  func.func @host(%q: tensor<1x2x64x64xf16>) -> (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) {
    %a = attnfuse.launch @k ins(%q : tensor<1x2x64x64xf16>) outs(%q : tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    %b = attnfuse.launch @used ins(%q : tensor<1x2x64x64xf16>) outs(%q : tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    %c = func.call @used(%q) : (tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %a, %b, %c : tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>
  }
  func.func private @k(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax
        schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = true> {scale = 0.125 : f64}
        : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %o : tensor<1x2x64x64xf16>
  }
  func.func private @used(%q: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
    %o = attnfuse.attention q(%q) k(%q) v(%q) softmax
        schedule <tile_m = 64, tile_n = 64, warps = 4, q_in_registers = true> {scale = 0.125 : f64}
        : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
    return %o : tensor<1x2x64x64xf16>
  }
}

// -----

func.func @host(%q: tensor<4xf16>) -> tensor<4xf16> {
  %a = attnfuse.launch @k outs(%q : tensor<4xf16>) -> tensor<4xf16>
  return %a : tensor<4xf16>
}
// expected-error @+1 {{expected an attnfuse.attention in 'k'}}
func.func private @k() -> tensor<4xf16> {
  %c = arith.constant dense<0.0> : tensor<4xf16>
  return %c : tensor<4xf16>
}
