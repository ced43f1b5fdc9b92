// RUN: attnfuse-opt %s --attnfuse-outline --split-input-file | FileCheck %s
// Nothing is left to do the second time.
// RUN: attnfuse-opt %s --attnfuse-outline --split-input-file > %t.once
// RUN: attnfuse-opt %s --attnfuse-outline --attnfuse-outline --split-input-file | diff - %t.once

// Two attentions among other ops: results go to tensors of the queries' sizes,
// and what one computes is the other's operand.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x4x?x64xf16> {attnfuse.name = "queries"}, %[[K:.*]]: tensor<?x4x?x64xf16>, %[[BIAS:.*]]: tensor<?x?xf32>
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[Q]], %{{.*}} : tensor<?x4x?x64xf16>
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[Q]], %{{.*}} : tensor<?x4x?x64xf16>
// CHECK:         %[[INIT:.*]] = tensor.empty(%[[B]], %[[N]]) : tensor<?x4x?x64xf16>
// CHECK:         %[[O:.*]] = attnfuse.launch @two_attention_0 ins(%[[Q]], %[[K]] : tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16>) outs(%[[INIT]] : tensor<?x4x?x64xf16>) {my.tag = 7 : i64} -> tensor<?x4x?x64xf16>
// CHECK:         %[[SUM:.*]] = arith.addf %[[O]], %[[Q]]
// CHECK:         attnfuse.launch @two_attention_1 ins(%[[SUM]], %[[K]], %[[BIAS]] :
// CHECK-SAME:      outs(%{{.*}}, %{{.*}} : tensor<?x4x?x64xf16>, tensor<?x4x?xf32>) -> tensor<?x4x?x64xf16>, tensor<?x4x?xf32>
// A public function that is one attention is host code too.
// CHECK-LABEL: func.func @alone(
// CHECK:         attnfuse.launch @alone_attention_0
// CHECK:         return
// CHECK-LABEL: func.func private @two_attention_0(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x4x?x64xf16> {attnfuse.name = "queries"}, %[[K:[^:]*]]: tensor<?x4x?x64xf16>) -> tensor<?x4x?x64xf16>
// CHECK:         %[[O:.*]] = attnfuse.attention q(%[[Q]]) k(%[[K]]) v(%[[K]]) softmax {my.tag = 7 : i64, scale = 1.250000e-01 : f64}
// CHECK:         return %[[O]]
// CHECK-LABEL: func.func private @two_attention_1(
// CHECK-SAME:    %{{.*}}, %{{.*}}, %{{.*}}: tensor<?x?xf32>)
// CHECK:         score operands(
// CHECK-LABEL: func.func private @alone_attention_0(
func.func @two(%q: tensor<?x4x?x64xf16> {attnfuse.name = "queries"}, %k: tensor<?x4x?x64xf16>,
               %bias: tensor<?x?xf32>) -> (tensor<?x4x?x64xf16>, tensor<?x4x?xf32>) {
  %o = attnfuse.attention q(%q) k(%k) v(%k) softmax {scale = 0.125 : f64, my.tag = 7 : i64}
      : (tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16>) -> tensor<?x4x?x64xf16>
  %sum = arith.addf %o, %q : tensor<?x4x?x64xf16>
  %p, %lse = attnfuse.attention q(%sum) k(%k) v(%k) softmax score operands(%bias) {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index,
         %nq: index, %nkv: index, %hq: index, %t: tensor<?x?xf32>):
      %x = tensor.extract %t[%i, %j] : tensor<?x?xf32>
      %y = arith.addf %s, %x : f32
      attnfuse.yield %y : f32
    } {scale = 0.125 : f64}
      : (tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16>, tensor<?x4x?x64xf16>, tensor<?x?xf32>)
      -> (tensor<?x4x?x64xf16>, tensor<?x4x?xf32>)
  return %p, %lse : tensor<?x4x?x64xf16>, tensor<?x4x?xf32>
}
func.func @alone(%q: tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16>
  return %o : tensor<1x4x16x64xf16>
}

// -----

