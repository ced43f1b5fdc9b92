// REQUIRES: ptxas
// RUN: attnfuse-compile %s --chip=sm_80 --key-splits=1 -o %t.ptx
// RUN: %ptxas -v -arch=sm_80 %t.ptx -o %t.cubin 2>&1 | FileCheck %s
// RUN: attnfuse-compile %s --chip=sm_90 --key-splits=1 -o %t.ptx
// RUN: %ptxas -v -arch=sm_90 %t.ptx -o %t.cubin 2>&1 | FileCheck %s

// Lengths that LLVM knows are no reason to keep an address of each load beside the loop over the keys:
// biases, which are loaded element by element, leave at most some 100 bytes of spills (1172 and 492
// bytes, when they did).

// CHECK: Compiling entry function 'wide_bias'
// CHECK: stack frame, {{[0-9]?[0-9]|1[01][0-9]}} bytes spill stores
// CHECK: Compiling entry function 'narrow_bias'
// CHECK: stack frame, 0 bytes spill stores
// CHECK-NOT: bytes spill stores

func.func @narrow_bias(%q: tensor<?x16x512x128xbf16>, %bias: tensor<1x16x512x512xbf16>) -> tensor<?x16x512x128xbf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x16x512x128xbf16>, tensor<?x16x512x128xbf16> -> tensor<?x16x512x512xf32>
  %b = attnfuse.additive_bias %s, %bias : tensor<?x16x512x512xf32>, tensor<1x16x512x512xbf16>
  %p = attnfuse.softmax %b : tensor<?x16x512x512xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x16x512x512xf32>, tensor<?x16x512x128xbf16> -> tensor<?x16x512x128xbf16>
  return %o : tensor<?x16x512x128xbf16>
}

func.func @wide_bias(%q: tensor<?x16x512x96xbf16>, %bias: tensor<1x16x512x512xf32>) -> tensor<?x16x512x96xbf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x16x512x96xbf16>, tensor<?x16x512x96xbf16> -> tensor<?x16x512x512xf32>
  %b = attnfuse.additive_bias %s, %bias : tensor<?x16x512x512xf32>, tensor<1x16x512x512xf32>
  %p = attnfuse.softmax %b : tensor<?x16x512x512xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x16x512x512xf32>, tensor<?x16x512x96xbf16> -> tensor<?x16x512x96xbf16>
  return %o : tensor<?x16x512x96xbf16>
}
