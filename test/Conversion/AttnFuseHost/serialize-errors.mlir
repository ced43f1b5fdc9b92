// RUN: attnfuse-opt %s --attnfuse-serialize-kernels --split-input-file --verify-diagnostics

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  // expected-note @+1 {{the first is here}}
  gpu.module @a attributes {attnfuse.manifest = "{}"} {
  }
  // expected-error @+1 {{expected all kernels in one gpu.module; run attnfuse-merge-kernels first}}
  gpu.module @b attributes {attnfuse.manifest = "{}"} {
  }
}

// -----

// expected-error @+1 {{no machine is given}}
gpu.module @a attributes {attnfuse.manifest = "{}"} {
}

// -----

module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  // expected-error @+1 {{'arith.addf' in a kernel has no lowering for the GPU}}
  gpu.module @a attributes {attnfuse.manifest = "{}"} {
    llvm.func @f(%x: vector<4xf32>) {
      %y = arith.addf %x, %x : vector<4xf32>
      llvm.return
    }
  }
}

// -----

// What is not JSON is refused too.
module attributes {attnfuse.target = #attnfuse.target<"sm_80">} {
  // expected-error @+1 {{Invalid JSON value}}
  gpu.module @a attributes {attnfuse.manifest = "not json"} {
  }
}
