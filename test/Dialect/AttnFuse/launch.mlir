// RUN: attnfuse-opt %s --verify-roundtrip --split-input-file --verify-diagnostics

func.func private @k(tensor<?x4x?x64xf16>, i64) -> tensor<?x4x?x64xf16>
func.func @tensors(%q: tensor<2x4x16x64xf16>, %n: i64, %init: tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16> {
  %o = attnfuse.launch @k ins(%q, %n : tensor<2x4x16x64xf16>, i64) outs(%init : tensor<2x4x16x64xf16>)
      stream(%n) -> tensor<2x4x16x64xf16>
  return %o : tensor<2x4x16x64xf16>
}
func.func @memrefs(%q: memref<?x4x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %n: i64, %out: memref<?x4x?x64xf16>) {
  attnfuse.launch @k ins(%q, %n : memref<?x4x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, i64)
      outs(%out : memref<?x4x?x64xf16>)
  return
}
gpu.module @kernels attributes {attnfuse.manifest = ["{}"]} {
}
func.func @nested(%q: memref<?x4x?x64xf16>) {
  attnfuse.launch @kernels::@f outs(%q : memref<?x4x?x64xf16>)
  return
}

// -----

func.func @no_symbol(%q: tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16> {
  // expected-error @+1 {{'attnfuse.launch' op expected '@k' to be a function or kernels, got no such symbol}}
  %o = attnfuse.launch @k outs(%q : tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16>
  return %o : tensor<2x4x16x64xf16>
}

// -----

// expected-note @+1 {{it is this}}
gpu.module @theirs {
}
func.func @not_ours(%q: tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16> {
  // expected-error @+1 {{expected '@theirs::@f' to be a function, or one of kernels with a manifest}}
  %o = attnfuse.launch @theirs::@f outs(%q : tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16>
  return %o : tensor<2x4x16x64xf16>
}

// -----

func.func private @k(tensor<?x4x?x64xf16>) -> tensor<?x4x?x64xf16>
func.func @count(%q: tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16> {
  // expected-error @+1 {{expected 1 inputs for 'k', got 0}}
  %o = attnfuse.launch @k outs(%q : tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16>
  return %o : tensor<2x4x16x64xf16>
}

// -----

func.func private @k(tensor<?x4x?x64xf16>) -> tensor<?x4x?x64xf16>
func.func @type(%q: tensor<2x4x16x64xf16>, %x: tensor<2x5x16x64xf16>) -> tensor<2x4x16x64xf16> {
  // expected-error @+1 {{expected inputs 0 for 'k' to be a 'tensor<?x4x?x64xf16>', got 'tensor<2x5x16x64xf16>'}}
  %o = attnfuse.launch @k ins(%x : tensor<2x5x16x64xf16>) outs(%q : tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16>
  return %o : tensor<2x4x16x64xf16>
}

// -----

func.func private @k(tensor<?x4x?x64xf16>) -> tensor<?x4x?x64xf16>
func.func @mixed(%q: tensor<2x4x16x64xf16>, %x: memref<2x4x16x64xf16>) -> tensor<2x4x16x64xf16> {
  // expected-error @+1 {{expected all operands to be tensors or all to be memrefs, got both}}
  %o = attnfuse.launch @k ins(%x : memref<2x4x16x64xf16>) outs(%q : tensor<2x4x16x64xf16>) -> tensor<2x4x16x64xf16>
  return %o : tensor<2x4x16x64xf16>
}

// -----

func.func private @k()
func.func @no_outs() {
  // expected-error @+1 {{expected a tensor or memref for each result of the kernel, got none}}
  "attnfuse.launch"() {kernel = @k, operandSegmentSizes = array<i32: 0, 0, 0>} : () -> ()
  return
}
