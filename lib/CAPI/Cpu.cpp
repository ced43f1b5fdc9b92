//===- Cpu.cpp - C interface of functions on the host ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Cpu.h"
#include "Errors.h"
#include "ModuleText.h"
#include "attnfuse/Execution/CpuExecutable.h"
#include "attnfuse/Execution/HostTypes.h"
#include "attnfuse/Runner/Inputs.h"
#include "attnfuse/Support/MakeError.h"

using namespace mlir;
using namespace mlir::attnfuse;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

/// The classes look at types of the module, and at nothing that changes.
struct AttnfuseCpuFunction {
  ModuleText text;
  std::optional<DimensionClasses> classes;
  std::unique_ptr<CpuExecutable> code;
};

namespace {
/// A tensor in the caller's memory.
struct HostView {
  char *data = nullptr;
  ElementType type = ElementType::F32;
  ArrayRef<int64_t> sizes, strides;

  int64_t getNumElements() const {
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    return count;
  }
};
} // namespace

static std::optional<ElementType> getElementType(int32_t type) {
  switch (type) {
  case ATTNFUSE_F16:
    return ElementType::F16;
  case ATTNFUSE_BF16:
    return ElementType::BF16;
  case ATTNFUSE_F32:
    return ElementType::F32;
  case ATTNFUSE_F64:
    return ElementType::F64;
  case ATTNFUSE_I32:
    return ElementType::I32;
  case ATTNFUSE_I64:
    return ElementType::I64;
  default:
    return std::nullopt;
  }
}

/// Checks `value` against the type that the function declares.
static llvm::Expected<HostView> getView(const AttnfuseValue &value, Type type,
                                        const Twine &what) {
  std::optional<ElementType> element = getElementType(value.type);
  ElementType expected = *getHostElementType(type);
  if (!element || *element != expected)
    return makeError(
        what + ": expected " + ::attnfuse::getElementName(expected) +
        " elements, got " +
        (element ? Twine(StringRef(::attnfuse::getElementName(*element)))
                 : Twine("the unknown type ") + Twine(value.type)));
  int64_t rank = cast<RankedTensorType>(type).getRank();
  if (value.rank != rank)
    return makeError(what + ": expected " + Twine(rank) + " dimensions, got " +
                     Twine(value.rank));
  if (rank > ATTNFUSE_MAX_RANK)
    return makeError(what + ": expected at most " + Twine(ATTNFUSE_MAX_RANK) +
                     " dimensions, got " + Twine(rank));
  HostView view{static_cast<char *>(value.data), *element,
                ArrayRef(value.sizes, rank), ArrayRef(value.strides, rank)};
  for (auto [dim, size] : llvm::enumerate(view.sizes))
    if (size < 0)
      return makeError(what + ": expected dimension " + Twine(dim) +
                       " to be at least 0, got " + Twine(size));
  if (!view.data && !llvm::is_contained(view.sizes, 0))
    return makeError(what + ": expected memory, got a null pointer");
  return view;
}

/// Calls `copy(host, view, bytes)` with the places of each run of elements that
/// lie together in `view`; `host` is the row-major place.
template <typename Copy>
static void forEachRun(const HostView &view, Copy &&copy) {
  int64_t width = ::attnfuse::getElementSize(view.type);
  int64_t count = view.getNumElements();
  if (count == 0)
    return;
  // Dimensions that lie together, from the last one outwards.
  int64_t run = 1;
  size_t outer = view.sizes.size();
  while (outer > 0 &&
         (view.sizes[outer - 1] == 1 || view.strides[outer - 1] == run)) {
    run *= view.sizes[outer - 1];
    --outer;
  }
  SmallVector<int64_t> index(outer, 0);
  char *place = view.data;
  for (int64_t host = 0; host < count; host += run) {
    copy(host * width, place, run * width);
    for (size_t dim = outer; dim-- > 0;) {
      place += view.strides[dim] * width;
      if (++index[dim] < view.sizes[dim])
        break;
      place -= view.strides[dim] * view.sizes[dim] * width;
      index[dim] = 0;
    }
  }
}

static HostTensor load(const HostView &view) {
  HostTensor tensor(view.type,
                    std::vector<int64_t>(view.sizes.begin(), view.sizes.end()));
  forEachRun(view, [&](int64_t host, const char *place, int64_t bytes) {
    std::memcpy(tensor.data() + host, place, bytes);
  });
  return tensor;
}

static void store(const HostTensor &tensor, const HostView &view) {
  forEachRun(view, [&](int64_t host, char *place, int64_t bytes) {
    std::memcpy(place, tensor.data() + host, bytes);
  });
}

