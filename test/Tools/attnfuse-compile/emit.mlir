// RUN: attnfuse-compile %s --chip=sm_80 --emit=schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: attnfuse-compile %s --chip=sm_80 --emit=nvvm | FileCheck %s --check-prefix=NVVM
// RUN: attnfuse-compile %s --chip=sm_80 --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: attnfuse-compile %s --emit=fused | FileCheck %s --check-prefix=FUSED
// RUN: attnfuse-compile %s --emit=linalg | FileCheck %s --check-prefix=LINALG
// RUN: attnfuse-compile - --chip=h200 < %s | FileCheck %s --check-prefix=PTX

// The module's own target serves where no chip is given, and the option wins.
// RUN: attnfuse-compile %s | FileCheck %s --check-prefix=OWN

// The manifest lies beside the output, also in a folder whose name has a dot;
// not beside a stage that has none.
// RUN: rm -rf %t && mkdir -p %t/a.b
// RUN: attnfuse-compile %s --chip=sm_80 -o %t/a.b/kernel
// RUN: FileCheck %s --check-prefix=MANIFEST < %t/a.b/kernel.json
// RUN: attnfuse-compile %s --chip=sm_80 --emit=llvm -o %t/only.ll
// RUN: not ls %t/only.json
// RUN: ls %t/a.b | not grep tmp

// FUSED: attnfuse.attention
// FUSED-NOT: schedule <
// LINALG-NOT: attnfuse.softmax
// LINALG: linalg.generic
// SCHEDULE: module attributes {attnfuse.target = #attnfuse.target<"sm_80">}
// SCHEDULE: attnfuse.attention {{.*}}softmax schedule <tile_m
// SCHEDULE-NOT: gpu.module
// NVVM: gpu.module @f_kernels
// NVVM: nvvm.mma.sync
// NVVM: func.func @no_attention
// LLVM: target triple = "nvptx64-nvidia-cuda"
// LLVM: define ptx_kernel void @f(
// PTX: .target sm_90a
// PTX: .visible .entry f(
// PTX: mma.sync.aligned.m16n8k16
// PTX-NOT: __nv_
// OWN: .target sm_89
// MANIFEST: "chip": "sm_80"
// MANIFEST: "role": "query"
// MANIFEST: "shared_memory"
// MANIFEST-NOT: no_attention
// MANIFEST: "version": 1

module attributes {attnfuse.target = #attnfuse.target<"l4", {sm_count = 20 : i64}>} {
func.func @f(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
// Not the compiler's business: no kernel, and no error.
func.func @no_attention(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %sum = arith.addf %x, %y : tensor<4xf32>
  return %sum : tensor<4xf32>
}
}
