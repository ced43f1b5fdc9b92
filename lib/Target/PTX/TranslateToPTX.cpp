//===- TranslateToPTX.cpp - Kernels to LLVM IR and PTX text ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Target/PTX/TranslateToPTX.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
constexpr StringLiteral kTriple = "nvptx64-nvidia-cuda";

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetInfo &target) {
  // Once per process, and safe from several threads.
  static const bool initialized = [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;

  llvm::Triple triple(kTriple);
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return llvm::createStringError("this LLVM has no NVPTX back end: " + error);
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.chip, "+ptx" + std::to_string(target.ptxVersion), {}, {},
      {}, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("cannot generate code for " + target.chip);
  return machine;
}

/// Intrinsics that the NVPTX back end selects without a call of a library. It
/// kills the process on others.
bool isSelectable(Operation *op) {
  static const llvm::StringSet<> names = {"abs",
                                          "assume",
                                          "bitreverse",
                                          "bswap",
                                          "copysign",
                                          "ctlz",
                                          "cttz",
                                          "ctpop",
                                          "exp2",
                                          "expect",
                                          "fabs",
                                          "floor",
                                          "ceil",
                                          "fma",
                                          "fmuladd",
                                          "fshl",
                                          "fshr",
                                          "maximum",
                                          "maxnum",
                                          "minimum",
                                          "minnum",
                                          "nearbyint",
                                          "rint",
                                          "round",
                                          "roundeven",
                                          "smax",
                                          "smin",
                                          "sqrt",
                                          "trunc",
                                          "umax",
                                          "umin",
                                          "lifetime.start",
                                          "lifetime.end",
                                          "memcpy",
                                          "memset",
                                          "sadd.with.overflow",
                                          "smul.with.overflow",
                                          "ssub.with.overflow"};
  StringRef name = op->getName().stripDialect();
  return !name.consume_front("intr.") || names.contains(name);
}

/// Refuses what neither translates nor is selectable.
llvm::Error checkOps(gpu::GPUModuleOp kernels) {
  Operation *problem = nullptr;
  kernels.walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (op == kernels ||
        ((dialect == "llvm" || dialect == "nvvm") && isSelectable(op)))
      return WalkResult::advance();
    problem = op;
    // A cast is left where its user is not lowered: the user is the problem.
    return isa<UnrealizedConversionCastOp>(op) ? WalkResult::advance()
                                               : WalkResult::interrupt();
  });
  if (!problem)
    return llvm::Error::success();
  std::string message;
  llvm::raw_string_ostream os(message);
  if (auto place = problem->getLoc()->findInstanceOf<FileLineColLoc>())
    os << place.getFilename().getValue() << ":" << place.getLine() << ":"
       << place.getColumn() << ": ";
  os << "'" << problem->getName()
     << "' in a kernel has no lowering for the GPU; express it by other ops, "
        "or execute on the CPU";
  return llvm::createStringError(message);
}

/// The kernels of all gpu.modules with a manifest in one LLVM module.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateModules(ModuleOp module, const llvm::TargetMachine &machine,
                 llvm::LLVMContext &context, const std::string &errors) {
  auto combined = std::make_unique<llvm::Module>("attnfuse", context);
  combined->setTargetTriple(machine.getTargetTriple());
  combined->setDataLayout(machine.createDataLayout());
  llvm::Linker linker(*combined);
  for (auto kernels : module.getOps<gpu::GPUModuleOp>()) {
    if (!kernels->hasAttr(kManifestAttrName))
      continue;
    if (llvm::Error error = checkOps(kernels))
      return std::move(error);
    std::unique_ptr<llvm::Module> part =
        translateModuleToLLVMIR(kernels, context, kernels.getName());
    if (!part)
      return llvm::createStringError("cannot translate the kernels of '" +
                                     kernels.getName() + "' to LLVM IR");
    part->setTargetTriple(machine.getTargetTriple());
    part->setDataLayout(machine.createDataLayout());
    if (linker.linkInModule(std::move(part)))
      return llvm::createStringError("cannot combine the kernels of '" +
                                     kernels.getName() +
                                     "' with the others: " + errors);
  }
  return combined;
}

/// Simplifies without moving code between blocks. The standard pipeline hoists
/// every address of the key loop out of it and unrolls what it can, and then
/// the fragments, which the schedule has counted, spill: 255 registers instead
/// of 130 to 170. The assembler hoists what the registers allow.
void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);

  llvm::FunctionPassManager simplify;
  simplify.addPass(llvm::EarlyCSEPass());
  simplify.addPass(llvm::InstCombinePass());
  simplify.addPass(llvm::SimplifyCFGPass());
  simplify.addPass(llvm::GVNPass());
  simplify.addPass(llvm::InstCombinePass());
  simplify.addPass(llvm::ADCEPass());
  llvm::ModulePassManager pipeline;
  pipeline.addPass(
      llvm::createModuleToFunctionPassAdaptor(std::move(simplify)));
  pipeline.run(module, modules);
}

/// Keeps LLVM's errors, which would otherwise end the process.
struct ErrorCollector : llvm::DiagnosticHandler {
  explicit ErrorCollector(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream os(errors);
    llvm::DiagnosticPrinterRawOStream printer(os);
    info.print(printer);
    os << "\n";
    return true;
  }
  std::string &errors;
};
} // namespace

llvm::Expected<std::string>
mlir::attnfuse::translateToPTX(ModuleOp module, const TargetInfo &target,
                               PTXOutput output) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine =
      createTargetMachine(target);
  if (!machine)
    return machine.takeError();

  std::string errors;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
  llvm::Expected<std::unique_ptr<llvm::Module>> kernels =
      translateModules(module, **machine, context, errors);
  if (!kernels)
    return kernels.takeError();
  llvm::raw_string_ostream errorStream(errors);
  if (llvm::verifyModule(**kernels, &errorStream))
    return llvm::createStringError("invalid LLVM IR of a kernel: " + errors);
  optimize(**kernels, **machine);

  SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  if (output == PTXOutput::LLVMIR) {
    os << **kernels;
  } else {
    llvm::legacy::PassManager codegen;
    if ((*machine)->addPassesToEmitFile(codegen, os, nullptr,
                                        llvm::CodeGenFileType::AssemblyFile))
      return llvm::createStringError("cannot write PTX for " + target.chip);
    codegen.run(**kernels);
  }
  if (!errors.empty())
    return llvm::createStringError("code generation failed: " + errors);
  return std::string(text);
}

void mlir::attnfuse::registerPTXTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}
