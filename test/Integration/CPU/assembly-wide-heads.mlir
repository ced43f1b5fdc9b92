// REQUIRES: ptxas
// RUN: attnfuse-compile %s --chip=sm_80 -o %t.ptx
// RUN: %ptxas -v -arch=sm_80 %t.ptx -o %t.cubin 2>&1 | FileCheck %s
// RUN: attnfuse-compile %s --chip=sm_86 -o %t.ptx
// RUN: %ptxas -v -arch=sm_86 %t.ptx -o %t.cubin 2>&1 | FileCheck %s
// RUN: attnfuse-compile %s --chip=sm_90 -o %t.ptx
// RUN: %ptxas -v -arch=sm_90 %t.ptx -o %t.cubin 2>&1 | FileCheck %s
// RUN: attnfuse-compile %s --chip=sm_120 -o %t.ptx
// RUN: %ptxas -v -arch=sm_120 %t.ptx -o %t.cubin 2>&1 | FileCheck %s

// Two row tiles per warp at D = 128, with 128 accumulators of the output, do without local memory.

// CHECK-COUNT-4: {{(^| )}}0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// CHECK-NOT:     bytes stack frame

!t = tensor<?x16x?x128xbf16>

func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax
      schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, key_splits = 1, stages = 2> {scale = 0.088 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, right = 0>] softmax
      schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, key_splits = 1, stages = 2> {scale = 0.088 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @alibi(%q: !t, %k: !t, %v: !t, %slopes: tensor<16xf32>) -> !t {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<bottom_right, right = 0>] softmax
      score operands(%slopes) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %t: tensor<16xf32>):
        %slope = tensor.extract %t[%h] : tensor<16xf32>
        %d = arith.subi %j, %i : index
        %d64 = arith.index_cast %d : index to i64
        %distance = arith.sitofp %d64 : i64 to f32
        %x = arith.mulf %slope, %distance : f32
        %y = arith.addf %s, %x : f32
        attnfuse.yield %y : f32
      } schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, key_splits = 1, stages = 2> {scale = 0.088 : f64} : (!t, !t, !t, tensor<16xf32>) -> !t
  return %o : !t
}

func.func @narrower_values(%q: !t, %k: !t, %v: tensor<?x16x?x96xbf16>) -> tensor<?x16x?x96xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax
      schedule <tile_m = 128, tile_n = 64, warps = 4, q_in_registers = false, key_splits = 1, stages = 2>
      {scale = 0.088 : f64} : (!t, !t, tensor<?x16x?x96xbf16>) -> tensor<?x16x?x96xbf16>
  return %o : tensor<?x16x?x96xbf16>
}
