//===- CpuExecutable.cpp - Executes a function on the host ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Execution/CpuExecutable.h"

#include "BufferArena.h"
#include "HostCode.h"
#include "attnfuse/Execution/HostTypes.h"
#include "attnfuse/Pipelines/Pipelines.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"

namespace mlir::attnfuse {
namespace {

using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

/// What a function's type says about an argument or result.
struct ValueSpec {
  ElementType elementType;
  bool isTensor;
  SmallVector<int64_t> shape;
};

class CompiledFunction : public CpuExecutable {
public:
  CompiledFunction(StringRef name, SmallVector<ValueSpec> arguments,
                   SmallVector<ValueSpec> results,
                   std::unique_ptr<HostCode> code)
      : name(name), arguments(std::move(arguments)),
        results(std::move(results)), code(std::move(code)) {}

  llvm::Error run(llvm::ArrayRef<HostTensor> arguments,
                  llvm::MutableArrayRef<HostTensor> results) override;

private:
  std::string name;
  SmallVector<ValueSpec> arguments, results;
  std::unique_ptr<HostCode> code;
};

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

template <typename... Parts>
llvm::Error makeError(const Parts &...parts) {
  std::string message;
  llvm::raw_string_ostream os(message);
  (os << ... << parts);
  return llvm::createStringError(message);
}

std::string formatShape(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(shape, os, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      os << "?";
    else
      os << size;
  });
  os << "]";
  return text;
}

llvm::Expected<ValueSpec> getSpec(Type type, StringRef function, StringRef kind,
                                  unsigned index) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::optional<ElementType> element = getHostElementType(type);
  if (!element || (kind == "result" && !tensor)) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return makeError(kind, " ", index, " of '", function,
                     "': expected a ranked tensor",
                     kind == "result" ? "" : " or a scalar",
                     " of f16, bf16, f32, f64, i32 or i64, got ", name);
  }
  SmallVector<int64_t> shape;
  if (tensor)
    shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  return ValueSpec{*element, bool(tensor), shape};
}

llvm::Error checkTensor(const HostTensor &tensor, const ValueSpec &spec,
                        StringRef function, StringRef kind, unsigned index) {
  if (tensor.getType() != spec.elementType)
    return makeError(kind, " ", index, " of '", function, "': expected ",
                     ::attnfuse::getElementName(spec.elementType), ", got ",
                     ::attnfuse::getElementName(tensor.getType()));
  bool fits =
      tensor.getShape().size() == spec.shape.size() &&
      llvm::all_of(llvm::zip(tensor.getShape(), spec.shape), [](auto sizes) {
        auto [actual, expected] = sizes;
        return ShapedType::isDynamic(expected) || actual == expected;
      });
  if (!fits)
    return makeError(kind, " ", index, " of '", function, "': expected shape ",
                     formatShape(spec.shape), ", got ",
                     formatShape(tensor.getShape()));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Memref descriptors: allocated, aligned, offset, sizes, strides
//===----------------------------------------------------------------------===//

size_t getDescriptorWords(size_t rank) { return 3 + 2 * rank; }

void writeDescriptor(int64_t *words, const HostTensor &tensor) {
  // Compiled code never writes to an argument: see bufferization.writable.
  // What has no elements may still be read at an index that was clamped to 0.
  static const double nothing[4] = {};
  auto address = tensor.getNumBytes() == 0
                     ? reinterpret_cast<int64_t>(nothing)
                     : reinterpret_cast<int64_t>(tensor.data());
  *words++ = address;
  *words++ = address;
  *words++ = 0;
  words = std::copy(tensor.getShape().begin(), tensor.getShape().end(), words);
  std::vector<int64_t> strides = tensor.getStrides();
  std::copy(strides.begin(), strides.end(), words);
}

/// Copies what a descriptor (of identity layout) describes, if it has the shape
/// of `tensor`.
llvm::Error readDescriptor(const int64_t *words, HostTensor &tensor,
                           StringRef function, unsigned index) {
  llvm::ArrayRef<int64_t> shape(words + 3, tensor.getRank());
  if (shape != llvm::ArrayRef(tensor.getShape()))
    return makeError("result ", index, " of '", function, "' has shape ",
                     formatShape(shape), ", expected ",
                     formatShape(tensor.getShape()));
  if (tensor.getNumBytes() == 0)
    return llvm::Error::success();
  const char *source = reinterpret_cast<const char *>(words[1]) +
                       words[2] * ::attnfuse::getElementSize(tensor.getType());
  std::memcpy(tensor.data(), source, tensor.getNumBytes());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

llvm::Error
CompiledFunction::run(llvm::ArrayRef<HostTensor> argumentTensors,
                      llvm::MutableArrayRef<HostTensor> resultTensors) {
  if (argumentTensors.size() != arguments.size())
    return makeError("'", name, "': expected ", arguments.size(),
                     " arguments, got ", argumentTensors.size());
  if (resultTensors.size() != results.size())
    return makeError("'", name, "': expected ", results.size(),
                     " results, got ", resultTensors.size());
  for (auto [index, tensor] : llvm::enumerate(argumentTensors))
    if (llvm::Error error =
            checkTensor(tensor, arguments[index], name, "argument", index))
      return error;
  for (auto [index, tensor] : llvm::enumerate(resultTensors))
    if (llvm::Error error =
            checkTensor(tensor, results[index], name, "result", index))
      return error;

  size_t resultWords = 0;
  for (const HostTensor &tensor : resultTensors)
    resultWords += getDescriptorWords(tensor.getRank());
  std::vector<int64_t> resultDescriptors(resultWords);
  std::vector<std::vector<int64_t>> descriptors;
  SmallVector<void *> parameters;
  if (!resultTensors.empty())
    parameters.push_back(resultDescriptors.data());
  for (auto [tensor, spec] : llvm::zip(argumentTensors, arguments)) {
    if (!spec.isTensor) {
      parameters.push_back(const_cast<std::byte *>(tensor.data()));
      continue;
    }
    descriptors.emplace_back(getDescriptorWords(tensor.getRank()));
    writeDescriptor(descriptors.back().data(), tensor);
    parameters.push_back(descriptors.back().data());
  }

  BufferArena arena;
  if (!arena.call([&] { code->call(parameters); }))
    return makeError("'", name, "': not enough memory for a buffer of ",
                     arena.getFailedSize(),
                     " bytes: the CPU path holds all scores at once; choose "
                     "smaller sizes");
  const int64_t *words = resultDescriptors.data();
  for (auto [index, tensor] : llvm::enumerate(resultTensors)) {
    if (llvm::Error error = readDescriptor(words, tensor, name, index))
      return error;
    words += getDescriptorWords(tensor.getRank());
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// A user's function may have the name of one that compiled code calls, such as
/// expf or malloc: gives all functions names that no C function has.
LogicalResult renameFunctions(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto [index, function] :
       llvm::enumerate(llvm::to_vector(module.getOps<func::FuncOp>()))) {
    std::string name = "attnfuse$" + std::to_string(index);
    while (symbols.lookup(name))
      name += "$";
    if (failed(symbols.rename(function, name)))
      return failure();
  }
  return success();
}

/// Fails if a function is declared only: nothing may be linked by name.
LogicalResult checkCallees(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isExternal())
      return function.emitError("expected '")
             << function.getName() << "' to have a body";
  return success();
}

/// Makes `function` the only public symbol, with a C interface, and says that
/// its arguments are not its to overwrite.
void prepare(ModuleOp module, func::FuncOp function) {
  for (auto other : module.getOps<func::FuncOp>())
    other.setPrivate();
  function.setPublic();
  OpBuilder builder(module.getContext());
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    builder.getUnitAttr());
  function.setAllArgAttrs(ArrayRef<DictionaryAttr>());
  function.setAllResultAttrs(ArrayRef<DictionaryAttr>());
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isa<TensorType>(type))
      function.setArgAttr(
          index, bufferization::BufferizationDialect::kWritableAttrName,
          builder.getBoolAttr(false));
}

