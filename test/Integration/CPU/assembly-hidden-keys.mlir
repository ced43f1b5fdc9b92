// REQUIRES: ptxas
// RUN: attnfuse-compile %s --chip=sm_90a -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin 2>&1 | FileCheck %s

// Keys of a first tile that are hidden whatever the sizes, as those past a length that the types have or
// those that a score region skips, leave accumulators that nothing reads. The products stay whole.

// CHECK-NOT: (C75{{0[0-9]|1[0-8]|20}})
// CHECK:     Compiling entry function 'ends'
// CHECK-NOT: (C75{{0[0-9]|1[0-8]|20}})
// CHECK:     Compiling entry function 'skips'
// CHECK-NOT: (C75{{0[0-9]|1[0-8]|20}})

func.func @skips(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
    %c2 = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %r = arith.remui %j, %c2 : index
    %even = arith.cmpi eq, %r, %c0 : index
    %inf = arith.constant 0xFF800000 : f32
    %x = arith.select %even, %s, %inf : f32
    attnfuse.yield %x : f32
  } {scale = 0.125 : f64} : (tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>) -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}

func.func @ends(%q: tensor<?x8x1000x128xf16>) -> tensor<?x8x1000x128xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<?x8x1000x128xf16>, tensor<?x8x1000x128xf16>, tensor<?x8x1000x128xf16>) -> tensor<?x8x1000x128xf16>
  return %o : tensor<?x8x1000x128xf16>
}
