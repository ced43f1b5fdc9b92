// RUN: rm -rf %t && split-file %s %t

// Each kind of bad input gives one clear error, status 1 and no file.
// RUN: not attnfuse-compile %t/none.mlir -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not attnfuse-compile %t/malformed.mlir --chip=sm_80 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not attnfuse-compile %t/good.mlir --chip=sm_75 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attnfuse-compile %t/good.mlir -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not attnfuse-compile %t/unfused.mlir --chip=sm_80 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=UNFUSED
// RUN: not attnfuse-compile %t/headsize.mlir --chip=sm_80 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=HEADSIZE
// RUN: not attnfuse-compile %t/f32.mlir --chip=sm_80 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=F32
// RUN: not attnfuse-compile %t/schedule.mlir --chip=sm_86 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not attnfuse-compile %t/empty.mlir --chip=sm_86 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not attnfuse-compile %t/others.mlir --chip=sm_86 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not attnfuse-compile %t/good.mlir --chip=sm_80 -o %t/out.json 2>&1 | FileCheck %s --check-prefix=JSON
// RUN: not attnfuse-compile %t/good.mlir --chip=sm_80 -o %t/none/out.ptx 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not env CUDA_HOME=%t PATH=%t %builddir/bin/attnfuse-compile %t/good.mlir --chip=sm_80 --emit=cubin -o %t/out.cubin 2>&1 | FileCheck %s --check-prefix=PTXAS
// RUN: ls %t | not grep out

// MISSING: attnfuse-compile: error: cannot read '{{.*}}none.mlir': No such file or directory
// MALFORMED: malformed.mlir:2:{{.*}}error:
// MALFORMED: attnfuse-compile: error: cannot parse '{{.*}}malformed.mlir'
// CHIP: attnfuse-compile: error: unknown chip or machine 'sm_75'; known are a100, {{.*}}, sm_120
// TARGET: attnfuse-compile: error: no machine is given; use --chip, or put 'attnfuse.target = #attnfuse.target<"sm_80">' on the module
// UNFUSED: attnfuse-compile: error: {{.*}}unfused.mlir:{{.*}}
// UNFUSED: remark: not fused:
// HEADSIZE: headsize.mlir:4:{{.*}}expected the head size of q and k to be a multiple of 8 from 8 to 256 for the GPU, got 12
// F32: f32.mlir:{{.*}}expected query of f16 or bf16 for the GPU, got 'f32'; convert it, or execute on the CPU
// SCHEDULE: schedule.mlir:{{.*}}the schedule needs 131072 bytes of shared memory per block, sm_86 has 101376; use a smaller tile_m or tile_n
// EMPTY: attnfuse-compile: error: the module has no function with a body; expected one that returns the result of attnfuse.weighted_sum or attnfuse.attention
// NONE: attnfuse-compile: error: functions 'g', 'h' have no attention to compile; expected one that returns the result of attnfuse.weighted_sum or attnfuse.attention
// JSON: attnfuse-compile: error: expected a file for each output, got '{{.*}}out.json' and '{{.*}}out.json', which are one (the manifest has the name of the output with .json)
// FOLDER: attnfuse-compile: error: cannot write '{{.*}}none/out.ptx': {{.*}}No such file or directory
// PTXAS: attnfuse-compile: error: no ptxas in $CUDA_HOME/bin or $PATH; install the CUDA toolkit

//--- malformed.mlir
func.func @f(%q: tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q

//--- good.mlir
func.func @f(%q: tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16> -> tensor<?x8x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x8x?x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

//--- unfused.mlir
func.func @f(%p: tensor<?x8x?x?xf32>, %v: tensor<?x8x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %o = attnfuse.weighted_sum %p, %v : tensor<?x8x?x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>
  return %o : tensor<?x8x?x64xf16>
}

//--- headsize.mlir
func.func @f(%q: tensor<?x8x?x12xf16>) -> tensor<?x8x?x12xf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x8x?x12xf16>, tensor<?x8x?x12xf16> -> tensor<?x8x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x8x?x?xf32>, tensor<?x8x?x12xf16> -> tensor<?x8x?x12xf16>
  return %o : tensor<?x8x?x12xf16>
}

//--- f32.mlir
func.func @f(%q: tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32> -> tensor<?x8x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x8x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x8x?x?xf32>, tensor<?x8x?x64xf32> -> tensor<?x8x?x64xf32>
  return %o : tensor<?x8x?x64xf32>
}

//--- schedule.mlir
func.func @f(%q: tensor<1x8x?x256xf16>) -> tensor<1x8x?x256xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax schedule <tile_m = 128, tile_n = 64, warps = 8, q_in_registers = false> {scale = 0.125 : f64}
    : (tensor<1x8x?x256xf16>, tensor<1x8x?x256xf16>, tensor<1x8x?x256xf16>) -> tensor<1x8x?x256xf16>
  return %o : tensor<1x8x?x256xf16>
}

//--- empty.mlir
module {}

//--- others.mlir
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>)
func.func @h() {
  return
}