void print(llvm::raw_ostream &os, const Diagnostic &diagnostic) {
  if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    os << place.getFilename().getValue() << ":" << place.getLine() << ":"
       << place.getColumn() << ": ";
  os << diagnostic;
}

/// Lowers the module to the LLVM dialect; gives the new name of `function`.
llvm::Expected<std::string> lower(ModuleOp module, func::FuncOp function) {
  std::string name = function.getName().str(), symbol;
  std::string messages;
  llvm::raw_string_ostream os(messages);
  MLIRContext *context = module.getContext();
  bool printsOps = context->shouldPrintOpOnDiagnostic();
  context->printOpOnDiagnostic(false);
  auto restore =
      llvm::scope_exit([&] { context->printOpOnDiagnostic(printsOps); });
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    os << (messages.empty() ? "" : "; ");
    print(os, diagnostic);
    for (const Diagnostic &note : diagnostic.getNotes()) {
      os << "; note: ";
      print(os, note);
    }
    return success();
  });
  auto run = [&](llvm::function_ref<void(OpPassManager &)> build) {
    PassManager pm(context);
    build(pm);
    return pm.run(module);
  };
  auto dropUnused = [](OpPassManager &pm) {
    pm.addPass(createSymbolDCEPass());
  };
  auto rename = [&] {
    LogicalResult result = renameFunctions(module);
    symbol = function.getName().str();
    return result;
  };
  if (failed(run(dropUnused)) || failed(checkCallees(module)) ||
      failed(rename()) || failed(run(buildCpuPipeline)))
    return makeError("function '", name,
                     "' does not lower to host code: ", messages);
  return symbol;
}

llvm::Expected<SmallVector<ValueSpec>>
getSpecs(TypeRange types, StringRef function, StringRef kind) {
  SmallVector<ValueSpec> specs;
  for (auto [index, type] : llvm::enumerate(types)) {
    llvm::Expected<ValueSpec> spec = getSpec(type, function, kind, index);
    if (!spec)
      return spec.takeError();
    specs.push_back(std::move(*spec));
  }
  return specs;
}

} // namespace

llvm::Expected<std::unique_ptr<CpuExecutable>>
CpuExecutable::compile(ModuleOp module, StringRef name) {
  DialectRegistry registry;
  registerCpuPipelineInterfaces(registry);
  module.getContext()->appendDialectRegistry(registry);

  OwningOpRef<ModuleOp> copy = module.clone();
  auto function = copy->lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return makeError("expected a function '", name,
                     "' with a body in the module");
  FunctionType type = function.getFunctionType();
  auto arguments = getSpecs(type.getInputs(), name, "argument");
  if (!arguments)
    return arguments.takeError();
  auto results = getSpecs(type.getResults(), name, "result");
  if (!results)
    return results.takeError();

  prepare(*copy, function);
  auto symbol = lower(*copy, function);
  if (!symbol)
    return symbol.takeError();
  auto code = HostCode::compile(*copy, *symbol);
  if (!code)
    return makeError("function '", name, "' ",
                     llvm::toString(code.takeError()));
  return std::make_unique<CompiledFunction>(
      name, std::move(*arguments), std::move(*results), std::move(*code));
}

} // namespace mlir::attnfuse
