// Outputs are written together at the end or not at all, in every tool.

// RUN: rm -rf %t && mkdir -p %t/folder.json && cp %s %t/in.mlir

// The manifest cannot be written, so the PTX is not either, nor is an old one
// lost.
// RUN: echo old > %t/folder.ptx
// RUN: not attnfuse-compile %t/in.mlir --chip=sm_80 -o %t/folder.ptx 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: attnfuse-compile: error: cannot write '{{.*}}folder.json': it is a folder
// RUN: grep -x old %t/folder.ptx

// RUN: not attnfuse-compile %t/in.mlir --chip=sm_80 -o %t/in.mlir 2>&1 | FileCheck %s --check-prefix=INPUT -DTOOL=compile
// RUN: not attnfuse-opt %t/in.mlir -o %t/folder.json/../in.mlir 2>&1 | FileCheck %s --check-prefix=INPUT -DTOOL=opt
// RUN: not attnfuse-run %t/in.mlir --random=1 --output=output=%t/in.mlir 2>&1 | FileCheck %s --check-prefix=INPUT -DTOOL=run
// INPUT: attnfuse-[[TOOL]]: error: '{{.*}}in.mlir' is an input and would be overwritten; choose another output
// RUN: cmp %s %t/in.mlir

// A link makes the PTX and its manifest one file.
// RUN: touch %t/out.json && ln -s out.json %t/out.ptx
// RUN: not attnfuse-compile %t/in.mlir --chip=sm_80 -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: attnfuse-compile: error: expected a file for each output, got '{{.*}}out.ptx' and '{{.*}}out.json', which are one (the manifest has the name of the output with .json)
// RUN: rm %t/out.ptx
// Without a manifest it may have that name.
// RUN: attnfuse-compile %t/in.mlir --chip=sm_80 --emit=llvm -o %t/out.json
// RUN: FileCheck %s --check-prefix=LLVM < %t/out.json
// LLVM: define {{.*}}@attend
// A pipe has no manifest beside it.
// RUN: attnfuse-compile %t/in.mlir --chip=sm_80 -o /dev/null
// RUN: not ls /dev/null.json
// Nor has the standard output, where it is a file; what is there stays.
// RUN: ln -s /dev/stdout %t/std.ptx
// RUN: echo head > %t/redirected
// RUN: attnfuse-compile %t/in.mlir --chip=sm_80 -o %t/std.ptx >> %t/redirected
// RUN: FileCheck %s --check-prefix=STD < %t/redirected
// STD: {{^}}head{{$}}
// STD: .target sm_80
// RUN: attnfuse-opt %t/in.mlir -o /dev/stdout > %t/redirected
// RUN: FileCheck %s --check-prefix=OPT < %t/redirected

// RUN: not attnfuse-compile %t/in.mlir --chip=sm_80 -o "" 2>&1 | FileCheck %s --check-prefix=NONAME -DTOOL=compile
// RUN: not attnfuse-opt %t/in.mlir -o "" 2>&1 | FileCheck %s --check-prefix=NONAME -DTOOL=opt
// NONAME: attnfuse-[[TOOL]]: error: expected the name of a file to write, got ''
// RUN: not attnfuse-run %t/in.mlir --random=1 --output=output= 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: attnfuse-run: error: expected --output NAME=FILE, got 'output='

// RUN: not attnfuse-run %t/in.mlir --random=1 --output=output=%t/a.npy --output=lse=%t/./a.npy 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: attnfuse-run: error: expected a file for each output, got '{{.*}}a.npy' and '{{.*}}a.npy', which are one
// RUN: echo old > %t/b.npy
// RUN: not attnfuse-run %t/in.mlir --random=1 --output=lse=%t/b.npy --output=output=%t/none/a.npy 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: attnfuse-run: error: cannot write '{{.*}}none/a.npy': No such file or directory
// RUN: grep -x old %t/b.npy
// RUN: attnfuse-run %t/in.mlir --random=1 --dims=B=1,N=3 --output=lse=%t/b.npy --output=output=%t/a.npy
// RUN: not grep -x old %t/b.npy
// RUN: cp %t/a.npy %t/keep.npy
// RUN: not attnfuse-run %t/in.mlir --random=1 --input=v=%t/a.npy --output=output=%t/a.npy 2>&1 | FileCheck %s --check-prefix=OVERWRITE
// OVERWRITE: attnfuse-run: error: '{{.*}}a.npy' is an input and would be overwritten; choose another output
// RUN: cmp %t/a.npy %t/keep.npy

// A module that does not verify leaves the output of before.
// RUN: echo old > %t/opt.mlir
// RUN: sed 's/x4x?xf32/x5x?xf32/' %s > %t/bad.mlir
// RUN: not attnfuse-opt %t/bad.mlir -o %t/opt.mlir
// RUN: grep -x old %t/opt.mlir
// RUN: ln -s /dev/null %t/null.mlir
// RUN: not attnfuse-opt %t/bad.mlir -o %t/null.mlir
// RUN: readlink %t/null.mlir
// RUN: attnfuse-opt %t/in.mlir -o %t/opt.mlir
// RUN: FileCheck %s --check-prefix=OPT < %t/opt.mlir
// OPT: func.func @attend

// A standard output that takes nothing is an error that says so.
// RUN: not sh -c "attnfuse-compile %t/in.mlir --chip=sm_80 -o - > /dev/full" 2>&1 | FileCheck %s --check-prefix=FULL -DTOOL=compile
// RUN: not sh -c "attnfuse-compile %t/in.mlir --chip=sm_80 --explain -o /dev/null > /dev/full" 2>&1 | FileCheck %s --check-prefix=FULL -DTOOL=compile
// RUN: not sh -c "attnfuse-opt %t/in.mlir > /dev/full" 2>&1 | FileCheck %s --check-prefix=FULL -DTOOL=opt
// RUN: not sh -c "attnfuse-run %t/in.mlir --device=cpu --random=1 > /dev/full" 2>&1 | FileCheck %s --check-prefix=FULL -DTOOL=run
// FULL: attnfuse-[[TOOL]]: error: cannot write to standard output: No space left on device

// RUN: ls %t | FileCheck %s --check-prefix=FILES --implicit-check-not=tmp --implicit-check-not=out.ptx --implicit-check-not=std.json
// FILES: a.npy

func.func @attend(%q: tensor<?x4x?x16xf16>, %k: tensor<?x4x?x16xf16>, %v: tensor<?x4x?x16xf16>)
    -> (tensor<?x4x?x16xf16>, tensor<?x4x?xf32>) {
  %o, %lse = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.25 : f64}
      : (tensor<?x4x?x16xf16>, tensor<?x4x?x16xf16>, tensor<?x4x?x16xf16>) -> (tensor<?x4x?x16xf16>, tensor<?x4x?xf32>)
  return %o, %lse : tensor<?x4x?x16xf16>, tensor<?x4x?xf32>
}
