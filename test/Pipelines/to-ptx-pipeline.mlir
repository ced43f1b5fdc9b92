// Attention among other ops of a module, as another compiler meets it.
//
// RUN: attnfuse-opt %s --pass-pipeline='builtin.module(attnfuse-to-ptx-pipeline{serialize=false})' -o %t.kernels
// RUN: FileCheck %s < %t.kernels
// RUN: attnfuse-opt %s --attnfuse-to-ptx-pipeline -o %t.ptx
// RUN: FileCheck %s --check-prefix=PTX < %t.ptx
//
// Deterministic, with threads too, and idempotent.
// RUN: attnfuse-opt %s --attnfuse-to-ptx-pipeline | diff - %t.ptx
// RUN: attnfuse-opt %s --mlir-disable-threading --attnfuse-to-ptx-pipeline | diff - %t.ptx
// RUN: attnfuse-opt %t.ptx --attnfuse-to-ptx-pipeline | diff - %t.ptx
// RUN: attnfuse-opt %t.kernels --pass-pipeline='builtin.module(attnfuse-to-ptx-pipeline{serialize=false})' | diff - %t.kernels
//
// Functions and kernels without attention are as they were.
// RUN: attnfuse-opt %s -o %t.before
// RUN: sed -n '/@untouched/,/^  }/p' %t.before > %t.func-before
// RUN: sed -n '/@untouched/,/^  }/p' %t.ptx | diff - %t.func-before
// RUN: sed -n '/gpu.module @theirs/,/^  }/p' %t.before > %t.gpu-before
// RUN: sed -n '/gpu.module @theirs/,/^  }/p' %t.ptx | diff - %t.gpu-before
// RUN: grep -c "@" %t.func-before %t.gpu-before | FileCheck %s --check-prefix=GREP
// GREP: func-before:1
// GREP: gpu-before:2
//
// Locations survive.
// RUN: attnfuse-opt %s --attnfuse-to-ptx-pipeline -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOC
// LOC: attnfuse.launch {{.*}} loc(fused[{{.*}}to-ptx-pipeline.mlir":[[#@LINE+23]]:{{.*}}
// LOC: gpu.binary @attnfuse_kernels

module attributes {attnfuse.target = #attnfuse.target<"a100">} {
  // CHECK-LABEL: func.func @block(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x?x512xf16>
  // CHECK:         linalg.generic
  // CHECK:         %[[A:.*]] = attnfuse.launch @attnfuse_kernels_0::@block_attention_0 ins(
  // CHECK-SAME:      {my.layer = 3 : i64}
  // CHECK:         scf.for
  // CHECK:           %[[B:.*]] = attnfuse.launch @attnfuse_kernels_0::@block_attention_1 ins(%{{[^,]*}}, %[[A]] :
  // CHECK:           arith.addf %[[B]]
  // CHECK-NOT:     attnfuse.attention
  func.func @block(%q: tensor<2x8x?x64xf16>, %x: tensor<2x?x512xf16>, %n: index) -> tensor<2x8x?x64xf16> {
    %k = linalg.generic {
        indexing_maps = [affine_map<(b, h, i, d) -> (b, h, i, d)>, affine_map<(b, h, i, d) -> (b, h, i, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%q : tensor<2x8x?x64xf16>) outs(%q : tensor<2x8x?x64xf16>) {
      ^bb0(%in: f16, %out: f16):
        %y = arith.addf %in, %in : f16
        linalg.yield %y : f16
    } -> tensor<2x8x?x64xf16>
    %s = attnfuse.scaled_dot_product %q, %k : tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16> -> tensor<2x8x?x?xf32>
    %p = attnfuse.softmax %s : tensor<2x8x?x?xf32>
    %o = attnfuse.weighted_sum %p, %k {my.layer = 3 : i64} : tensor<2x8x?x?xf32>, tensor<2x8x?x64xf16> -> tensor<2x8x?x64xf16>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%z = %o) -> tensor<2x8x?x64xf16> {
      %s1 = attnfuse.scaled_dot_product %z, %o : tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16> -> tensor<2x8x?x?xf32>
      %m1 = attnfuse.causal %s1 top_left : tensor<2x8x?x?xf32>
      %p1 = attnfuse.softmax %m1 : tensor<2x8x?x?xf32>
      %o1 = attnfuse.weighted_sum %p1, %o : tensor<2x8x?x?xf32>, tensor<2x8x?x64xf16> -> tensor<2x8x?x64xf16>
      %w = arith.addf %o1, %z : tensor<2x8x?x64xf16>
      scf.yield %w : tensor<2x8x?x64xf16>
    }
    return %r : tensor<2x8x?x64xf16>
  }

  func.func @untouched(%x: i32) -> i32 {
    %zero = arith.constant 0 : i32
    %sum = arith.addi %x, %zero : i32
    %quotient = arith.divsi %sum, %sum : i32
    return %quotient : i32
  }

  // The name of a kernel module of this project's is taken by someone else's.
  gpu.module @attnfuse_kernels {
  }
  gpu.module @theirs {
    gpu.func @block_attention_0(%x: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = memref.load %x[%c0] : memref<4xf32>
      %two = arith.addf %v, %v : f32
      memref.store %two, %x[%c0] : memref<4xf32>
      gpu.return
    }
  }

  // A chain that is not fused stays, for convert-attnfuse-to-linalg.
  // CHECK-LABEL: func.func @unfused
  // CHECK:         attnfuse.softmax
  func.func @unfused(%s: tensor<2x8x16x16xf32>) -> tensor<2x8x16x16xf32> {
    %p = attnfuse.softmax %s : tensor<2x8x16x16xf32>
    return %p : tensor<2x8x16x16xf32>
  }

  // One gpu.module has all kernels, with one array of shared memory.
  // CHECK:     gpu.module @attnfuse_kernels_0 attributes {attnfuse.manifest = ["{{.*}}block_attention_0{{.*}}", "{{.*}}block_attention_1{{.*}}"]}
  // CHECK:       llvm.mlir.global external @attnfuse$shared
  // CHECK:       llvm.func @block_attention_0(
  // CHECK-NOT:   llvm.mlir.global
  // CHECK:       llvm.func @block_attention_1(
  // CHECK-NOT:   func.func private

  // PTX:       gpu.binary @attnfuse_kernels_0 {attnfuse.manifest = "{\0A  \22chip\22: \22sm_80\22
  // PTX-SAME:  #gpu.object<#nvvm.target<chip = "sm_80"
  // PTX-SAME:  .entry block_attention_0(
  // PTX-SAME:  .entry block_attention_1(
}
