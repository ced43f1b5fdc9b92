// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=split --attnfuse-select-schedule=key-splits=1 --convert-attnfuse-to-gpu -mlir-print-debuginfo -mlir-print-local-scope 2>/dev/null | FileCheck %s

// A tile has rows of 4 heads, 16 or 32 of each: boxes of heads and rows, and one row of a rotation's
// tables for the same row of every head.

module attributes {attnfuse.target = #attnfuse.target<"sm_90a">} {
// As many tiles as the rows of a fourth of the heads make; and a warpgroup stores a box.
// CHECK:       gpu.module @packed_kernels attributes {attnfuse.manifest = "
// CHECK-SAME:    \22grid\22:{{\[\[}}\22min\22,[\22mul\22,[\22ceildiv\22,\22Nq\22,16],[\22mul\22,\22B\22,8{{\]\]}},
// CHECK-SAME:    \22box\22:[4,16,64],\22kind\22:\22tensor_map\22,\22of\22:\22q\22
// CHECK-SAME:    \22box\22:[1,64,64],\22kind\22:\22tensor_map\22,\22of\22:\22k\22
// CHECK-SAME:    \22box\22:[4,16,64],\22kind\22:\22tensor_map\22,\22of\22:\22output\22
// CHECK-SAME:    \22grid\22:{{\[\[}}\22min\22,[\22mul\22,[\22ceildiv\22,\22Nq\22,32],[\22mul\22,\22B\22,8{{\]\]}},
// CHECK-SAME:    \22box\22:[4,32,64],\22kind\22:\22tensor_map\22,\22of\22:\22q\22
// CHECK-SAME:    \22box\22:[1,128,64],\22kind\22:\22tensor_map\22,\22of\22:\22k\22
// CHECK-SAME:    \22box\22:[2,32,64],\22kind\22:\22tensor_map\22,\22of\22:\22output\22

// A thread has the same position of 4 heads: of four units of the rotation, one loads tables.
// CHECK-LABEL: llvm.func @packed$few_rows(
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<8xf32> loc("rotate"
// CHECK-NOT:     llvm.load {{.*}} -> vector<8xf32>
// CHECK-COUNT-8: llvm.load {{.*}} -> vector<8xbf16> loc("rotate"
// Spare warps bring what the tables have for the 32 positions to shared memory, in rows of 256 bytes
// and 32 more; a lane takes its columns of two rows from there, whatever their head.
// CHECK-LABEL: llvm.func @packed(
// CHECK:         %[[CHUNKS:.*]] = arith.constant 512 : i32
// CHECK:         scf.for {{.*}} to %[[CHUNKS]] step %c96_i32
// CHECK-COUNT-2:   nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK:           cp.async.mbarrier.arrive.noinc
// CHECK:         setmaxregister increase
// CHECK:         ldmatrix
// CHECK:         arith.remui {{.*}}, %c32_i32
// CHECK-COUNT-64: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT:     llvm.load {{.*}} -> vector<8xf32>
func.func @packed(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x32x?x128xbf16> {
  %o = attnfuse.attention q(%q) k(%k) v(%k) rotate_q <half, offset = 0>(%cos, %sin) softmax {scale = 0.125 : f64}
      : (tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x32x?x128xbf16>
  return %o : tensor<?x32x?x128xbf16>
}
}
