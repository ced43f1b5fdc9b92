// RUN: attnfuse-compile %s --chip=sm_80 | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: attnfuse-compile %s --chip=sm_86 | FileCheck %s --check-prefixes=CHECK,SM86
// RUN: attnfuse-compile %s --chip=sm_87 | FileCheck %s --check-prefixes=CHECK,SM87
// RUN: attnfuse-compile %s --chip=l4 | FileCheck %s --check-prefixes=CHECK,SM89
// RUN: attnfuse-compile %s --chip=sm_90 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: attnfuse-compile %s --chip=h200 | FileCheck %s --check-prefixes=CHECK,SM90A
// RUN: attnfuse-compile %s --chip=sm_100 | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: attnfuse-compile %s --chip=sm_120 | FileCheck %s --check-prefixes=CHECK,SM120
// RUN: attnfuse-compile %s | FileCheck %s --check-prefixes=CHECK,OWN

// The kernels of all gpu.modules in one text, for the chip and the PTX version
// of the machine. Dynamic shared memory is one external array for all.

// SM80: .version 8.0
// SM80: .target sm_80{{$}}
// SM86: .version 8.0
// SM86: .target sm_86
// SM87: .version 8.0
// SM87: .target sm_87
// SM89: .version 8.0
// SM89: .target sm_89
// SM90: .version 8.0
// SM90: .target sm_90{{$}}
// SM90A: .version 8.0
// SM90A: .target sm_90a
// SM100: .version 8.6
// SM100: .target sm_100
// SM120: .version 8.7
// SM120: .target sm_120
// OWN: .version 8.3
// OWN: .target sm_86
// CHECK: .extern .shared .align 16 .b8 smem[];
// CHECK: .visible .entry first(
// CHECK: .reqntid 128, 1, 1
// CHECK: ld.shared.b32
// CHECK: .visible .entry second(
// CHECK: .reqntid 64, 1, 1
// No loop is unrolled.
// CHECK: ex2.approx.f32
// CHECK-NOT: ex2.approx.f32

module attributes {attnfuse.target = #attnfuse.target<"mine", {chip = "sm_86", ptx_version = 83 : i64}>} {
  gpu.module @first_module attributes {attnfuse.manifest = "{}"} {
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @first(%y: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %p = llvm.getelementptr %smem[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %v = llvm.load %p : !llvm.ptr<3> -> f32
      llvm.store %v, %y : f32, !llvm.ptr<1>
      llvm.return
    }
  }
  gpu.module @second_module attributes {attnfuse.manifest = "{}"} {
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @second(%x: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %zero = arith.constant 0.0 : f32
      %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i64 {
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %v = llvm.load %p : !llvm.ptr<1> -> f32
        %e = math.exp2 %v : f32
        %m = arith.addf %acc, %e : f32
        scf.yield %m : f32
      }
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      llvm.store %s, %smem : f32, !llvm.ptr<3>
      llvm.store %s, %x : f32, !llvm.ptr<1>
      llvm.return
    }
  }
}
