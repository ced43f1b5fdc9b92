// The whole way to a device, by a driver that launches nothing: poisoned
// results are not taken for right ones.

// RUN: rm -rf %t && mkdir %t && ln -s %builddir/unittests/Runtime/AttnFuseFakeCuda.so %t/libcuda.so.1
// RUN: env LD_LIBRARY_PATH=%t not attnfuse-run %s --device=cuda --random=1 --check --time | FileCheck %s
// CHECK: attend: fused scaled_dot_product, softmax, weighted_sum into one attention (softmax)
// CHECK-NEXT: attend [B=2, Nq=100, Nkv=100] on cuda:0 (Fake GPU)
// CHECK-NEXT: output: {{.*}}: FAIL at [0, 0, 0, 0]: got {{-?}}nan, expected {{.*}} (12800 of NaN or infinity differ)
// CHECK-NEXT: time: median 1500 us, min 1500 us of 66 runs; {{.*}}; back to back {{.*}} us
// CHECK: 0 passed, 1 failed

// RUN: env LD_LIBRARY_PATH=%t not attnfuse-run %s --device=cuda:7 --random=1 2>&1 | FileCheck %s --check-prefix=ORDINAL
// ORDINAL: attnfuse-run: error: {{.*}}7

// RUN: env LD_LIBRARY_PATH=%t not attnfuse-run %s --device=cuda --chip=sm_90 --random=1 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: attnfuse-run: error: {{.*}}sm_90

func.func @attend(%q: tensor<?x4x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>) -> tensor<?x4x?x16xf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x4x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x4x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x16xf16> -> tensor<?x4x?x16xf16>
  return %o : tensor<?x4x?x16xf16>
}
