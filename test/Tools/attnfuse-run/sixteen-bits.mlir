// Score ops on values of 16 bits, for which the C library has no functions.

// RUN: attnfuse-run %s --random=1 --check | FileCheck %s
// RUN: sed -e s/bf16/f16/g %s > %t.mlir
// RUN: attnfuse-run %t.mlir --random=1 --check | FileCheck %s
// CHECK: 3 passed, 0 failed

func.func @sqrt(%q: tensor<1x2x8x16xbf16>, %k: tensor<1x2x8x16xbf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %t = arith.truncf %s : f32 to bf16
        %a = math.absf %t : bf16
        %r = math.sqrt %a : bf16
        %y = arith.extf %r : bf16 to f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16>
  return %o : tensor<1x2x8x16xbf16>
}

func.func @calls(%q: tensor<1x2x8x16xbf16>, %k: tensor<1x2x8x16xbf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %t = arith.truncf %s : f32 to bf16
        %a = math.tanh %t : bf16
        %e = math.exp %a : bf16
        %l = math.log %e : bf16
        %f = math.erf %l : bf16
        %p = math.powf %e, %f : bf16
        %c = math.cos %p : bf16
        %y = arith.extf %c : bf16 to f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16>
  return %o : tensor<1x2x8x16xbf16>
}

func.func @arithmetic(%q: tensor<1x2x8x16xbf16>, %k: tensor<1x2x8x16xbf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %n = arith.index_cast %j : index to i32
        %x = arith.sitofp %n : i32 to bf16
        %t = arith.truncf %s : f32 to bf16
        %m = arith.mulf %t, %x : bf16
        %d = arith.subf %m, %t : bf16
        %f = math.fma %d, %t, %m : bf16
        %g = arith.minimumf %f, %m : bf16
        %z = arith.extf %g : bf16 to f64
        %w = arith.truncf %z : f64 to f32
        attnfuse.yield %w : f32
      } {scale = 0.25 : f64}
      : (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16>
  return %o : tensor<1x2x8x16xbf16>
}
