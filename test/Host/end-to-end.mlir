// Host code that launches: from attention among other ops to a program that calls
// the CUDA driver, which is a fake one here.
//
// RUN: rm -rf %t && mkdir -p %t/driver
// RUN: ln -s %builddir/unittests/Runtime/AttnFuseFakeCuda.so %t/driver/libcuda.so.1
// RUN: attnfuse-opt %s --attnfuse-to-ptx-pipeline --eliminate-empty-tensors \
// RUN:   --one-shot-bufferize='bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map' \
// RUN:   --canonicalize -o %t/buffers.mlir
// RUN: FileCheck %s --check-prefix=BUFFERS < %t/buffers.mlir
// RUN: attnfuse-opt %t/buffers.mlir --convert-attnfuse-launch-to-runtime -o %t/calls.mlir
// RUN: FileCheck %s --check-prefix=CALLS < %t/calls.mlir
// RUN: attnfuse-opt %t/calls.mlir --convert-linalg-to-loops --convert-scf-to-cf --expand-strided-metadata --lower-affine \
// RUN:   --finalize-memref-to-llvm --convert-func-to-llvm --convert-cf-to-llvm --convert-arith-to-llvm \
// RUN:   --reconcile-unrealized-casts -o %t/llvm.mlir
// RUN: mlir-translate --mlir-to-llvmir %t/llvm.mlir -o %t/host.ll
// RUN: llc -O1 -filetype=obj -relocation-model=pic %t/host.ll -o %t/host.o
// RUN: %cc -std=gnu99 -Wall -Wextra -Werror -I%docs/../include %S/Inputs/main.c %t/host.o -o %t/program \
// RUN:   -L%builddir/lib -Wl,-rpath,%builddir/lib -lattnfuse_host
//
// RUN: env LD_LIBRARY_PATH=%t/driver FAKE_CUDA_TRACE=%t/trace %t/program
// RUN: FileCheck %s < %t/trace
// RUN: env LD_LIBRARY_PATH=%t/driver %t/program handler | FileCheck %s --check-prefix=HANDLER
// RUN: env LD_LIBRARY_PATH=%t/driver not --crash %t/program abort 2>&1 | FileCheck %s --check-prefix=ABORT
// RUN: env LD_LIBRARY_PATH=%t/driver FAKE_CUDA_COUNT=0 not --crash %t/program abort 2>&1 | FileCheck %s --check-prefix=NO-GPU

// The last result goes straight into the destination; the first needs memory.
// BUFFERS-LABEL: func.func @layers(
// BUFFERS-SAME:    %[[Q:.*]]: memref<2x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %[[K:.*]]: memref<2x2x?x64xf16>, %[[OUT:.*]]: memref<2x8x?x64xf16>, %[[POSITION:[^:]*]]: i64
// BUFFERS-NOT:     memref.copy
// BUFFERS:         %[[FIRST:.*]] = memref.alloc
// BUFFERS-NOT:     memref.copy
// BUFFERS:         attnfuse.launch @attnfuse_kernels::@layers_attention_0 ins(%[[Q]], %[[K]]
// BUFFERS-SAME:      outs(%[[FIRST]] :
// BUFFERS-NOT:     memref.copy
// BUFFERS:         attnfuse.launch @attnfuse_kernels::@layers_attention_1 ins(%[[FIRST]], %[[K]], %{{[^,]*}}, %[[POSITION]] :
// BUFFERS-SAME:      outs(%[[OUT]] : memref<2x8x?x64xf16>)
// BUFFERS-NOT:     memref.copy
// BUFFERS:         return

// CALLS-NOT:   gpu.binary
// CALLS-NOT:   attnfuse.launch
// CALLS:       llvm.mlir.global internal constant @attnfuse_kernels_code("//
// CALLS:       llvm.mlir.global internal constant @attnfuse_kernels_manifest(
// CALLS:       llvm.mlir.global internal @attnfuse_kernels_image()
// CALLS:       llvm.func @attnfuseHostLaunch(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64)
// CALLS-LABEL: func.func @layers(
// CALLS:         llvm.call @attnfuseHostLaunch(
// CALLS:         llvm.call @attnfuseHostLaunch(

// Two launches a call, in order: grids of 2 x 8 heads by tiles of queries. q is at
// its address + 16 bytes with its strides; the first result, allocated by the host
// code, is the second's q; the offset of the rotation is the argument.
// CHECK:      layers_attention_0 grid {{[0-9]+}} 1 1 block {{[0-9]+}} 1 1 shared {{[0-9]+}} stream 77:
// CHECK-SAME: 100010
// CHECK-SAME: 200000
// CHECK-SAME: {{ }}[[FIRST:[0-9a-f]+]] 40{{$}}
// CHECK-NEXT: layers_attention_1 grid {{[0-9]+}} 1 1 block {{[0-9]+}} 1 1 shared {{[0-9]+}} stream 77:
// CHECK-SAME: {{ }}[[FIRST]]{{ }}
// CHECK-SAME: 200000
// CHECK-SAME: {{ }}5{{ }}
// CHECK-SAME: 300000
// CHECK-NEXT: layers_attention_0
// CHECK-NEXT: layers_attention_1
// CHECK-SAME: {{ }}6{{ }}
// CHECK-NOT:  layers_attention

// HANDLER: version 1
// HANDLER: handler: attnfuse: launching 'layers_attention_0': argument '{{.*}}': expected an address that is a multiple of 16 bytes
// HANDLER: handler: attnfuse: launching 'layers_attention_1':
// HANDLER: went on
// ABORT:     attnfuse: launching 'layers_attention_0': argument '
// ABORT-NOT: went on
// NO-GPU:    attnfuse: launching 'layers_attention_0': no NVIDIA GPU is visible

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  func.func @layers(%qm: memref<2x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %km: memref<2x2x?x64xf16>,
                    %out: memref<2x8x?x64xf16>, %position: i64, %stream: i64 {attnfuse.stream}) attributes {llvm.emit_c_interface} {
    %q = bufferization.to_tensor %qm restrict : memref<2x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>> to tensor<2x8x?x64xf16>
    %k = bufferization.to_tensor %km restrict : memref<2x2x?x64xf16> to tensor<2x2x?x64xf16>
    %s = attnfuse.scaled_dot_product %q, %k : tensor<2x8x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x?x?xf32>
    %p = attnfuse.softmax %s : tensor<2x8x?x?xf32>
    %o = attnfuse.weighted_sum %p, %k : tensor<2x8x?x?xf32>, tensor<2x2x?x64xf16> -> tensor<2x8x?x64xf16>

    %table = tensor.empty() : tensor<512x32xf32>
    %one = arith.constant 1.0 : f32
    %cos = linalg.fill ins(%one : f32) outs(%table : tensor<512x32xf32>) -> tensor<512x32xf32>
    %qr = attnfuse.rope %o, %cos, %cos half offset(%position) : tensor<2x8x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
    %s1 = attnfuse.scaled_dot_product %qr, %k : tensor<2x8x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x?x?xf32>
    %p1 = attnfuse.softmax %s1 : tensor<2x8x?x?xf32>
    %o1 = attnfuse.weighted_sum %p1, %k : tensor<2x8x?x?xf32>, tensor<2x2x?x64xf16> -> tensor<2x8x?x64xf16>
    bufferization.materialize_in_destination %o1 in restrict writable %out
        : (tensor<2x8x?x64xf16>, memref<2x8x?x64xf16>) -> ()
    return
  }
}
