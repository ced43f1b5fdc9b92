// What a search of schedules refuses, and what needs no GPU.

// RUN: rm -rf %t && mkdir -p %t/fake && ln -s %builddir/unittests/Runtime/AttnFuseFakeCuda.so %t/fake/libcuda.so.1
// DEFINE: %{fake} = env LD_LIBRARY_PATH=%t/fake FAKE_CUDA_CLOCK=threads attnfuse-run --random=1 --device=cuda

// RUN: not attnfuse-run %s --random=1 --tune 2>&1 | FileCheck %s --check-prefix=DEVICE --implicit-check-not=error:
// DEVICE: attnfuse-run: error: --tune measures on a GPU: expected device cuda or cuda:N, got 'cpu'
// RUN: not attnfuse-run %s --random=1 -o %t/o.mlir 2>&1 | FileCheck %s --check-prefix=ALONE -DFLAG=-o --implicit-check-not=error:
// RUN: not attnfuse-run %s --random=1 --tune-json=%t/o.json 2>&1 | FileCheck %s --check-prefix=ALONE -DFLAG=--tune-json --implicit-check-not=error:
// RUN: not attnfuse-run %s --random=1 --tune-budget=3 2>&1 | FileCheck %s --check-prefix=ALONE -DFLAG=--tune-budget --implicit-check-not=error:
// ALONE: attnfuse-run: error: [[FLAG]] belongs to --tune, which is missing
// RUN: not %{fake} %s --tune --time 2>&1 | FileCheck %s --check-prefix=TIME --implicit-check-not=error:
// TIME: attnfuse-run: error: --time does not go with --tune; run the tuned module with it
// RUN: not %{fake} %s --tune --output=output=%t/o.npy 2>&1 | FileCheck %s --check-prefix=OUTPUT --implicit-check-not=error:
// OUTPUT: attnfuse-run: error: --output does not go with --tune; run the tuned module with it
// RUN: not attnfuse-run %s --tune-list --chip=sm_80 --check 2>&1 | FileCheck %s --check-prefix=LISTED --implicit-check-not=error:
// LISTED: attnfuse-run: error: --check does not go with --tune-list, which runs nothing
// RUN: not %{fake} %s --tune -o - 2>&1 | FileCheck %s --check-prefix=STDOUT --implicit-check-not=error:
// STDOUT: attnfuse-run: error: expected a file for -o, got '-': the report is on the standard output
// RUN: not %{fake} %s --tune -o "" 2>&1 | FileCheck %s --check-prefix=NONAME -DFLAG=-o --implicit-check-not=error:
// RUN: not %{fake} %s --tune -o %t/o.mlir --tune-json= 2>&1 | FileCheck %s --check-prefix=NONAME -DFLAG=--tune-json --implicit-check-not=error:
// NONAME: attnfuse-run: error: expected a file for [[FLAG]], got ''{{$}}
// RUN: not attnfuse-run %s --random=1 -o "" 2>&1 | FileCheck %s --check-prefix=ALONE -DFLAG=-o --implicit-check-not=error:
// RUN: not %{fake} %s --tune --tune-budget= 2>&1 | FileCheck %s --check-prefix=BUDGET -DGOT= --implicit-check-not=error:
// RUN: not %{fake} %s --tune --tune-budget=0 2>&1 | FileCheck %s --check-prefix=BUDGET -DGOT=0 --implicit-check-not=error:
// RUN: not %{fake} %s --tune --tune-budget=nan 2>&1 | FileCheck %s --check-prefix=BUDGET -DGOT=nan --implicit-check-not=error:
// RUN: not %{fake} %s --tune --tune-budget=2m 2>&1 | FileCheck %s --check-prefix=BUDGET -DGOT=2m --implicit-check-not=error:
// BUDGET: attnfuse-run: error: expected --tune-budget SECONDS above 0, got '[[GOT]]'

// Files are checked before anything is measured.
// RUN: not %{fake} %s --tune -o %t/none/o.mlir 2>&1 | FileCheck %s --check-prefix=WRITE --implicit-check-not=error:
// WRITE: attnfuse-run: error: cannot write '{{.*}}none/o.mlir': No such file or directory
// RUN: cp %s %t/in.mlir
// RUN: not %{fake} %t/in.mlir --tune -o %t/in.mlir 2>&1 | FileCheck %s --check-prefix=INPUT --implicit-check-not=error:
// INPUT: attnfuse-run: error: '{{.*}}in.mlir' is an input and would be overwritten; choose another output
// RUN: not %{fake} %s --tune -o %t/o.json --tune-json=%t/./o.json 2>&1 | FileCheck %s --check-prefix=ONE --implicit-check-not=error:
// ONE: attnfuse-run: error: expected a file for each output, got '{{.*}}o.json' and '{{.*}}o.json', which are one

