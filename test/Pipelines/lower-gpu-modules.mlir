// RUN: attnfuse-opt %s --attnfuse-lower-gpu-modules | FileCheck %s

// Kernels are lowered completely; the functions beside them, which describe
// what the kernels compute, are left alone.

// CHECK-LABEL: func @described
func.func @described(%a: f32, %n: index) -> f32 {
  // CHECK: arith.addf
  // CHECK: scf.for
  %c1 = arith.constant 1 : index
  %s = arith.addf %a, %a : f32
  %r = scf.for %i = %c1 to %n step %c1 iter_args(%x = %s) -> f32 {
    scf.yield %x : f32
  }
  return %r : f32
}

gpu.module @kernels attributes {attnfuse.manifest = "{}"} {
  // CHECK-LABEL: llvm.func @sum
  llvm.func @sum(%x: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %end = arith.index_cast %n : i64 to index
    // CHECK: llvm.br ^[[LOOP:.*]](%{{.*}}, %{{.*}} : i64, f32)
    // CHECK: ^[[LOOP]](%{{.*}}: i64, %[[SUM:.*]]: f32):
    %s = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %zero) -> (f32) {
      %j = arith.index_cast %i : index to i64
      %p = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %v = llvm.load %p : !llvm.ptr<1> -> f32
      // CHECK: %[[E:.*]] = llvm.intr.exp2
      %e = math.exp2 %v : f32
      // CHECK: llvm.fadd %[[SUM]], %[[E]]
      %m = arith.addf %acc, %e : f32
      scf.yield %m : f32
    }
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %q = llvm.getelementptr %x[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    // CHECK: llvm.store %[[SUM]]
    llvm.store %s, %q : f32, !llvm.ptr<1>
    // CHECK-NOT: unrealized_conversion_cast
    llvm.return
  }
}

// Kernels of someone else have no manifest and are left alone.
// CHECK-LABEL: gpu.module @theirs
// CHECK:         arith.addf
gpu.module @theirs {
  func.func @sum(%x: f32) -> f32 {
    %y = arith.addf %x, %x : f32
    return %y : f32
  }
}
