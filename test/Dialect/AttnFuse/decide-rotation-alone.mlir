// Nothing before the pass has loaded the dialect.
//
// RUN: attnfuse-opt %s --attnfuse-decide-rotation | FileCheck %s
// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=fused | FileCheck %s
// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=split | FileCheck %s
// RUN: attnfuse-opt %s --attnfuse-decide-rotation=way=split_both | FileCheck %s

// CHECK: func.func @other()
func.func @other() {
  return
}