// Functions that cannot be tuned are named, and leave the files of before.
// RUN: echo old > %t/o.mlir
// RUN: not %{fake} %s --function=early --function=unfused --dims=B=1,N=40 --tune -o %t/o.mlir 2>&1 | FileCheck %s --check-prefix=FUNCTIONS
// FUNCTIONS: attnfuse-run: error: early: the model's choice cannot be timed: at these sizes k is rotated in the kernel, by a version with a schedule of its own; tune one way to rotate it with --rotation=fused or --rotation=split
// FUNCTIONS: attnfuse-run: error: unfused: expected one attention in function 'unfused', got 0: {{.*}}
// RUN: grep -x old %t/o.mlir
// RUN: ls %t | FileCheck %s --check-prefix=FILES --implicit-check-not=tmp
// FILES: o.mlir

// Nor can calls without work: nothing is launched, or nothing but zeros come out.
// RUN: not %{fake} %s --function=early --rotation=split --dims=B=1,N=40 --dims=B=0,N=64 --tune -o %t/o.mlir 2>&1 | FileCheck %s --check-prefix=NOWORK -DGOT="B=0, Nq=64, Nkv=64" --implicit-check-not=wave
// RUN: not %{fake} %s --function=early --rotation=split --dims=B=1,Nq=40,Nkv=0 --tune -o %t/o.mlir 2>&1 | FileCheck %s --check-prefix=NOWORK -DGOT="B=1, Nq=40, Nkv=0" --implicit-check-not=wave
// NOWORK: attnfuse-run: error: early: {{\[}}[[GOT]]{{\]}} has no work to time: expected sizes above 0 and a query that sees a key
// RUN: grep -x old %t/o.mlir

// One way can be tuned; the schedule comes with the plan that it was timed by.
// RUN: %{fake} %s --function=early --dims=B=1,N=40 --rotation=fused --tune --tune-budget=60 -o %t/fused.mlir
// RUN: FileCheck %s --check-prefix=FUSED < %t/fused.mlir
// FUSED: softmax schedule <{{.*}}> {rotation_plan = #attnfuse.rotation_plan<q = fused, k = fused>

// The model's choice is all versions that it gives, of which few rows have one
// on this chip.
// RUN: env FAKE_CUDA_CAPABILITY=90 %{fake} %s --function=early --dims=B=1,N=40 --tune --tune-budget=3 | FileCheck %s --check-prefix=ROWS
// ROWS: early [B=1, Nq=40, Nkv=40] on cuda:0 (Fake GPU), for sm_90a
// ROWS: 128x128 warps=8 q_in_registers packed_heads=2 pipeline stages=2 {{.*}} (the model's choice, here as early$few_rows)

// The schedules that are tried can be listed for any chip, the model's choice
// first.
// RUN: attnfuse-run %s --tune-list --chip=sm_90a --function=early --rotation=split | FileCheck %s --check-prefix=LIST
// LIST: early schedule <tile_m = 128, tile_n = 128, warps = 8, q_in_registers = true, packed_heads = 2, pipeline = <
// LIST-DAG: early schedule <tile_m = 64, tile_n = 64, {{.*}} pipeline = <
// LIST-DAG: early schedule <tile_m = 128, tile_n = 48, warps = 4, q_in_registers = false, stages = 2>
// RUN: not attnfuse-run %s --tune-list --function=early 2>&1 | FileCheck %s --check-prefix=NOCHIP
// NOCHIP: attnfuse-run: error: early: {{.*}}attnfuse.target

func.func @early(%q: tensor<?x4x?x128xf16>, %k: tensor<?x2x?x128xf16>, %v: tensor<?x2x?x128xf16>,
                 %cos: tensor<4096x64xf32>, %sin: tensor<4096x64xf32>) -> tensor<?x4x?x128xf16> {
  %r = attnfuse.rope %k, %cos, %sin half : tensor<?x2x?x128xf16>, tensor<4096x64xf32>, tensor<4096x64xf32>
  %s = attnfuse.scaled_dot_product %q, %r : tensor<?x4x?x128xf16>, tensor<?x2x?x128xf16> -> tensor<?x4x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x4x?x?xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x128xf16> -> tensor<?x4x?x128xf16>
  return %o : tensor<?x4x?x128xf16>
}

func.func @unfused(%s: tensor<1x1x16x16xf32>, %v: tensor<1x1x16x16xf16>) -> tensor<1x1x16x16xf16> {
  %p = attnfuse.softmax %s : tensor<1x1x16x16xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x1x16x16xf32>, tensor<1x1x16x16xf16> -> tensor<1x1x16x16xf16>
  return %o : tensor<1x1x16x16xf16>
}
