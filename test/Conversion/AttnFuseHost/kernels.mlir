// RUN: attnfuse-opt %s --attnfuse-merge-kernels --split-input-file --verify-diagnostics | FileCheck %s

// Later kernels join earlier ones. A launch in a module inside keeps to its own.
// CHECK-LABEL: module @join
// CHECK-NOT:     gpu.module @b
// CHECK:         gpu.module @a attributes {attnfuse.manifest = ["one", "two"]} {
// CHECK:           llvm.mlir.global external @attnfuse$shared
// CHECK:           llvm.func @f()
// CHECK-NOT:       llvm.mlir.global
// CHECK:           llvm.func @g()
// CHECK:         gpu.module @theirs
// CHECK:         attnfuse.launch @a::@f
// CHECK:         attnfuse.launch @a::@g
// CHECK:         module @inner
// CHECK:           attnfuse.launch @b::@g
module @join {
  gpu.module @a attributes {attnfuse.manifest = ["one"]} {
    llvm.mlir.global external @attnfuse$shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    llvm.func @f()
  }
  gpu.module @b attributes {attnfuse.manifest = "two"} {
    llvm.mlir.global external @attnfuse$shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    llvm.func @g()
  }
  gpu.module @theirs {
  }
  func.func @host(%x: memref<4xf16>) {
    attnfuse.launch @a::@f outs(%x : memref<4xf16>)
    attnfuse.launch @b::@g outs(%x : memref<4xf16>)
    return
  }
  module @inner {
    gpu.module @b attributes {attnfuse.manifest = "three"} {
    }
    func.func @host(%x: memref<4xf16>) {
      attnfuse.launch @b::@g outs(%x : memref<4xf16>)
      return
    }
  }
}

// -----

gpu.module @a attributes {attnfuse.manifest = "one"} {
  // expected-note @+1 {{the other one}}
  llvm.func @f()
}
gpu.module @b attributes {attnfuse.manifest = "two"} {
  // expected-error @+1 {{expected kernels of different names in one module, got two 'f'}}
  llvm.func @f(i32)
}
