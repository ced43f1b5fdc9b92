// RUN: attnfuse-opt %s --allow-unregistered-dialect --attnfuse-simplify --convert-attnfuse-to-gpu | FileCheck %s

// Ops of dialects that nobody registered are none of the passes' business.
// CHECK:     func.func @other
// CHECK:       "unknown.op"
// CHECK-NOT: gpu.module
func.func @other() {
  "unknown.op"() : () -> ()
  return
}
