// RUN: attnfuse-opt %s --attnfuse-cpu-pipeline | FileCheck %s

// Nothing but the LLVM dialect is left, every buffer but the result is released, and
// bf16 is converted without calls of a run-time library.

// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_alloc(i64) -> !llvm.ptr
// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_free(!llvm.ptr)
// CHECK-LABEL: llvm.func @decode(
func.func @decode(%q: tensor<?x8x1x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>)
    -> tensor<?x8x1x64xbf16> {
  // CHECK-NOT: llvm.fptrunc
  // CHECK: llvm.call @_mlir_memref_to_llvm_alloc
  // CHECK: llvm.intr.exp
  // CHECK: llvm.call @_mlir_memref_to_llvm_free
  // CHECK-NOT: unrealized_conversion_cast
  // CHECK: llvm.return
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x8x1x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x1x?xf32>
  %m = attnfuse.causal %s bottom_right : tensor<?x8x1x?xf32>
  %p = attnfuse.softmax %m : tensor<?x8x1x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x8x1x?xf32>, tensor<?x2x?x64xbf16> -> tensor<?x8x1x64xbf16>
  return %o : tensor<?x8x1x64xbf16>
}
