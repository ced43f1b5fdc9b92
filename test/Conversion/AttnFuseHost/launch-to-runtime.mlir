// RUN: attnfuse-opt %s --convert-attnfuse-launch-to-runtime --split-input-file --verify-diagnostics | FileCheck %s

// Arrays of operands in the entry block, also for a launch in a loop; a scalar is a
// value; what is no launch's is left.
// CHECK-LABEL: module attributes {my.attribute} {
// CHECK:         llvm.mlir.global internal constant @k_code("code\00")
// CHECK:         llvm.mlir.global internal constant @k_manifest("{}\00")
// CHECK:         llvm.mlir.global internal @k_image()
// CHECK:         llvm.func @attnfuseHostLaunch(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64)
// CHECK:         llvm.mlir.global internal constant @f_name("f\00")
// CHECK:         func.func @loop(%[[X:.*]]: memref<4x?xbf16, strided<[?, 1], offset: ?>>, %[[N:.*]]: i64, %{{.*}}: index, %[[S:.*]]: i64)
// CHECK-DAG:       %[[IN:.*]] = llvm.alloca %{{.*}} x !llvm.array<2 x struct<(ptr, i64, i32, i32, array<8 x i64>, array<8 x i64>)>>
// CHECK-DAG:       %[[OUT:.*]] = llvm.alloca %{{.*}} x !llvm.array<1 x struct<(ptr, i64, i32, i32, array<8 x i64>, array<8 x i64>)>>
// CHECK:           scf.for
// CHECK:             %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[X]]
// CHECK:             memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:             %[[O:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK:             %[[TWO:.*]] = arith.constant 2 : i64
// CHECK:             arith.muli %[[O]], %[[TWO]]
// CHECK:             arith.index_cast %[[SIZES]]#1 : index to i64
// CHECK:             arith.index_cast %[[STRIDES]]#0 : index to i64
// CHECK:             llvm.getelementptr %[[IN]][1, 1]
// CHECK:             llvm.store %[[N]],
// CHECK:             llvm.call @attnfuseHostLaunch(%{{.*}}, %{{.*}}, %[[S]], %[[IN]], %{{.*}}, %[[OUT]], %{{.*}})
// CHECK:         gpu.binary @theirs
// CHECK-NOT:     attnfuse.
module attributes {attnfuse.target = #attnfuse.target<"sm_80">, my.attribute} {
  func.func @loop(%x: memref<4x?xbf16, strided<[?, 1], offset: ?>> {attnfuse.name = "x"}, %n: i64, %m: index,
                  %s: i64 {attnfuse.stream}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %m step %c1 {
      attnfuse.launch @k::@f ins(%x, %n : memref<4x?xbf16, strided<[?, 1], offset: ?>>, i64)
          outs(%x : memref<4x?xbf16, strided<[?, 1], offset: ?>>) stream(%s)
    }
    return
  }
  gpu.binary @k {attnfuse.manifest = "{}"} [#gpu.object<#nvvm.target, assembly = "code">]
  gpu.binary @theirs [#gpu.object<#nvvm.target, "code">]
}

// -----

func.func private @k(tensor<4xf16>) -> tensor<4xf16>
func.func @tensors(%x: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{expected memrefs; bufferize before}}
  %y = attnfuse.launch @k ins(%x : tensor<4xf16>) outs(%x : tensor<4xf16>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

gpu.module @k attributes {attnfuse.manifest = "{}"} {
}
func.func @not_serialized(%x: memref<4xf16>) {
  // expected-error @+1 {{expected '@k::@f' to be in a gpu.binary of this module; run attnfuse-to-ptx-pipeline, or attnfuse-serialize-kernels}}
  attnfuse.launch @k::@f outs(%x : memref<4xf16>)
  return
}

// -----

gpu.binary @k {attnfuse.manifest = "{}"} [#gpu.object<#nvvm.target, assembly = "code">]
func.func @type(%x: memref<4xf64>) {
  // expected-error @+1 {{expected memrefs of f16, bf16, f32, i32 or i64 for the runtime, got 'memref<4xf64>'}}
  attnfuse.launch @k::@f outs(%x : memref<4xf64>)
  return
}

// -----

gpu.binary @k {attnfuse.manifest = "{}"} [#gpu.object<#nvvm.target, assembly = "code">]
func.func @layout(%x: memref<4xf16, affine_map<(d) -> (d floordiv 2)>>) {
  // expected-error @+1 {{expected a memref with strides, got}}
  attnfuse.launch @k::@f outs(%x : memref<4xf16, affine_map<(d) -> (d floordiv 2)>>)
  return
}

// -----

// expected-error @+1 {{expected one object and a manifest for launches; run attnfuse-serialize-kernels}}
gpu.binary @k {attnfuse.manifest = "{}"} [#gpu.object<#nvvm.target, assembly = "a">, #gpu.object<#nvvm.target<chip = "sm_90">, assembly = "b">]
func.func @objects(%x: memref<4xf16>) {
  attnfuse.launch @k::@f outs(%x : memref<4xf16>)
  return
}

// -----

// expected-error @+1 {{expected 'attnfuseHostLaunch' to be the function of attnfuse-c/Host.h}}
func.func private @attnfuseHostLaunch()
gpu.binary @k {attnfuse.manifest = "{}"} [#gpu.object<#nvvm.target, assembly = "code">]
func.func @name(%x: memref<4xf16>) {
  attnfuse.launch @k::@f outs(%x : memref<4xf16>)
  return
}
