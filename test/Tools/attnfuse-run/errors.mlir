// One function with everything that a user can get wrong.

// RUN: rm -rf %t && split-file %S/Inputs/files.txt %t

// RUN: not attnfuse-run %t/none.mlir 2>&1 | FileCheck %s --check-prefix=NOFILE --implicit-check-not=error:
// NOFILE: attnfuse-run: error: cannot read '{{.*}}none.mlir': No such file or directory

// RUN: not attnfuse-run %t/malformed.mlir --random=1 2>&1 | FileCheck %s --check-prefix=MALFORMED
// MALFORMED: malformed.mlir:1:35: error: expected
// MALFORMED: attnfuse-run: error: cannot parse '{{.*}}malformed.mlir'

// RUN: not attnfuse-run %t/empty.mlir --random=1 2>&1 | FileCheck %s --check-prefix=EMPTY --implicit-check-not=error:
// EMPTY: attnfuse-run: error: the module has no function with a body

// RUN: not attnfuse-run %s --random=1 --function=g 2>&1 | FileCheck %s --check-prefix=FUNCTION --implicit-check-not=error:
// FUNCTION: attnfuse-run: error: unknown function 'g': the module has attend

// RUN: not attnfuse-run %s --random=1 --key-splits=1025 2>&1 | FileCheck %s --check-prefix=SPLITS --implicit-check-not=error:
// SPLITS: attnfuse-run: error: expected --key-splits from 0 to 1024, got 1025

// RUN: not attnfuse-run %s --random=x 2>&1 | FileCheck %s --check-prefix=SEED --implicit-check-not=error:
// SEED: attnfuse-run: error: expected --random=SEED with a number, got 'x'

// RUN: not attnfuse-run %s --dims=B=1 2>&1 | FileCheck %s --check-prefix=NOVALUE --implicit-check-not=error:
// NOVALUE: attnfuse-run: error: argument 'q' has no value: expected --input q=FILE or --random=SEED

// RUN: not attnfuse-run %s --random=1 --dims=M=1 2>&1 | FileCheck %s --check-prefix=DIM --implicit-check-not=error:
// DIM: attnfuse-run: error: unknown dimension 'M': function 'attend' has B, Nq, Nkv

// RUN: not attnfuse-run %s --random=1 --dims=B=2,B=3 2>&1 | FileCheck %s --check-prefix=CONTRADICTION --implicit-check-not=error:
// CONTRADICTION: attnfuse-run: error: sizes contradict each other: B is 2 by --dims, but 3 by --dims

// RUN: not attnfuse-run %s --random=1 --dims=Hq=8 2>&1 | FileCheck %s --check-prefix=STATIC --implicit-check-not=error:
// STATIC: attnfuse-run: error: sizes contradict each other: Hq is 4 by the function, but 8 by --dims

// RUN: not attnfuse-run %s --random=1 --dims=B=two 2>&1 | FileCheck %s --check-prefix=NUMBER --implicit-check-not=error:
// NUMBER: attnfuse-run: error: expected --dims NAME=SIZE,..., got 'B=two'

// RUN: not attnfuse-run %s --random=1 --dims=N=4000000000000 2>&1 | FileCheck %s --check-prefix=HUGE --implicit-check-not=error:
// HUGE: attnfuse-run: error: 'q' is too large: expected tensors that fit in this machine's memory

// RUN: not attnfuse-run %s --random=1 --dims=N=33 2>&1 | FileCheck %s --check-prefix=TABLE --implicit-check-not=error:
// TABLE: attnfuse-run: error: the rotary table 'cos' is too short: expected at least 33 rows for 33 positions from 0, got 32

// RUN: not attnfuse-run %s --random=1 --chip=sm_12 2>&1 | FileCheck %s --check-prefix=CHIP --implicit-check-not=error:
// CHIP: attnfuse-run: error: {{.*}}sm_12{{.*}}sm_80

// RUN: not attnfuse-run %s --random=1 --device=tpu 2>&1 | FileCheck %s --check-prefix=DEVICE --implicit-check-not=error:
// DEVICE: attnfuse-run: error: expected device cpu, cuda or cuda:N, got 'tpu'

// RUN: not attnfuse-run %s --random=1 --layout=nhd 2>&1 | FileCheck %s --check-prefix=LAYOUT --implicit-check-not=error:
// LAYOUT: attnfuse-run: error: expected layout bhnd, bnhd or strided, got 'nhd'

