// RUN: rm -rf %t && split-file %s %t
// RUN: not attnfuse-compile %t/intrinsic.mlir -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=INTRINSIC
// RUN: not attnfuse-compile %t/unlowered.mlir -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=UNLOWERED
// RUN: not attnfuse-compile %t/manifest.mlir -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=MANIFEST
// RUN: not attnfuse-compile %t/duplicate.mlir -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=DUPLICATE
// RUN: ls %t | not grep out

// What the code generator would abort on is refused before, by name and place.

// INTRINSIC: attnfuse-compile: error: {{.*}}intrinsic.mlir:4:10: 'llvm.intr.sin' in a kernel has no lowering for the GPU; express it by other ops, or execute on the CPU
// UNLOWERED: attnfuse-compile: error: {{.*}}unlowered.mlir:5:12: 'tensor.empty' in a kernel has no lowering for the GPU
// Kernels without a manifest are someone else's.
// MANIFEST: attnfuse-compile: error: the module has no function with a body
// DUPLICATE: attnfuse-compile: error: cannot combine the kernels of 'b' with the others: {{.*}}multiply defined

//--- intrinsic.mlir
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  gpu.module @k attributes {attnfuse.manifest = "{}"} {
    llvm.func @f(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %y = math.sin %x : f32
    llvm.store %y, %p : f32, !llvm.ptr<1>
    llvm.return
    }
  }
}

//--- unlowered.mlir
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  gpu.module @k attributes {attnfuse.manifest = "{}"} {
    llvm.func @f(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
      %i = arith.constant 2 : index
      %t = tensor.empty() : tensor<4xf32>
      %y = tensor.extract %t[%i] : tensor<4xf32>
      llvm.store %y, %p : f32, !llvm.ptr<1>
      llvm.return
    }
  }
}

//--- manifest.mlir
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  gpu.module @k {
    llvm.func @f() attributes {nvvm.kernel} {
      llvm.return
    }
  }
}

//--- duplicate.mlir
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  gpu.module @a attributes {attnfuse.manifest = "{}"} {
    llvm.func @f() attributes {nvvm.kernel} {
      llvm.return
    }
  }
  gpu.module @b attributes {attnfuse.manifest = "{}"} {
    llvm.func @f() attributes {nvvm.kernel} {
      llvm.return
    }
  }
}