static llvm::Error checkCount(size_t expected, size_t actual,
                              const Twine &what) {
  if (expected == actual)
    return llvm::Error::success();
  return makeError("expected " + Twine(expected) + " " + what + ", got " +
                   Twine(actual));
}

static llvm::Error run(const AttnfuseCpuFunction &function,
                       ArrayRef<AttnfuseValue> arguments,
                       ArrayRef<AttnfuseValue> results) {
  const DimensionClasses &classes = *function.classes;
  func::FuncOp op = classes.getFunction();
  FunctionType type = op.getFunctionType();
  if (llvm::Error error =
          checkCount(type.getNumInputs(), arguments.size(), "arguments"))
    return error;
  if (llvm::Error error =
          checkCount(type.getNumResults(), results.size(), "results"))
    return error;

  DimensionSizes sizes(classes);
  std::vector<HostTensor> hostArguments, hostResults;
  // Those of scalars stay empty.
  SmallVector<HostView> argumentViews(arguments.size()), resultViews;
  for (auto [index, value] : llvm::enumerate(arguments)) {
    Type expected = type.getInput(index);
    if (!isa<RankedTensorType>(expected))
      continue;
    auto view =
        getView(value, expected,
                "argument '" + classes.getArguments()[index].name + "'");
    if (!view)
      return view.takeError();
    if (llvm::Error error = sizes.setShape(index, view->sizes))
      return error;
    argumentViews[index] = *view;
  }
  if (llvm::Error error = sizes.finish())
    return error;
  // Strides of 0 describe any number of elements; what is copied has all.
  if (llvm::Error error = checkMemory(classes, sizes))
    return error;
  for (auto [index, value] : llvm::enumerate(arguments)) {
    Type expected = type.getInput(index);
    if (isa<RankedTensorType>(expected)) {
      hostArguments.push_back(load(argumentViews[index]));
      continue;
    }
    hostArguments.emplace_back(*getHostElementType(expected),
                               std::vector<int64_t>());
    hostArguments.back().setInt(0, value.scalar);
  }
  if (llvm::Error error = validateInputs(classes, sizes, hostArguments))
    return error;
  for (auto [index, value] : llvm::enumerate(results)) {
    std::string what = "result '" + classes.getResults()[index].name + "'";
    auto view = getView(value, type.getResult(index), what);
    if (!view)
      return view.takeError();
    std::vector<int64_t> shape = sizes.getResultShape(index);
    for (auto [dim, size] : llvm::enumerate(view->sizes))
      if (size != shape[dim])
        return makeError(what + ": expected dimension " + Twine(dim) +
                         " to be " + Twine(shape[dim]) + ", got " +
                         Twine(size));
    hostResults.emplace_back(view->type, shape);
    resultViews.push_back(*view);
  }
  if (llvm::Error error = function.code->run(hostArguments, hostResults))
    return error;
  for (auto [tensor, view] : llvm::zip_equal(hostResults, resultViews))
    store(tensor, view);
  return llvm::Error::success();
}

static llvm::Error compile(StringRef source, StringRef name,
                           DiagnosticSink &sink,
                           AttnfuseCpuFunction &function) {
  if (llvm::Error error = function.text.parse(source, sink))
    return error;
  ModuleOp module = function.text.getModule();
  auto code = CpuExecutable::compile(module, name);
  if (!code)
    return code.takeError();
  function.code = std::move(*code);
  auto classes =
      DimensionClasses::analyze(module.lookupSymbol<func::FuncOp>(name));
  if (!classes)
    return classes.takeError();
  function.classes = std::move(*classes);
  return llvm::Error::success();
}

extern "C" {

AttnfuseCpuFunction *attnfuseCpuCompile(const char *source, size_t length,
                                        const char *function,
                                        AttnfuseDiagnosticHandler handler,
                                        void *userData) {
  initializeTargets();
  DiagnosticSink sink(handler, userData);
  auto result = std::make_unique<AttnfuseCpuFunction>();
  if (llvm::Error error = runGuarded(
          [&] { return compile({source, length}, function, sink, *result); })) {
    sink.fail(std::move(error));
    return nullptr;
  }
  return result.release();
}

void attnfuseCpuFunctionDestroy(AttnfuseCpuFunction *function) {
  delete function;
}

int attnfuseCpuFunctionRun(const AttnfuseCpuFunction *function,
                           const AttnfuseValue *arguments, size_t numArguments,
                           const AttnfuseValue *results, size_t numResults) {
  if (llvm::Error error = run(*function, ArrayRef(arguments, numArguments),
                              ArrayRef(results, numResults))) {
    setLastError(llvm::toString(std::move(error)));
    return 1;
  }
  return 0;
}

} // extern "C"