// RUN: not attnfuse-run %s --random=1 --layout=bnhd 2>&1 | FileCheck %s --check-prefix=CPULAYOUT --implicit-check-not=error:
// CPULAYOUT: attnfuse-run: error: layout bnhd is for GPUs: expected --device=cuda, or layout bhnd

// RUN: not attnfuse-run %s --random=1 --input=w=%t/text.npy 2>&1 | FileCheck %s --check-prefix=NPY --implicit-check-not=error:
// NPY: attnfuse-run: error: '{{.*}}text.npy' is not an .npy file

// RUN: not attnfuse-run %s --random=1 --input=w=%t/none.npy 2>&1 | FileCheck %s --check-prefix=NONPY --implicit-check-not=error:
// NONPY: attnfuse-run: error: cannot read '{{.*}}none.npy': No such file or directory

// RUN: not attnfuse-run %s --random=1 --input=w 2>&1 | FileCheck %s --check-prefix=FLAG --implicit-check-not=error:
// FLAG: attnfuse-run: error: expected --input NAME=FILE, got 'w'

// A result file serves as an input: of a wrong argument, of a wrong shape.
// RUN: attnfuse-run %s --random=1 --dims=B=2,N=9 --output=output=%t/o.npy
// RUN: not attnfuse-run %s --random=1 --input=w=%t/o.npy 2>&1 | FileCheck %s --check-prefix=ARGUMENT --implicit-check-not=error:
// ARGUMENT: attnfuse-run: error: unknown argument 'w': function 'attend' has q, k, v, cos, sin
// RUN: not attnfuse-run %s --random=1 --dims=Nq=8 --input=q=%t/o.npy 2>&1 | FileCheck %s --check-prefix=SHAPE --implicit-check-not=error:
// SHAPE: attnfuse-run: error: sizes contradict each other: Nq is 9 by dimension 2 of argument 'q', but 8 by --dims
// RUN: not attnfuse-run %s --random=1 --input=cos=%t/o.npy 2>&1 | FileCheck %s --check-prefix=TYPE --implicit-check-not=error:
// TYPE: attnfuse-run: error: argument 'cos': expected elements of type f32, got f16
// RUN: head -c 150 %t/o.npy > %t/short.npy
// RUN: not attnfuse-run %s --random=1 --input=q=%t/short.npy 2>&1 | FileCheck %s --check-prefix=SHORT --implicit-check-not=error:
// SHORT: attnfuse-run: error: '{{.*}}short.npy' is truncated: its shape needs 2304 bytes of data, got 22

// RUN: not attnfuse-run %s --random=1 --output=lse=%t/l.npy 2>&1 | FileCheck %s --check-prefix=RESULT --implicit-check-not=error:
// RESULT: attnfuse-run: error: unknown result 'lse': function 'attend' has output
// RUN: not attnfuse-run %s --random=1 --dims=B=1 --dims=B=2 --output=output=%t/l.npy 2>&1 | FileCheck %s --check-prefix=CALLS --implicit-check-not=error:
// CALLS: attnfuse-run: error: --output needs one call: expected one --function and at most one --dims
// RUN: not attnfuse-run %s --random=1 --output=output=%t/none/l.npy 2>&1 | FileCheck %s --check-prefix=WRITE --implicit-check-not=error:
// WRITE: attnfuse-run: error: cannot write '{{.*}}l.npy': No such file or directory

// An error leaves no file, nor a part of one.
// RUN: not attnfuse-run %s --random=1 --dims=N=33 --output=output=%t/partial.npy
// RUN: ls %t | FileCheck %s --check-prefix=FILES --implicit-check-not=partial --implicit-check-not=tmp
// FILES: o.npy

func.func @attend(%q: tensor<?x4x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>,
                  %cos: tensor<32x8xf32>, %sin: tensor<32x8xf32>) -> tensor<?x4x?x16xf16> {
  %r = attnfuse.rope %k, %cos, %sin half : tensor<?x2x?x16xf16>, tensor<32x8xf32>, tensor<32x8xf32>
  %s = attnfuse.scaled_dot_product %q, %r : tensor<?x4x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x4x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x16xf16> -> tensor<?x4x?x16xf16>
  return %o : tensor<?x4x?x16xf16>
}
