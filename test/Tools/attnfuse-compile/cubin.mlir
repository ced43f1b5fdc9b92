// REQUIRES: ptxas
// RUN: mkdir -p %t/cuda/bin %t/bad/bin && ln -sf %ptxas %t/cuda/bin/ptxas
// RUN: env CUDA_HOME=%t/cuda attnfuse-compile %s --chip=sm_80 --emit=cubin -o %t/out.cubin
// RUN: od -A n -t x1 -N 4 %t/out.cubin | FileCheck %s --check-prefix=ELF
// RUN: FileCheck %s --check-prefix=MANIFEST < %t/out.json

// An assembler that fails is quoted.
// RUN: printf '#!/bin/sh\necho out of luck >&2\nexit 3\n' > %t/bad/bin/ptxas && chmod +x %t/bad/bin/ptxas
// RUN: not env CUDA_HOME=%t/bad attnfuse-compile %s --chip=sm_80 --emit=cubin -o %t/none.cubin 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not ls %t/none.cubin %t/none.json

// ELF: 7f 45 4c 46
// MANIFEST: "functions"
// BAD: attnfuse-compile: error: {{.*}}bad/bin/ptxas does not assemble the PTX for sm_80: out of luck

func.func @f(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %s = attnfuse.scaled_dot_product %q, %q : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %p = attnfuse.softmax %s : tensor<?x?x?x?xf32>
  %o = attnfuse.weighted_sum %p, %q : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
