//===- Inputs.h - Arguments of a function, given or made up -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_RUNNER_INPUTS_H
#define ATTNFUSE_RUNNER_INPUTS_H

#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Support/HostTensor.h"
#include <map>
#include <set>

namespace mlir::attnfuse {

/// What the user gives for one call.
struct InputSpec {
  /// Tensors by argument name.
  std::map<std::string, ::attnfuse::HostTensor> given;
  /// Makes up the arguments that are not given.
  std::optional<uint64_t> seed;
  /// "B=2,N=4096": keys of DimensionSizes.
  std::string dims;
  /// Keys of `dims`, and names of `given`, that another function of the same
  /// run has: a function that has them not leaves them alone.
  std::set<std::string> foreignDims, foreignArguments;
};

/// All that one call needs.
struct Call {
  std::vector<::attnfuse::HostTensor> arguments;
  /// Shaped, every byte 0xff (NaN in all float types).
  std::vector<::attnfuse::HostTensor> results;
  DimensionSizes sizes;
};

/// True if `key` of --dims sets something in the function: a dimension's name,
/// ARGUMENT.DIM or an alias.
bool hasDimension(const DimensionClasses &classes, StringRef key);

/// The keys of "B=2,N=4096".
SmallVector<StringRef> getDimsKeys(StringRef dims);

/// Sizes from --dims and the given tensors, then the arguments: the given ones
/// checked (validateInputs), the others random. Where nothing else sets them
/// and there is a seed, sizes are small odd ones, tables as long as the
/// positions need and block lists as long as they come out. `classes` must
/// outlive the call.
llvm::Expected<Call> prepareCall(const DimensionClasses &classes,
                                 const InputSpec &spec);

/// Checks that the arguments and results fit in this machine's memory. Expects
/// all sizes to be known.
llvm::Error checkMemory(const DimensionClasses &classes,
                        const DimensionSizes &sizes);

/// Checks what types cannot: block lists (spec: offsets ascend, columns
/// strictly increase and lie in range) and that the tables have a row for
/// every position that an offset leads to. Errors name the argument.
llvm::Error validateInputs(const DimensionClasses &classes,
                           const DimensionSizes &sizes,
                           ArrayRef<::attnfuse::HostTensor> arguments);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_RUNNER_INPUTS_H
