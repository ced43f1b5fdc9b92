//===- DimensionClasses.h - Which dimensions are the same -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dimensions of the tensors of a function of attnfuse ops, grouped into
// classes of equal size, with a name for each class; and the sizes that a
// caller gives them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_ANALYSIS_DIMENSIONCLASSES_H
#define ATTNFUSE_ANALYSIS_DIMENSIONCLASSES_H

#include "attnfuse/Analysis/ArgumentRoles.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir::attnfuse {

/// Dimensions that must have one size in every call of the function.
struct DimensionClass {
  /// All its names, the first for messages: B, Hq, Hkv, Nq, Nkv, P (P_q and
  /// P_k where q and k have tables of different lengths), nnz, R (row offsets),
  /// D, Dv; else ARGUMENT.DIM.
  SmallVector<std::string, 2> names;
  std::optional<int64_t> staticSize;
  /// True if some tensor of the class leaves the size to run time.
  bool isDynamic = false;
  /// Set for the row offsets of a block-sparse mask, whose size is
  /// ceildiv(size of `queries`, queryBlock) + 1.
  struct Derived {
    unsigned queries;
    int64_t queryBlock;
  };
  std::optional<Derived> derived;
};

class DimensionClasses {
public:
  /// Groups the dimensions of all ranked tensors of `function`. Fails if two
  /// static sizes contradict each other, or if the function has no body.
  static llvm::Expected<DimensionClasses> analyze(func::FuncOp function);

  ArrayRef<DimensionClass> getClasses() const { return classes; }
  /// The class of a dimension of a tensor of the function.
  unsigned getClass(Value value, unsigned dim) const;

  /// The class that `key` names: one of its names or ARGUMENT.DIM.
  std::optional<unsigned> lookup(StringRef key) const;
  /// Keys that set several classes at once: H, N. Empty for any other.
  SmallVector<unsigned> lookupAlias(StringRef key) const;

  /// (Hq, Hkv): the first must be a multiple of the second.
  ArrayRef<std::pair<unsigned, unsigned>> getGroups() const { return groups; }

  ArrayRef<ArgumentRole> getArguments() const { return arguments; }
  ArrayRef<ArgumentRole> getResults() const { return results; }
  func::FuncOp getFunction() const { return function; }

private:
  friend class DimensionClassBuilder;
  func::FuncOp function;
  std::vector<ArgumentRole> arguments, results;
  SmallVector<DimensionClass> classes;
  llvm::DenseMap<std::pair<Value, unsigned>, unsigned> classOf;
  llvm::StringMap<unsigned> classByKey;
  SmallVector<std::pair<unsigned, unsigned>> groups;
};

/// The size of every class in one call.
class DimensionSizes {
public:
  /// Starts with the static sizes. `classes` must outlive this.
  explicit DimensionSizes(const DimensionClasses &classes);

  /// Sets a class by its key ("B", "N", "bias.2"). `origin` says in messages
  /// who wants the size ("--dims").
  llvm::Error set(StringRef key, int64_t size, StringRef origin);
  /// Sets the classes of an argument's dimensions from a shape, after checking
  /// its rank.
  llvm::Error setShape(unsigned argument, ArrayRef<int64_t> shape);
  /// Sets one class.
  llvm::Error set(unsigned dimClass, int64_t size, const Twine &origin);

  /// Computes the derived sizes and checks what must hold among sizes.
  /// Classes that are `optional` may stay without a size.
  llvm::Error finish(ArrayRef<unsigned> optional = {});

  std::optional<int64_t> get(unsigned dimClass) const {
    return sizes[dimClass].size;
  }
  /// Shapes after a successful finish(); empty for a scalar.
  std::vector<int64_t> getShape(Value value) const;
  std::vector<int64_t> getResultShape(unsigned result) const;

private:
  struct Size {
    std::optional<int64_t> size;
    std::string origin;
  };
  llvm::Error deriveSizes();

  const DimensionClasses &classes;
  SmallVector<Size> sizes;
};

} // namespace mlir::attnfuse

#endif // ATTNFUSE_ANALYSIS_DIMENSIONCLASSES_H
