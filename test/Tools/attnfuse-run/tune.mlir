// The search of schedules, on a driver that launches nothing: a launch takes a
// microsecond for each thread of a block, so the smallest block is the best.

// RUN: rm -rf %t && mkdir %t && ln -s %builddir/unittests/Runtime/AttnFuseFakeCuda.so %t/libcuda.so.1
// DEFINE: %{run} = env LD_LIBRARY_PATH=%t FAKE_CUDA_CLOCK=threads attnfuse-run
// DEFINE: %{tune} = %{run} --function=attend --device=cuda --random=1 --tune

// RUN: %{tune} %s -o %t/tuned.mlir --tune-json=%t/tuned.json | FileCheck %s
// CHECK: attend [B=2, Nq=100, Nkv=100] on cuda:0 (Fake GPU), for sm_86
// CHECK-NEXT: wave 1: 9 schedules, 9 of them timed; the best so far takes 0.500 of the time of the model's choice
// CHECK-NEXT: wave 2: {{[0-9]+}} schedules, {{[0-9]+}} of them timed; the best so far takes 0.250
// CHECK: {{[0-9]+}} schedules in {{[0-9]+}} s: {{[0-9]+}} timed, 0 failed, 0 left out
// CHECK-NEXT: compiled in {{[0-9]+}} s by {{[0-9]+}} threads, checked in {{[0-9]+}} s
// CHECK-NEXT: ratio again us schedule
// CHECK-NEXT: 0.250 {{.*}} 32 {{.*}} warps=1
// CHECK: 1.000 {{.*}} 128 128x32 warps=4 stages=2 (the model's choice)
// CHECK: best: 0.250 of the time of the model's choice: schedule <tile_m = {{[0-9]+}}, tile_n = {{[0-9]+}}, warps = 1, q_in_registers = {{true|false}}{{(, stages = [23])?}}>

// The module holds the schedule, and everybody keeps to it.
// RUN: FileCheck %s --check-prefixes=OTHER,TUNED < %t/tuned.mlir
// RUN: attnfuse-compile %t/tuned.mlir --chip=sm_86 --emit=schedule -o - | FileCheck %s --check-prefix=TUNED
// OTHER: func.func @other
// OTHER: attnfuse.scaled_dot_product
// TUNED: func.func @attend
// TUNED-NEXT: attnfuse.attention {{.*}} softmax schedule <tile_m = {{[0-9]+}}, tile_n = {{[0-9]+}}, warps = 1, q_in_registers = {{true|false}}{{(, stages = [23])?}}>
// RUN: env FAKE_CUDA_TRACE=%t/trace LD_LIBRARY_PATH=%t attnfuse-run %t/tuned.mlir --function=attend --device=cuda --random=1
// RUN: FileCheck %s --check-prefix=TRACE < %t/trace
// TRACE: attend grid {{.*}} block 32 1 1
// RUN: attnfuse-run %t/tuned.mlir --random=1 --check
// A number of parts that is asked for is tuned, and stays with the schedule.
// RUN: %{tune} %s -o %t/split.mlir --key-splits=2 --tune-budget=20
// RUN: FileCheck %s --check-prefix=SPLIT < %t/split.mlir
// SPLIT: schedule <{{.*}}, warps = 1, {{.*}}, key_splits = 2{{(, stages = [23])?}}>
// RUN: attnfuse-run %s --function=attend --tune-list --chip=sm_86 --key-splits=4 | FileCheck %s --check-prefix=LIST --implicit-check-not='false>'
// LIST: key_splits = 4>

// Once more: what is there takes part, and stays.
// RUN: %{tune} %t/tuned.mlir -o %t/again.mlir | FileCheck %s --check-prefix=AGAIN
// AGAIN: wave 1: 10 schedules, 10 of them timed; the best so far takes 0.250
// AGAIN: best: 0.250
// RUN: diff %t/tuned.mlir %t/again.mlir

// RUN: FileCheck %s --check-prefix=JSON < %t/tuned.json
// RUN: %python %S/Inputs/check_tuned.py %t/tuned.json
// JSON: "best": {{[1-9]}}
// JSON: "kernel_of_choice": "attend"
// JSON: "attribute": "#attnfuse.schedule<tile_m = 128, tile_n = 32, warps = 4, q_in_registers = false, stages = 2>"
// JSON: "state": "timed"
// JSON: "version": 1

