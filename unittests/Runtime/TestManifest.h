//===- TestManifest.h - The manifest that the tests share -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_UNITTESTS_RUNTIME_TESTMANIFEST_H
#define ATTNFUSE_UNITTESTS_RUNTIME_TESTMANIFEST_H

#include "attnfuse/Runtime/Binding.h"

namespace attnfuse {

/// A contiguous tensor.
inline TensorView view(std::vector<int64_t> shape, ElementType type) {
  TensorView tensor{0x1000, type, shape, shape};
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    tensor.strides[i] = stride;
  return tensor;
}

inline std::string getErrorOf(const std::string &text) {
  Result<Manifest> manifest = parseManifest(text);
  return manifest ? "no error" : manifest.error().message;
}

/// q and k of one function with a scalar, a check and one kernel.
constexpr char kTestManifest[] = R"json({
  "version": 1,
  "chip": "sm_80",
  "functions": [{
    "name": "f",
    "arguments": [
      {"name": "q", "role": "query", "type": "bf16",
       "shape": ["B", "Hq", "Nq", 128], "alignment": 16,
       "unit_inner_stride": true, "stride_multiple": 8},
      {"name": "k", "role": "key", "type": "bf16",
       "shape": ["B", "Hkv", "Nkv", 128], "alignment": 16,
       "unit_inner_stride": true, "stride_multiple": 8},
      {"name": "cos", "role": "q_cos", "type": "f32", "shape": ["P", 64]},
      {"name": "offset", "role": "q_offset", "type": "i64", "shape": []}
    ],
    "results": [
      {"name": "output", "role": "output", "type": "bf16",
       "shape": ["B", "Hq", "Nq", 128], "alignment": 16,
       "unit_inner_stride": true, "stride_multiple": 8}
    ],
    "checks": [
      {"holds": ["le", ["add", "Nq", "offset"], "P"],
       "message": "the rotary table has too few rows"}
    ],
    "kernels": [{
      "name": "f_kernel",
      "block": [128, 1, 1],
      "grid": [["mul", ["ceildiv", "Nq", 64], "B", "Hq"], 1, 1],
      "shared_memory": 65536,
      "parameters": [
        {"kind": "pointer", "of": "q"},
        {"kind": "stride", "of": "q", "dim": 1},
        {"kind": "pointer", "of": "output"},
        {"kind": "stride", "of": "output", "dim": 2},
        {"kind": "value", "value": ["sub", "Nkv", "offset"]}
      ]
    }]
  }]
})json";

} // namespace attnfuse

#endif // ATTNFUSE_UNITTESTS_RUNTIME_TESTMANIFEST_H
