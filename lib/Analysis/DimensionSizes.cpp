//===- DimensionSizes.cpp - The sizes of one call -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

static int64_t getRank(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

DimensionSizes::DimensionSizes(const DimensionClasses &classes)
    : classes(classes), sizes(classes.getClasses().size()) {
  for (auto [size, entry] : llvm::zip(sizes, classes.getClasses()))
    if (entry.staticSize)
      size = {entry.staticSize, "the function"};
}

llvm::Error DimensionSizes::set(unsigned dimClass, int64_t size,
                                const Twine &origin) {
  StringRef name = classes.getClasses()[dimClass].names.front();
  if (size < 0)
    return makeError("expected " + name + " of at least 0, got " + Twine(size) +
                     " from " + origin);
  Size &entry = sizes[dimClass];
  if (entry.size && *entry.size != size)
    return makeError("sizes contradict each other: " + name + " is " +
                     Twine(*entry.size) + " by " + entry.origin + ", but " +
                     Twine(size) + " by " + origin);
  if (!entry.size)
    entry = {size, origin.str()};
  return llvm::Error::success();
}

llvm::Error DimensionSizes::set(StringRef key, int64_t size, StringRef origin) {
  if (std::optional<unsigned> dimClass = classes.lookup(key))
    return set(*dimClass, size, origin);
  SmallVector<unsigned> alias = classes.lookupAlias(key);
  if (alias.empty()) {
    SmallVector<StringRef> known;
    for (const DimensionClass &entry : classes.getClasses())
      if (entry.isDynamic)
        known.append(entry.names.begin(), entry.names.end());
    func::FuncOp function = classes.getFunction();
    return makeError(
        "unknown dimension '" + key + "': function '" + function.getName() +
        "' has " +
        (known.empty() ? "no dynamic dimension" : llvm::join(known, ", ")));
  }
  // An alias leaves alone what is fixed or has been set by its own name.
  bool isSet = false;
  for (unsigned dimClass : alias) {
    const DimensionClass &entry = classes.getClasses()[dimClass];
    if (entry.staticSize || sizes[dimClass].origin == origin)
      continue;
    isSet = true;
    if (llvm::Error error = set(dimClass, size, origin))
      return error;
  }
  return isSet ? llvm::Error::success() : set(alias.front(), size, origin);
}

llvm::Error DimensionSizes::setShape(unsigned argument,
                                     ArrayRef<int64_t> shape) {
  func::FuncOp function = classes.getFunction();
  Value value = function.getArgument(argument);
  const std::string &name = classes.getArguments()[argument].name;
  int64_t rank = getRank(value);
  if (int64_t(shape.size()) != rank)
    return makeError("expected argument '" + name + "' of rank " + Twine(rank) +
                     ", got rank " + Twine(shape.size()));
  for (auto [dim, size] : llvm::enumerate(shape))
    if (llvm::Error error =
            set(classes.getClass(value, dim), size,
                "dimension " + Twine(dim) + " of argument '" + name + "'"))
      return error;
  return llvm::Error::success();
}

llvm::Error DimensionSizes::deriveSizes() {
  for (auto [number, entry] : llvm::enumerate(classes.getClasses())) {
    if (!entry.derived || !sizes[entry.derived->queries].size)
      continue;
    int64_t queries = *sizes[entry.derived->queries].size;
    int64_t block = entry.derived->queryBlock;
    if (llvm::Error error =
            set(number, queries / block + (queries % block != 0) + 1,
                Twine(queries) + " queries in blocks of " + Twine(block)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error DimensionSizes::finish(ArrayRef<unsigned> optional) {
  if (llvm::Error error = deriveSizes())
    return error;
  SmallVector<StringRef> missing;
  for (auto [number, size] : llvm::enumerate(sizes))
    if (!size.size && !llvm::is_contained(optional, number))
      missing.push_back(classes.getClasses()[number].names.front());
  if (!missing.empty())
    return makeError("missing sizes for " + llvm::join(missing, ", ") +
                     ": expected --dims " + llvm::join(missing, "=...,") +
                     "=...");
  for (auto [queryHeads, keyHeads] : classes.getGroups()) {
    int64_t hq = *sizes[queryHeads].size, hkv = *sizes[keyHeads].size;
    if (hkv == 0 ? hq != 0 : hq % hkv != 0)
      return makeError("expected " +
                       classes.getClasses()[queryHeads].names.front() +
                       " to be a multiple of " +
                       classes.getClasses()[keyHeads].names.front() + ", got " +
                       Twine(hq) + " and " + Twine(hkv));
  }
  return llvm::Error::success();
}

std::vector<int64_t> DimensionSizes::getShape(Value value) const {
  std::vector<int64_t> shape;
  for (int64_t dim = 0, rank = getRank(value); dim < rank; ++dim)
    shape.push_back(sizes[classes.getClass(value, dim)].size.value_or(0));
  return shape;
}

std::vector<int64_t> DimensionSizes::getResultShape(unsigned result) const {
  func::FuncOp function = classes.getFunction();
  return getShape(function.front().getTerminator()->getOperand(result));
}
