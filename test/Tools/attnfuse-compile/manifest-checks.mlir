// A call is checked for what the types leave open, and for nothing else.

// RUN: rm -rf %t && mkdir %t
// RUN: attnfuse-compile %s --chip=sm_80 -o %t/out.ptx
// RUN: %python -c "import json, sys; [print(f['name'], c['holds']) for f in json.load(open(sys.argv[1]))['functions'] for c in f['checks'] or [{'holds': 'none'}]]" %t/out.json | FileCheck %s

// CHECK: fixed none
// CHECK-NEXT: open ['eq', ['mod', 'Hq', ['max', 'Hkv', 1]], 0]
// CHECK-NEXT: open ['le', 'Nq', 1073741823]
// CHECK-NEXT: open ['le', 'Nkv', 1073741823]
// CHECK-NEXT: open ['le', 'Hq', 1073741823]
// CHECK-NEXT: open ['le', ['add', 2, 'Nq'], 32]
// CHECK-NEXT: offset ['le', ['add', ['add', 2, 'offset'], 16], 32]
// CHECK-NEXT: offset ['le', 0, ['add', 2, 'offset']]
// CHECK-NOT: {{.}}

func.func @fixed(%q: tensor<1x2x16x16xf16>, %k: tensor<1x1x16x16xf16>, %cos: tensor<32x8xf32>, %sin: tensor<32x8xf32>) -> tensor<1x2x16x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 2>(%cos, %sin) softmax {scale = 0.25 : f64}
    : (tensor<1x2x16x16xf16>, tensor<1x1x16x16xf16>, tensor<1x1x16x16xf16>, tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<1x2x16x16xf16>
  return %o : tensor<1x2x16x16xf16>
}

func.func @open(%q: tensor<1x?x?x16xf16>, %k: tensor<1x?x?x16xf16>, %cos: tensor<32x8xf32>, %sin: tensor<32x8xf32>) -> tensor<1x?x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 2>(%cos, %sin) softmax {scale = 0.25 : f64}
    : (tensor<1x?x?x16xf16>, tensor<1x?x?x16xf16>, tensor<1x?x?x16xf16>, tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<1x?x?x16xf16>
  return %o : tensor<1x?x?x16xf16>
}

func.func @offset(%q: tensor<1x2x16x16xf16>, %cos: tensor<32x8xf32>, %sin: tensor<32x8xf32>, %offset: i64) -> tensor<1x2x16x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) rotate_q <half, offset = 2>(%cos, %sin, offset %offset) softmax {scale = 0.25 : f64}
    : (tensor<1x2x16x16xf16>, tensor<1x2x16x16xf16>, tensor<1x2x16x16xf16>, tensor<32x8xf32>, tensor<32x8xf32>, i64) -> tensor<1x2x16x16xf16>
  return %o : tensor<1x2x16x16xf16>
}
