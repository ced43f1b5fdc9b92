// RUN: attnfuse-compile %s --chip=rtx3090 --explain -o %t.ptx | FileCheck %s
// With the output on standard output, the explanation is on standard error.
// RUN: attnfuse-compile %s --chip=rtx3090 --explain 2>&1 >/dev/null | FileCheck %s

// Without going on to kernels it is the same.
// RUN: attnfuse-compile %s --chip=rtx3090 --explain --emit=schedule -o %t.mlir | FileCheck %s
// RUN: FileCheck %s --check-prefix=SCHEDULE < %t.mlir
// SCHEDULE-NOT: gpu.module

// CHECK: all_at_once for rtx3090 (sm_86):
// CHECK-NEXT: written: rope, rope, scaled_dot_product, full, causal, alibi, block_sparse, softmax, weighted_sum
// CHECK-NEXT: fused: all of it, into one attention
// CHECK-NEXT: launches the first that applies:
// CHECK-NEXT:   all_at_once$rotate, then all_at_once$split_keys, then all_at_once$split_keys$combine, by B, Nq, nnz
// CHECK-NEXT:   all_at_once$fused, by nnz, Nq, Nkv, B
// CHECK-NEXT:   all_at_once$rotate, then all_at_once{{$}}
// CHECK-NEXT: rotates q in the kernel: half
// CHECK-NEXT: rotates k in the kernel or before it, by the sizes of a launch: half
// CHECK-NEXT: keys visible to query i: 0 to i + off + 0, off = Nkv - Nq
// CHECK-NEXT: visits only listed blocks of 64 queries and 32 keys
// CHECK-NEXT: score chain: {{[0-9]+}} ops, 0 operands
// CHECK-NEXT: normalizer: softmax, with log-sum-exp
// CHECK-NEXT: tile: {{[0-9]+}} queries x {{16|32}} keys, {{[0-9]}} warps, q in {{registers|shared memory}}
// CHECK-NEXT: takes: {{[0-9]+}} bytes of shared memory of 101376, about {{[0-9]+}} registers per thread (an estimate; the assembler may take up to 255)
// CHECK-NEXT: blocks per SM: at most {{[1-9][0-9]*}} by shared memory and threads, {{[1-9][0-9]*}} if the estimate of registers holds
// CHECK-NEXT: keys: split where a launch has too few query tiles of {{[0-9]+}} to fill the machine, by its sizes
// CHECK: window for rtx3090 (sm_86):
// CHECK-NEXT: written: scaled_dot_product, sliding_window, relu_attention, weighted_sum
// CHECK-NEXT: fused: all of it, into one attention
// CHECK-NEXT: launches the first that applies:
// CHECK-NEXT:   window$split_keys, then window$split_keys$combine, by B, Nq
// CHECK-NEXT:   window{{$}}
// CHECK-NEXT: keys visible to query i: i + off - 3 to Nkv - 1, off = 0
// CHECK-NEXT: normalizer: relu_sum
// Where only the number of SMs is left to decide, that is said, and what this machine's number is.
// CHECK: known for rtx3090 (sm_86):
// CHECK:        known$split_keys, then known$split_keys$combine, by the number of SMs
// CHECK:      keys: not split with 82 SMs

func.func @all_at_once(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>,
    %cos: tensor<4096x32xf32>, %sin: tensor<4096x32xf32>, %rows: tensor<?xi32>, %cols: tensor<?xi32>)
    -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>) {
  %qr = attnfuse.rope %q, %cos, %sin half : tensor<?x8x?x64xbf16>, tensor<4096x32xf32>, tensor<4096x32xf32>
  %kr = attnfuse.rope %k, %cos, %sin half : tensor<?x2x?x64xbf16>, tensor<4096x32xf32>, tensor<4096x32xf32>
  %s = attnfuse.scaled_dot_product %qr, %kr : tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x?x?xf32>
  %f = attnfuse.full %s : tensor<?x8x?x?xf32>
  %m = attnfuse.causal %f bottom_right : tensor<?x8x?x?xf32>
  %a = attnfuse.alibi %m bottom_right : tensor<?x8x?x?xf32>
  %b = attnfuse.block_sparse %a, %rows, %cols {query_block = 64, key_block = 32} : tensor<?x8x?x?xf32>, tensor<?xi32>, tensor<?xi32>
  %p, %lse = attnfuse.softmax %b : tensor<?x8x?x?xf32>, tensor<?x8x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x8x?x?xf32>, tensor<?x2x?x64xbf16> -> tensor<?x8x?x64xbf16>
  return %o, %lse : tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>
}

func.func @window(%q: tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16> -> tensor<?x8x?x?xf32>
  %w = attnfuse.sliding_window %s top_left {left = 3} : tensor<?x8x?x?xf32>
  %p = attnfuse.relu_attention %w sum : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x8x?x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

func.func @known(%q: tensor<8x8x1024x64xf16>) -> tensor<8x8x1024x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<8x8x1024x64xf16>, tensor<8x8x1024x64xf16> -> tensor<8x8x1024x1024xf32>
  %p = attnfuse.softmax %s : tensor<8x8x1024x1024xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<8x8x1024x1024xf32>, tensor<8x8x1024x64xf16> -> tensor<8x8x1024x64xf16>
  return %o : tensor<8x8x1024x64xf16>
}
