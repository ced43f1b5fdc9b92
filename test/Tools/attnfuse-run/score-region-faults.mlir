// Divisions by zero and loads outside of a tensor (spec S14): the CPU path does not end the process, and the
// reference names the op.

// RUN: attnfuse-run %s --random=1
// RUN: attnfuse-run %s --random=1 --dims=E.0=0 --function=load
// RUN: not attnfuse-run %s --random=1 --check 2>&1 | FileCheck %s
// CHECK-DAG: attnfuse-run: error: divide: {{.*}}score-region-faults.mlir:[[#@LINE+8]]:14: 'arith.divsi' in a score region divides by 0
// CHECK-DAG: attnfuse-run: error: load: {{.*}}score-region-faults.mlir:[[#@LINE+28]]:14: 'tensor.extract' in a score region reads outside of its tensor
// CHECK-DAG: in_range [{{.*}}] on cpu
// CHECK-DAG: 1 passed, 2 failed

func.func @divide(%q: tensor<1x2x9x16xf16>) -> tensor<1x2x9x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
        %x = arith.divsi %i, %j : index
        %r = arith.remui %x, %h : index
        %min = arith.constant -2147483648 : i32
        %n = arith.index_cast %r : index to i32
        %one = arith.constant 1 : i32
        %m = arith.subi %n, %one : i32
        %overflow = arith.divsi %min, %m : i32
        %f = arith.sitofp %overflow : i32 to f32
        %y = arith.addf %s, %f : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>) -> tensor<1x2x9x16xf16>
  return %o : tensor<1x2x9x16xf16>
}

func.func @load(%q: tensor<1x2x9x16xf16>, %t: tensor<?xf32> {attnfuse.name = "E"}) -> tensor<1x2x9x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %u: tensor<?xf32>):
        %big = arith.constant 100000000000 : index
        %x = arith.muli %i, %big : index
        %d = arith.subi %x, %j : index
        %e = tensor.extract %u[%d] : tensor<?xf32>
        %y = arith.addf %s, %e : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>, tensor<1x2x9x16xf16>, tensor<?xf32>) -> tensor<1x2x9x16xf16>
  return %o : tensor<1x2x9x16xf16>
}

// A relative position, and a guarded divisor.
func.func @in_range(%q: tensor<1x2x?x16xf16>, %t: tensor<5xf32> {attnfuse.name = "table"}) -> tensor<1x2x?x16xf16> {
  %o = attnfuse.attention q(%q) k(%q) v(%q) softmax score operands(%t) {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index, %u: tensor<5xf32>):
        %one = arith.constant 1 : index
        %four = arith.constant 4 : index
        %divisor = arith.maxui %h, %one : index
        %d = arith.divui %j, %divisor : index
        %e = arith.minui %d, %four : index
        %x = tensor.extract %u[%e] : tensor<5xf32>
        %y = arith.addf %s, %x : f32
        attnfuse.yield %y : f32
      } {scale = 0.25 : f64}
      : (tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<5xf32>) -> tensor<1x2x?x16xf16>
  return %o : tensor<1x2x?x16xf16>
}
