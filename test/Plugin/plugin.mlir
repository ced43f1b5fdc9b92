// The plugin in the distribution's mlir-opt does what attnfuse-opt does.
//
// RUN: %mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s \
// RUN:   --pass-pipeline='builtin.module(canonicalize,func.func(attnfuse-fuse))' > %t.fused
// RUN: attnfuse-opt %s --pass-pipeline='builtin.module(canonicalize,func.func(attnfuse-fuse))' | diff - %t.fused
// RUN: FileCheck %s --check-prefix=FUSED < %t.fused
// RUN: %mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s \
// RUN:   --pass-pipeline='builtin.module(attnfuse-gpu-pipeline)' > %t.gpu
// RUN: attnfuse-opt %s --attnfuse-gpu-pipeline | diff - %t.gpu
// RUN: FileCheck %s --check-prefix=GPU < %t.gpu
// RUN: %mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s \
// RUN:   --pass-pipeline='builtin.module(attnfuse-cpu-pipeline)' > %t.cpu
// RUN: attnfuse-opt %s --attnfuse-cpu-pipeline | diff - %t.cpu
// RUN: FileCheck %s --check-prefix=CPU < %t.cpu
//
// An error is the pass's own.
// RUN: not %mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s \
// RUN:   --pass-pipeline='builtin.module(convert-attnfuse-to-gpu)' 2>&1 | FileCheck %s --check-prefix=ERROR

// FUSED-LABEL: func.func @bert
// FUSED:       attnfuse.attention q(%{{.*}}) k(%{{.*}}) v(%{{.*}}) softmax
// GPU:         gpu.module @bert_kernels
// GPU:         llvm.func @bert({{.*}}nvvm.kernel
// CPU:         llvm.func @bert(
// CPU-NOT:     attnfuse.
// ERROR:       error: not part of one attnfuse.attention
module attributes {attnfuse.target = #attnfuse.target<"a100">} {
  func.func @bert(%q: tensor<?x12x?x64xf16>, %k: tensor<?x12x?x64xf16>,
                  %v: tensor<?x12x?x64xf16>) -> tensor<?x12x?x64xf16> {
    %s = attnfuse.scaled_dot_product %q, %k
        : tensor<?x12x?x64xf16>, tensor<?x12x?x64xf16> -> tensor<?x12x?x?xf32>
    %p = attnfuse.softmax %s : tensor<?x12x?x?xf32>
    %o = attnfuse.weighted_sum %p, %v
        : tensor<?x12x?x?xf32>, tensor<?x12x?x64xf16> -> tensor<?x12x?x64xf16>
    return %o : tensor<?x12x?x64xf16>
  }
}
