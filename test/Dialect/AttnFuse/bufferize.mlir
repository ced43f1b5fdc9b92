// RUN: attnfuse-opt %s --eliminate-empty-tensors --one-shot-bufferize='bufferize-function-boundaries allow-return-allocs-from-loops' --canonicalize --cse --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

gpu.module @kernels attributes {attnfuse.manifest = ["{}"]} {
}

// The result goes to its place in a larger tensor, with the strides of that.
// CHECK-LABEL: func.func @slice(
// CHECK-SAME:    %[[Q:.*]]: memref<1x4x16x64xf16, strided{{.*}}>, %[[ALL:.*]]: memref<1x4x80x64xf16, strided{{.*}}>)
// CHECK-NOT:     alloc
// CHECK:         %[[VIEW:.*]] = memref.subview %[[ALL]][0, 0, 32, 0] [1, 4, 16, 64] [1, 1, 1, 1]
// CHECK:         attnfuse.launch @kernels::@f ins(%[[Q]] : {{.*}}) outs(%[[VIEW]] : memref<1x4x16x64xf16, strided<{{.*}}>>) {my.tag}
// CHECK-NOT:     copy
// CHECK:         return %[[ALL]]
func.func @slice(%q: tensor<1x4x16x64xf16>, %all: tensor<1x4x80x64xf16> {bufferization.writable = true}) -> tensor<1x4x80x64xf16> {
  %init = tensor.empty() : tensor<1x4x16x64xf16>
  %o = attnfuse.launch @kernels::@f ins(%q : tensor<1x4x16x64xf16>) outs(%init : tensor<1x4x16x64xf16>) {my.tag} -> tensor<1x4x16x64xf16>
  %r = tensor.insert_slice %o into %all[0, 0, 32, 0] [1, 4, 16, 64] [1, 1, 1, 1]
      : tensor<1x4x16x64xf16> into tensor<1x4x80x64xf16>
  return %r : tensor<1x4x80x64xf16>
}

// An argument is its own destination.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:    %[[Q:.*]]: memref<{{.*}}>, %[[OUT:.*]]: memref<{{.*}}>)
// CHECK-NEXT:    attnfuse.launch @kernels::@f ins(%[[Q]] : {{.*}}) outs(%[[OUT]] :
// CHECK-NEXT:    return %[[OUT]]
func.func @in_place(%q: tensor<1x4x16x64xf16>, %out: tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16> {
  %o = attnfuse.launch @kernels::@f ins(%q : tensor<1x4x16x64xf16>) outs(%out : tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16>
  return %o : tensor<1x4x16x64xf16>
}

// Kernels do not write what they read: another buffer, whose contents are not copied.
// CHECK-LABEL: func.func @overlap(
// CHECK-SAME:    %[[Q:.*]]: memref<{{.*}}>)
// CHECK:         %[[NEW:.*]] = memref.alloc
// CHECK-NOT:     copy
// CHECK:         attnfuse.launch @kernels::@f ins(%[[Q]] : {{.*}}) outs(%[[NEW]] :
func.func @overlap(%q: tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16> {
  %o = attnfuse.launch @kernels::@f ins(%q : tensor<1x4x16x64xf16>) outs(%q : tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16>
  return %o : tensor<1x4x16x64xf16>
}

// -----

func.func @attention(%q: tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16> {
  // expected-error @+2 {{failed to bufferize op}}
  // expected-error @+1 {{expected it to be lowered before bufferization: run attnfuse-outline and convert-attnfuse-to-gpu, or convert-attnfuse-to-linalg}}
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16>
  return %o : tensor<1x4x16x64xf16>
}