// Names: what PTX does not allow is replaced, and what is taken is passed over.
// CHECK-LABEL: func.func private @_7_dots_attention_0()
// CHECK-LABEL: func.func @"7.dots"
// CHECK:         scf.for
// CHECK:           attnfuse.launch @_7_dots_attention_1
// CHECK-LABEL: func.func private @_7_dots_attention_1(
func.func private @_7_dots_attention_0()
func.func @"7.dots"(%q: tensor<1x4x16x64xf16>, %n: index) -> tensor<1x4x16x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> tensor<1x4x16x64xf16> {
    %o = attnfuse.attention q(%x) k(%q) v(%q) softmax {scale = 0.125 : f64}
        : (tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16>
    scf.yield %o : tensor<1x4x16x64xf16>
  }
  return %r : tensor<1x4x16x64xf16>
}

// -----

// A rotation before the op goes along where nobody else needs it.
// CHECK-LABEL: func.func @rotations(
// CHECK-SAME:    %[[Q:.*]]: tensor<1x4x?x64xf16>, %[[T:.*]]: tensor<512x32xf32>
// CHECK:         tensor.dim %[[Q]]
// CHECK-NOT:     attnfuse.rope
// CHECK:         %[[O:.*]] = attnfuse.launch @rotations_attention_0 ins(%[[Q]], %[[T]] :
// CHECK:         %[[K:.*]] = attnfuse.rope %[[Q]]
// CHECK:         attnfuse.launch @rotations_attention_1 ins(%[[O]], %[[K]] :
// CHECK-LABEL: func.func private @rotations_attention_0(
// CHECK:         %[[ONCE:.*]] = attnfuse.rope %{{.*}} half
// CHECK:         %[[TWICE:.*]] = attnfuse.rope %[[ONCE]]
// CHECK:         attnfuse.attention q(%[[TWICE]])
// CHECK-LABEL: func.func private @rotations_attention_1(
// CHECK-NOT:     attnfuse.rope
func.func @rotations(%q: tensor<1x4x?x64xf16>, %t: tensor<512x32xf32>) -> (tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>) {
  %once = attnfuse.rope %q, %t, %t half : tensor<1x4x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %twice = attnfuse.rope %once, %t, %t half : tensor<1x4x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %o = attnfuse.attention q(%twice) k(%q) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16>
  %k = attnfuse.rope %q, %t, %t half : tensor<1x4x?x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %p = attnfuse.attention q(%o) k(%k) v(%k) softmax {scale = 0.125 : f64}
      : (tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16>
  return %p, %k : tensor<1x4x?x64xf16>, tensor<1x4x?x64xf16>
}

// -----

// Constants that the kernel is made for go along; others are passed.
// CHECK-LABEL: func.func @constants(
// CHECK:         attnfuse.launch @constants_attention_0 ins(%{{[^,]*}} : tensor<1x4x64x64xf16>)
// CHECK-LABEL: func.func private @constants_attention_0(
// CHECK-SAME:    %{{[^,]*}}) -> tensor
// CHECK:         arith.constant dense<[0, 1]>
// CHECK:         blocks <64x64>
func.func @constants(%q: tensor<1x4x64x64xf16>) -> tensor<1x4x64x64xf16> {
  %rows = arith.constant dense<[0, 1]> : tensor<2xi32>
  %cols = arith.constant dense<0> : tensor<1xi32>
  %o = attnfuse.attention q(%q) k(%q) v(%q) blocks <64x64>(%rows, %cols) softmax {scale = 0.125 : f64}
      : (tensor<1x4x64x64xf16>, tensor<1x4x64x64xf16>, tensor<1x4x64x64xf16>,
         tensor<2xi32>, tensor<1xi32>) -> tensor<1x4x64x64xf16>
  return %o : tensor<1x4x64x64xf16>
}

// -----

// A graph region allows an op to be its own operand, and rotations in a circle.
// CHECK-LABEL: module @graph
// CHECK:         %[[Q:[0-9]+]] = attnfuse.rope %[[R:[0-9]+]], %
// CHECK:         %[[R]] = attnfuse.rope %[[Q]], %
// CHECK:         %[[O:[0-9]+]] = attnfuse.launch @attention_0 ins(%[[Q]], %[[O]] :
module @graph {
  %q = attnfuse.rope %r, %t, %t half : tensor<1x2x8x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %r = attnfuse.rope %q, %t, %t half : tensor<1x2x8x64xf16>, tensor<512x32xf32>, tensor<512x32xf32>
  %o = attnfuse.attention q(%q) k(%o) v(%q) softmax {scale = 0.125 : f64}
      : (tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16>
  %t = tensor.empty() : tensor<512x32xf32>
}
