// A module without attention, and without a target, is not touched.
//
// RUN: attnfuse-opt %s -o %t.before
// RUN: attnfuse-opt %s --attnfuse-to-ptx-pipeline | diff - %t.before
// RUN: attnfuse-opt %s --attnfuse-gpu-pipeline | diff - %t.before
// RUN: attnfuse-opt %s --convert-attnfuse-to-linalg | diff - %t.before
// RUN: attnfuse-opt %s --convert-attnfuse-launch-to-runtime | diff - %t.before
// RUN: FileCheck %s < %t.before

// CHECK: arith.divsi
func.func @f(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %x, %zero : i32
  %quotient = arith.divsi %sum, %sum : i32
  return %quotient : i32
}
gpu.module @theirs {
  gpu.func @g(%x: f32) kernel {
    %y = arith.addf %x, %x : f32
    gpu.return
  }
}
gpu.binary @also_theirs [#gpu.object<#nvvm.target, "code">]