// Without a clock each sample, of two runs, takes 1.5 ms: the model's choice stays,
// and the function as it was.
// RUN: env LD_LIBRARY_PATH=%t attnfuse-run %s --function=attend --device=cuda --random=1 --dims=N=40 --dims=N=50 --tune -o %t/kept.mlir | FileCheck %s --check-prefix=KEPT
// KEPT: attend [B=2, Nq=40, Nkv=40] on
// KEPT: attend [B=2, Nq=50, Nkv=50] on
// KEPT: ratio again us us schedule
// KEPT: 1.000 750 750 128x32 warps=4 stages=2 (the model's choice)
// KEPT: the model's choice stays: nothing is quicker by more than 1 %
// RUN: attnfuse-opt %s | diff -B - %t/kept.mlir

// What does not load is skipped and named; here all blocks of 32 threads.
// RUN: env FAKE_CUDA_REFUSE=".reqntid 32" %{tune} %s --tune-json=%t/refused.json | FileCheck %s --check-prefix=REFUSED
// REFUSED: {{[0-9]+}} timed, {{[1-9][0-9]*}} failed,
// REFUSED: failed: 32x32 warps=1 stages=2: {{.*}}CUDA_ERROR_INVALID_PTX
// REFUSED: best: 0.500 of {{.*}} warps = 2,
// RUN: FileCheck %s --check-prefix=REASON < %t/refused.json
// REASON: "reason": {{.*}}CUDA_ERROR_INVALID_PTX
// REASON: "state": "failed"

// Where a kernel breaks the device nothing more can be measured.
// RUN: env FAKE_CUDA_FAULT=64 not %{tune} %s -o %t/broken.mlir 2>&1 | FileCheck %s --check-prefix=FAULT
// FAULT: attnfuse-run: error: attend: the device fails since the kernel of schedule <tile_m = 64, tile_n = 32, warps = 2, q_in_registers = false, stages = 2>: {{.*}}ILLEGAL_ADDRESS
// RUN: env FAKE_CUDA_FAULT=128 not %{tune} %s -o %t/broken.mlir 2>&1 | FileCheck %s --check-prefix=CHOICE
// CHOICE: attnfuse-run: error: attend: the model's choice cannot be timed: {{.*}}ILLEGAL_ADDRESS
// RUN: not ls %t/broken.mlir

// A budget that is over at once leaves the rest out.
// RUN: %{tune} %s --tune-budget=1e-6 | FileCheck %s --check-prefix=BUDGET
// BUDGET: 10 schedules in {{[0-9]+}} s: 1 timed, 0 failed, 9 left out
// BUDGET: the model's choice stays

// By the reference every kernel that writes nothing is wrong.
// RUN: not %{tune} %s --check 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: attnfuse-run: error: attend: the model's choice cannot be timed: wrong result 'output': {{.*}}: FAIL

module {
  func.func @other(%q: tensor<?x4x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>) -> tensor<?x4x?x16xf16> {
    %s = attnfuse.scaled_dot_product %q, %k : tensor<?x4x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x4x?x?xf32>
    %p = attnfuse.softmax %s : tensor<?x4x?x?xf32>
    %o = attnfuse.weighted_sum %p, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x16xf16> -> tensor<?x4x?x16xf16>
    return %o : tensor<?x4x?x16xf16>
  }
  func.func @attend(%q: tensor<?x4x?x16xf16>, %k: tensor<?x2x?x16xf16>, %v: tensor<?x2x?x16xf16>) -> tensor<?x4x?x16xf16> {
    %s = attnfuse.scaled_dot_product %q, %k : tensor<?x4x?x16xf16>, tensor<?x2x?x16xf16> -> tensor<?x4x?x?xf32>
    %p = attnfuse.softmax %s : tensor<?x4x?x?xf32>
    %o = attnfuse.weighted_sum %p, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x16xf16> -> tensor<?x4x?x16xf16>
    return %o : tensor<?x4x?x16xf16>
  }
}
