// Arithmetic on tensors and loops around an attention on the CPU.

// RUN: attnfuse-run %s --random=1 --dims=N=9 --check --function=factors | FileCheck %s --check-prefix=FACTORS
// FACTORS: factors [Nq=9, Nkv=9] on cpu
// FACTORS: PASS
func.func @factors(%q: tensor<1x2x?x16xf16>, %k: tensor<1x2x?x16xf16>, %v: tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf32> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) softmax {scale = 0.25 : f64}
      : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> tensor<1x2x?x16xf16>
  %n = arith.negf %o : tensor<1x2x?x16xf16>
  %p = arith.mulf %n, %q : tensor<1x2x?x16xf16>
  %e = arith.extf %p : tensor<1x2x?x16xf16> to tensor<1x2x?x16xf32>
  return %e : tensor<1x2x?x16xf32>
}

// RUN: attnfuse-run %s --random=1 --check --function=before | FileCheck %s --check-prefix=BEFORE
// BEFORE: PASS
func.func @before(%q: tensor<1x2x8x16xbf16>, %k: tensor<1x2x8x16xbf16>, %v: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  %third = arith.constant dense<0.333> : tensor<1x2x8x16xbf16>
  %three = arith.constant dense<3.0> : tensor<1x2x8x16xbf16>
  %q2 = arith.mulf %q, %third : tensor<1x2x8x16xbf16>
  %k2 = arith.divf %k, %three : tensor<1x2x8x16xbf16>
  %s = attnfuse.scaled_dot_product %q2, %k2 {scale = 4.0} : tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x8xf32>
  %p = attnfuse.softmax %s : tensor<1x2x8x8xf32>
  %o = attnfuse.weighted_sum %p, %v : tensor<1x2x8x8xf32>, tensor<1x2x8x16xbf16> -> tensor<1x2x8x16xbf16>
  return %o : tensor<1x2x8x16xbf16>
}

// A loop that carries the result gives what two attentions give.
// RUN: attnfuse-run %s --random=1 --function=loop --output=result0=%t.loop.npy
// RUN: attnfuse-run %s --random=1 --function=unrolled --output=result0=%t.unrolled.npy
// RUN: cmp %t.loop.npy %t.unrolled.npy
func.func @loop(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %q) -> tensor<1x2x8x16xf16> {
    %o = attnfuse.attention q(%x) k(%k) v(%k) softmax {scale = 0.25 : f64}
        : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
    %t = math.tanh %o : tensor<1x2x8x16xf16>
    scf.yield %t : tensor<1x2x8x16xf16>
  }
  return %r : tensor<1x2x8x16xf16>
}
func.func @unrolled(%q: tensor<1x2x8x16xf16> {attnfuse.name = "arg0"}, %k: tensor<1x2x8x16xf16> {attnfuse.name = "arg1"}) -> tensor<1x2x8x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  %t = math.tanh %o : tensor<1x2x8x16xf16>
  %o1 = attnfuse.attention q(%t) k(%k) v(%k) softmax {scale = 0.25 : f64}
      : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  %t1 = math.tanh %o1 : tensor<1x2x8x16xf16>
  return %t1 : tensor<1x2x8x16xf16>
}

// A copy between two layouts.
// RUN: attnfuse-run %s --random=1 --function=pad --output=result0=%t.pad.npy
// RUN: %python -c "import numpy; a = numpy.load(r'%t.pad.npy'); assert a.shape == (1, 2, 8, 16) and numpy.isfinite(a).all() and (a[:, :, 2:] == 0).all() and (a[:, :, :2] != 0).any()"
func.func @pad(%q: tensor<1x2x2x16xf32>) -> tensor<1x2x8x16xf32> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.25 : f64}
      : (tensor<1x2x2x16xf32>, tensor<1x2x2x16xf32>, tensor<1x2x2x16xf32>) -> tensor<1x2x2x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x2x8x16xf32>
  %p = tensor.insert_slice %o into %zero[0, 0, 0, 0] [1, 2, 2, 16] [1, 1, 1, 1] : tensor<1x2x2x16xf32> into tensor<1x2x8x16xf32>
  return %p : tensor<1x2x8x16xf32>
}

// What has no lowering is named, with its place.
// RUN: not attnfuse-run %s --random=1 --function=unknown 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: attnfuse-run: error: function 'unknown' does not lower to host code: {{.*}}code-around.mlir:[[#@LINE+2]]:8: op was not bufferized
func.func @unknown(%t: tensor<7x5xf32>, %n: tensor<3x1xi32>) -> tensor<3x1x5xf32> {
  %r = tensor.gather %t[%n] gather_dims([0]) : (tensor<7x5xf32>, tensor<3x1xi32>) -> tensor<3x1x5xf32>
  return %r : tensor<3x1x5xf32>
}
