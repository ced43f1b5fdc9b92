// Tables that rotate q in registers take shared memory, for 32 positions two rows of 288 bytes, if the
// kernel rotates q at all.
// RUN: attnfuse-compile %s --chip=h200 --key-splits=1 --rotation=split --explain --emit=schedule -o %t.here > %t.txt
// RUN: attnfuse-compile %s --chip=h200 --key-splits=1 --rotation=split_both --explain --emit=schedule -o %t.before >> %t.txt
// RUN: FileCheck %s < %t.txt

// CHECK: rotates q in the kernel
// CHECK: tile: 32 queries of each of 4 heads
// CHECK: takes: [[#TAKES:]] bytes of shared memory
// CHECK: rotates q before it
// CHECK: tile: 32 queries of each of 4 heads
// CHECK: takes: [[#TAKES - 18432]] bytes of shared memory

func.func @tables(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %v: tensor<?x8x?x128xbf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x32x?x128xbf16> {
  %qr = attnfuse.rope %q, %cos, %sin half : tensor<?x32x?x128xbf16>, tensor<?x64xf32>, tensor<?x64xf32>
  %s = attnfuse.scaled_dot_product %qr, %k : tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x32x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x32x?x?xf32>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}
