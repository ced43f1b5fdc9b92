// Flags that only one of the functions has concern that one alone.

// RUN: rm -rf %t && mkdir %t
// RUN: attnfuse-run %s --random=1 --dims=B=2,N=6,P=9 --check | FileCheck %s
// CHECK: rotated [B=2, Nq=6, Nkv=6, P=9] on cpu
// CHECK: plain [B=2, Nq=6, Nkv=6] on cpu
// CHECK: 2 passed, 0 failed

// RUN: attnfuse-run %s --function=plain --random=1 --dims=B=2,N=6 --output=result0=%t/bias.npy
// RUN: attnfuse-run %s --random=1 --dims=B=2,N=6 --input=bias=%t/bias.npy --check | FileCheck %s --check-prefix=INPUT
// INPUT: rotated [B=2, Nq=6, Nkv=6, P=
// INPUT: 2 passed, 0 failed

// What no function has is an error, and so is what the selected one has not.
// A function that is named twice runs once.
// RUN: attnfuse-run %s --function=plain --function=plain --random=1 --dims=B=2,N=6 --output=result0=%t/bias.npy --check | FileCheck %s --check-prefix=ONCE
// ONCE: {{^}}1 passed, 0 failed

// RUN: not attnfuse-run %s --random=1 --dims=M=9 2>&1 | FileCheck %s --check-prefix=UNKNOWN --implicit-check-not=error:
// UNKNOWN: attnfuse-run: error: rotated: unknown dimension 'M': function 'rotated' has B, Nq, Nkv, P
// UNKNOWN: attnfuse-run: error: plain: unknown dimension 'M': function 'plain' has B, Nq, Nkv
// RUN: not attnfuse-run %s --function=plain --random=1 --dims=P=9 2>&1 | FileCheck %s --check-prefix=SELECTED --implicit-check-not=error:
// SELECTED: attnfuse-run: error: unknown dimension 'P': function 'plain' has B, Nq, Nkv
// RUN: not attnfuse-run %s --random=1 --input=bios=%t/bias.npy 2>&1 | FileCheck %s --check-prefix=ARGUMENT --implicit-check-not=error:
// ARGUMENT: attnfuse-run: error: rotated: unknown argument 'bios': function 'rotated' has q, k, cos, sin
// ARGUMENT: attnfuse-run: error: plain: unknown argument 'bios': function 'plain' has q, k, bias

func.func @rotated(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>)
    -> tensor<?x2x?x?xf32> {
  %r = attnfuse.rope %q, %cos, %sin half : tensor<?x2x?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %s = attnfuse.scaled_dot_product %r, %k : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x2x?x?xf32>
  return %s : tensor<?x2x?x?xf32>
}

func.func @plain(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %bias: tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32> {
  %s = attnfuse.scaled_dot_product %q, %k : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x2x?x?xf32>
  %b = attnfuse.additive_bias %s, %bias : tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>
  return %b : tensor<?x2x?x?xf32>
}
