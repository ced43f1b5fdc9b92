// RUN: attnfuse-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected 'attnfuse.name' of argument 1 to be a string that is not empty, got 1 : i64}}
func.func @number(%q: tensor<1xf32> {attnfuse.name = "q"}, %k: tensor<1xf32> {attnfuse.name = 1}) {
  return
}

// -----

// expected-error @below {{expected 'attnfuse.name' of result 0 to be a string that is not empty, got ""}}
func.func @empty(%q: tensor<1xf32>) -> (tensor<1xf32> {attnfuse.name = ""}) {
  return %q : tensor<1xf32>
}

// -----

// expected-error @below {{unknown attribute 'attnfuse.nam' of argument 0: expected 'attnfuse.name', or a name without 'attnfuse.'}}
func.func @misspelt(%q: tensor<1xf32> {attnfuse.nam = "q"}) {
  return
}

// -----

// expected-error @below {{unknown attribute 'attnfuse.target' of result 0}}
func.func private @target_of_result() -> (tensor<1xf32> {attnfuse.target = #attnfuse.target<"sm_80">})

// -----

// expected-error @below {{expected 'attnfuse.name' on an argument or result of a function, got it on 'func.func'}}
func.func @name_of_function() attributes {attnfuse.name = "f"} {
  return
}

// -----

// expected-error @below {{unknown attribute 'attnfuse.tune': expected 'attnfuse.target', or a name without 'attnfuse.'}}
module attributes {attnfuse.tune} {
}

// -----

// expected-error @below {{expected 'attnfuse.target' to be a target such as #attnfuse.target<"sm_80">, got "sm_80"}}
module attributes {attnfuse.target = "sm_80"} {
}

// -----

// expected-error @below {{expected 'attnfuse.manifest' to be a string or an array of strings, got}}
module attributes {attnfuse.manifest = {}} {
}

// -----

func.func @on_an_op(%s: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  // expected-error @below {{unknown attribute 'attnfuse.note'}}
  %m = attnfuse.causal %s top_left {attnfuse.note = 1} : tensor<1x1x4x4xf32>
  return %m : tensor<1x1x4x4xf32>
}

// -----

// expected-error @below {{expected 'attnfuse.stream', without a value, on an i64 argument, got it on argument 0 of type 'i32'}}
func.func private @stream(i32 {attnfuse.stream})
