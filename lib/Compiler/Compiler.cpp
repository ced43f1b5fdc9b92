//===- Compiler.cpp - From a module of building blocks to PTX -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Compiler/Compiler.h"
#include "Explain.h"
#include "attnfuse/Conversion/Passes.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "attnfuse/Pipelines/Pipelines.h"
#include "attnfuse/Target/PTX/TranslateToPTX.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// Keeps diagnostics as text while it lives.
class DiagnosticLog {
public:
  DiagnosticLog(MLIRContext *context,
                const std::function<void(const Diagnostic &)> &listener)
      : context(context), listener(listener),
        printsOps(context->shouldPrintOpOnDiagnostic()),
        handler(context, [this](Diagnostic &diagnostic) { add(diagnostic); }) {
    context->printOpOnDiagnostic(false);
  }
  ~DiagnosticLog() { context->printOpOnDiagnostic(printsOps); }

  /// Remarks, a line each.
  StringRef getRemarks() const { return remarks; }
  /// Errors, and the remarks that may explain them.
  llvm::Error takeError() const {
    std::string text = errors.empty() ? "compilation failed" : errors;
    if (!remarks.empty())
      text += "\n" + remarks;
    return llvm::createStringError(StringRef(text).rtrim());
  }

private:
  void add(const Diagnostic &diagnostic) {
    if (listener)
      listener(diagnostic);
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    llvm::raw_string_ostream os(isError ? errors : remarks);
    print(os, diagnostic, isError ? "" : "remark: ");
    for (const Diagnostic &note : diagnostic.getNotes())
      print(os, note, "note: ");
  }

  static void print(raw_ostream &os, const Diagnostic &diagnostic,
                    StringRef kind) {
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      os << place.getFilename().getValue() << ":" << place.getLine() << ":"
         << place.getColumn() << ": ";
    os << kind << diagnostic << "\n";
  }

  MLIRContext *context;
  const std::function<void(const Diagnostic &)> &listener;
  bool printsOps;
  std::string errors;
  std::string remarks;
  ScopedDiagnosticHandler handler;
};

std::string describeMissingAttention(ModuleOp module) {
  SmallVector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      names.push_back(("'" + function.getName() + "'").str());
  if (names.empty())
    return "the module has no function with a body; expected one that returns "
           "the result of attnfuse.weighted_sum or attnfuse.attention";
  return (names.size() == 1 ? "function " : "functions ") +
         llvm::join(names, ", ") + (names.size() == 1 ? " has" : " have") +
         " no attention to compile; expected one that returns the result of "
         "attnfuse.weighted_sum or attnfuse.attention";
}

std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  os << "\n";
  return text;
}

LogicalResult run(ModuleOp module,
                  llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(module.getContext());
  build(pm);
  return pm.run(module);
}

/// The levels that no machine has a part in.
llvm::Expected<CompiledModule>
compileWithoutTarget(ModuleOp module, const CompileOptions &options) {
  DiagnosticLog log(module.getContext(), options.listener);
  bool isFused = options.emit == EmitLevel::Fused;
  if (failed(run(module, [&](OpPassManager &pm) {
        if (isFused)
          return buildFusePipeline(pm);
        pm.addPass(createConvertAttnFuseToLinalgPass());
        pm.addPass(createCanonicalizerPass());
      })))
    return log.takeError();
  CompiledModule result;
  result.code = printModule(module);
  result.explanation = log.getRemarks().str();
  return result;
}

/// Compiles `module` in place.
llvm::Expected<CompiledModule> compileInPlace(ModuleOp module,
                                              const CompileOptions &options) {
  EmitLevel emit = options.emit;
  if (emit == EmitLevel::Fused || emit == EmitLevel::Linalg)
    return compileWithoutTarget(module, options);
  llvm::Expected<TargetInfo> target = getTargetOf(module);
  if (!target)
    return target.takeError();
  CompiledModule result;
  DiagnosticLog log(module.getContext(), options.listener);

  BlocksByFunction written = collectBlocks(module);
  if (failed(run(module, [&](OpPassManager &pm) {
        buildFusePipeline(pm);
        pm.addPass(createAttnFuseDecideRotationPass({options.rotation}));
        pm.addPass(createAttnFuseSelectSchedulePass({options.keySplits}));
      })))
    return log.takeError();
  OwningOpRef<ModuleOp> scheduled = module.clone();
  if (emit == EmitLevel::Schedule) {
    result.code = printModule(module);
    // What has no kernels is explained without them.
    ScopedDiagnosticHandler silence(module.getContext(),
                                    [](Diagnostic &) { return success(); });
    (void)run(module, buildKernelPipeline);
  } else if (failed(run(module, buildKernelPipeline))) {
    return log.takeError();
  }
  result.explanation =
      explain(*scheduled, written, *target, module) + log.getRemarks().str();
  if (emit == EmitLevel::Schedule)
    return result;

  if (failed(run(module, buildGpuLoweringPipeline)))
    return log.takeError();
  if (llvm::none_of(module.getOps<gpu::GPUModuleOp>(), [](auto kernels) {
        return kernels->hasAttr(kManifestAttrName);
      }))
    return llvm::createStringError(describeMissingAttention(module));
  if (emit == EmitLevel::NVVM) {
    result.code = printModule(module);
    return result;
  }

  llvm::Expected<std::string> text = translateToPTX(
      module, *target,
      emit == EmitLevel::LLVM ? PTXOutput::LLVMIR : PTXOutput::PTX);
  if (!text)
    return text.takeError();
  result.code = std::move(*text);
  if (emit == EmitLevel::LLVM)
    return result;

  llvm::Expected<std::string> manifest = assembleManifest(module, *target);
  if (!manifest)
    return manifest.takeError();
  result.manifest = std::move(*manifest);
  if (emit == EmitLevel::PTX)
    return result;

  llvm::Expected<std::string> cubin = assemblePTX(result.code, target->chip);
  if (!cubin)
    return cubin.takeError();
  result.code = std::move(*cubin);
  return result;
}
} // namespace

llvm::Expected<CompiledModule>
mlir::attnfuse::compileModule(ModuleOp module, const CompileOptions &options) {
  // A module without attention does not load it.
  module.getContext()->loadDialect<AttnFuseDialect>();
  OwningOpRef<ModuleOp> copy = module.clone();
  if (!options.target.empty()) {
    llvm::Expected<TargetInfo> target = lookupTarget(options.target);
    if (!target)
      return target.takeError();
    (*copy)->setAttr(kTargetAttrName,
                     getTargetAttr(module.getContext(), *target));
  }
  return compileInPlace(*copy, options);
}

std::string mlir::attnfuse::findChip(int capability) {
  std::string best;
  int bestNumber = 0;
  for (const TargetInfo &target : getKnownTargets()) {
    StringRef name = target.name;
    int number;
    if (!name.consume_front("sm_") ||
        name.take_while([](char c) { return llvm::isDigit(c); })
            .getAsInteger(10, number) ||
        number > capability || number < bestNumber)
      continue;
    best = target.name;
    bestNumber = number;
  }
  return best;
}

void mlir::attnfuse::registerCompilerDialects(DialectRegistry &registry) {
  registry.insert<AttnFuseDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, gpu::GPUDialect, index::IndexDialect,
                  LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                  tensor::TensorDialect, vector::VectorDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerPTXTranslations(registry);
}
