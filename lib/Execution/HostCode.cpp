//===- HostCode.cpp - Machine code of one function, in memory -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"

#include "RuntimeFunctions.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir::attnfuse {

static constexpr llvm::StringLiteral kEntryName = "attnfuse_entry";

/// Adds `void attnfuse_entry(ptr parameters)`, which calls the C interface of
/// `function` with a parameter list that is only known at run time.
static llvm::Error addEntry(llvm::Module &module, StringRef function) {
  llvm::Function *callee =
      module.getFunction(("_mlir_ciface_" + function).str());
  if (!callee || !callee->getReturnType()->isVoidTy())
    return llvm::createStringError(
        "has no C interface whose results are all tensors");
  llvm::IRBuilder<> b(module.getContext());
  auto *type = llvm::FunctionType::get(b.getVoidTy(), b.getPtrTy(), false);
  auto *entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                       kEntryName, module);
  b.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "entry", entry));
  SmallVector<llvm::Value *> arguments;
  for (auto [index, parameter] : llvm::enumerate(callee->args())) {
    llvm::Value *slot =
        b.CreateConstGEP1_64(b.getPtrTy(), entry->getArg(0), index);
    llvm::Value *address = b.CreateLoad(b.getPtrTy(), slot);
    bool isDescriptor = parameter.getType()->isPointerTy();
    arguments.push_back(
        isDescriptor ? address : b.CreateLoad(parameter.getType(), address));
  }
  b.CreateCall(callee, arguments);
  b.CreateRetVoid();
  return llvm::Error::success();
}

/// What pays for loop nests over tensors: addresses out of the inner loops, and
/// vectors in the two products. The default pipeline at O2 makes code that is
/// no faster here, in five times the time (unrolling, mostly), which is what a
/// first call waits for.
static constexpr llvm::StringLiteral kPasses =
    "function(instcombine<no-verify-fixpoint>,simplifycfg,early-cse,"
    "loop-mssa(loop-rotate,licm),instcombine<no-verify-fixpoint>,loop(indvars),"
    "loop-vectorize<interleave-forced-only>,instcombine<no-verify-fixpoint>,"
    "loop-mssa(licm),simplifycfg)";

static llvm::Error optimize(llvm::Module &module,
                            llvm::TargetMachine &machine) {
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
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPasses))
    return error;
  passes.run(module, modules);
  return llvm::Error::success();
}

static llvm::Error addRuntimeFunctions(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  forEachRuntimeFunction([&](StringRef name, void *address) {
    symbols[jit.mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(address),
        llvm::JITSymbolFlags::Exported};
  });
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols));
}

HostCode::HostCode() = default;
HostCode::~HostCode() = default;

llvm::Expected<std::unique_ptr<HostCode>>
HostCode::compile(ModuleOp module, StringRef function) {
  // Once per process, and safe from several threads.
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());

  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> ir = translateModuleToLLVMIR(module, *context);
  if (!ir)
    return llvm::createStringError("does not translate to LLVM IR");
  if (llvm::Error error = addEntry(*ir, function))
    return error;

  auto target = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();
  ir->setTargetTriple((*machine)->getTargetTriple());
  ir->setDataLayout((*machine)->createDataLayout());
  if (llvm::Error error = optimize(*ir, **machine))
    return error;

  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*target))
                 .create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error error = addRuntimeFunctions(**jit))
    return error;
  if (llvm::Error error = (*jit)->addIRModule(
          llvm::orc::ThreadSafeModule(std::move(ir), std::move(context))))
    return error;
  // What ORC reports names the missing symbols; the error of the lookup does
  // not.
  auto reported = std::make_shared<std::string>();
  (*jit)->getExecutionSession().setErrorReporter([=](llvm::Error error) {
    *reported += llvm::toString(std::move(error));
  });
  auto address = (*jit)->lookup(kEntryName);
  if (!address) {
    std::string failure = llvm::toString(address.takeError());
    return llvm::createStringError("does not link: " +
                                   (reported->empty() ? failure : *reported));
  }

  std::unique_ptr<HostCode> code(new HostCode);
  code->jit = std::move(*jit);
  code->entry = address->toPtr<void (*)(void **)>();
  return code;
}

} // namespace mlir::attnfuse
