// A function may have any name: also one that compiled code calls, or that of our own entry.

// RUN: attnfuse-run %s --random=1 --check | FileCheck %s
// CHECK: 12 passed, 0 failed

!t = tensor<1x2x3x8xf16>

func.func @expf(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @exp(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @tanhf(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @memcpy(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @memset(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @malloc(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @free(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @memrefCopy(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @attnfuse_entry(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @_mlir_ciface_expf(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @_mlir_memref_to_llvm_alloc(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @"a b"(%q: !t) -> !t {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %y = math.tanh %s : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64} : (!t, !t, !t) -> !t
  return %o : !t
}
