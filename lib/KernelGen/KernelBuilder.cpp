//===- KernelBuilder.cpp - Short spellings for kernel code ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse::kernelgen;

//===----------------------------------------------------------------------===//
// Constants and integers
//===----------------------------------------------------------------------===//

Value KernelBuilder::constant(TypedAttr value) {
  Value &known = constants[value];
  if (!known) {
    if (!entry)
      entry = getInsertionBlock();
    InsertionGuard guard(*this);
    setInsertionPointToStart(entry);
    known = create<arith::ConstantOp>(value);
  }
  return known;
}
Value KernelBuilder::i1(bool value) { return constant(getBoolAttr(value)); }
Value KernelBuilder::i32(int64_t value) {
  return constant(getI32IntegerAttr(value));
}
Value KernelBuilder::i64(int64_t value) {
  return constant(getI64IntegerAttr(value));
}
Value KernelBuilder::f32(double value) {
  return constant(getF32FloatAttr(value));
}
Value KernelBuilder::like(Value a, int64_t value) {
  return constant(getIntegerAttr(a.getType(), value));
}

Value KernelBuilder::add(Value a, Value b) {
  return createOrFold<arith::AddIOp>(a, b);
}
Value KernelBuilder::sub(Value a, Value b) {
  return createOrFold<arith::SubIOp>(a, b);
}
Value KernelBuilder::mul(Value a, Value b) {
  return createOrFold<arith::MulIOp>(a, b);
}
Value KernelBuilder::divU(Value a, Value b) {
  return createOrFold<arith::DivUIOp>(a, b);
}
Value KernelBuilder::remU(Value a, Value b) {
  return createOrFold<arith::RemUIOp>(a, b);
}
Value KernelBuilder::andI(Value a, Value b) {
  return createOrFold<arith::AndIOp>(a, b);
}
Value KernelBuilder::orI(Value a, Value b) {
  return createOrFold<arith::OrIOp>(a, b);
}
Value KernelBuilder::xorI(Value a, Value b) {
  return createOrFold<arith::XOrIOp>(a, b);
}
Value KernelBuilder::shl(Value a, Value b) {
  return createOrFold<arith::ShLIOp>(a, b);
}
Value KernelBuilder::shrU(Value a, Value b) {
  return createOrFold<arith::ShRUIOp>(a, b);
}
Value KernelBuilder::min(Value a, Value b) {
  return createOrFold<arith::MinSIOp>(a, b);
}
Value KernelBuilder::max(Value a, Value b) {
  return createOrFold<arith::MaxSIOp>(a, b);
}
Value KernelBuilder::lt(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}
Value KernelBuilder::le(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, a, b);
}
Value KernelBuilder::eq(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}
Value KernelBuilder::toI64(Value a) {
  return a.getType().isInteger(64)
             ? a
             : createOrFold<arith::ExtSIOp>(getI64Type(), a);
}
Value KernelBuilder::toI32(Value a) {
  return a.getType().isInteger(32)
             ? a
             : createOrFold<arith::TruncIOp>(getI32Type(), a);
}

Value KernelBuilder::extendU(Value a) {
  return createOrFold<arith::ExtUIOp>(getI32Type(), a);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Value KernelBuilder::addF(Value a, Value b) {
  return create<arith::AddFOp>(a, b);
}
Value KernelBuilder::subF(Value a, Value b) {
  return create<arith::SubFOp>(a, b);
}
Value KernelBuilder::mulF(Value a, Value b, arith::FastMathFlags flags) {
  return create<arith::MulFOp>(a, b, flags);
}
Value KernelBuilder::fma(Value a, Value b, Value c) {
  return create<LLVM::FMAOp>(a, b, c);
}
Value KernelBuilder::negF(Value a) { return create<arith::NegFOp>(a); }
Value KernelBuilder::maxF(Value a, Value b) {
  return create<arith::MaxNumFOp>(a, b);
}
Value KernelBuilder::maxOrNaN(Value a, Value b) {
  return create<arith::MaximumFOp>(a, b);
}
Value KernelBuilder::eqF(Value a, Value b) {
  return create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, a, b);
}

Value KernelBuilder::ltF(Value a, Value b) {
  return create<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, b);
}

static Value callUnary(KernelBuilder &b, StringRef intrinsic, Value a) {
  return b
      .create<LLVM::CallIntrinsicOp>(a.getType(), b.getStringAttr(intrinsic),
                                     ValueRange(a))
      .getResult(0);
}
// The forms with .ftz: the others cost a scaling of denormals per element.
Value KernelBuilder::exp2(Value a) {
  return callUnary(*this, "llvm.nvvm.ex2.approx.ftz.f32", a);
}
Value KernelBuilder::log2(Value a) {
  return callUnary(*this, "llvm.nvvm.lg2.approx.ftz.f", a);
}
Value KernelBuilder::rcp(Value a) {
  return create<NVVM::RcpApproxFtzF32Op>(getF32Type(), a);
}

Value KernelBuilder::fromInt(Value a) {
  return create<arith::SIToFPOp>(getF32Type(), a);
}
Value KernelBuilder::toF32(Value a) {
  return a.getType().isF32() ? a : create<arith::ExtFOp>(getF32Type(), a);
}
Value KernelBuilder::fromF32(Value a, Type type) {
  return type.isF32() ? a : create<arith::TruncFOp>(type, a);
}

Value KernelBuilder::pack(Value low, Value high, Type type) {
  Type vector = VectorType::get({2}, type);
  auto build = [&](auto op) -> Value {
    using Op = decltype(op);
    return create<Op>(vector, high, low, /*random_bits=*/Value(),
                      NVVM::FPRoundingMode::RN);
  };
  Value pair = type.isBF16() ? build(NVVM::ConvertF32x2ToBF16x2Op())
                             : build(NVVM::ConvertF32x2ToF16x2Op());
  return bitcast(pair, getI32Type());
}

std::pair<Value, Value> KernelBuilder::unpack(Value word, Type type) {
  if (type.isBF16()) {
    // The upper half of an f32: an instruction each, where conversions of
    // elements are assembled to two.
    Type f32 = getF32Type();
    return {bitcast(shl(word, 16), f32), bitcast(andI(word, -65536), f32)};
  }
  Value pair = bitcast(word, VectorType::get({2}, type));
  return {toF32(extractElement(pair, 0)), toF32(extractElement(pair, 1))};
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value KernelBuilder::threadId() {
  return create<NVVM::ThreadIdXOp>(getI32Type());
}
Value KernelBuilder::blockId() {
  return create<NVVM::BlockIdXOp>(getI32Type());
}

Value KernelBuilder::gridSize() {
  return create<NVVM::GridDimXOp>(getI32Type());
}

Value KernelBuilder::shuffleXor(Value a, int64_t mask) {
  return create<NVVM::ShflOp>(a.getType(), i32(-1), a, i32(mask), i32(31),
                              NVVM::ShflKind::bfly, UnitAttr());
}

Value KernelBuilder::firstLane(Value a) {
  return create<NVVM::ShflOp>(a.getType(), i32(-1), a, i32(0), i32(31),
                              NVVM::ShflKind::idx, UnitAttr());
}

Value KernelBuilder::anyLane(Value condition) {
  return create<NVVM::VoteSyncOp>(getI1Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::any);
}

void KernelBuilder::barrier() { create<NVVM::BarrierOp>(); }

Value KernelBuilder::barrierAny(Value condition) {
  Value predicate = createOrFold<arith::ExtUIOp>(getI32Type(), condition);
  auto barrier = create<NVVM::BarrierOp>(
      TypeRange(getI32Type()), Value(), Value(),
      NVVM::BarrierReductionAttr::get(getContext(), NVVM::BarrierReduction::OR),
      predicate);
  return create<arith::CmpIOp>(arith::CmpIPredicate::ne, barrier->getResult(0),
                               i32(0));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type KernelBuilder::sharedPtrType() {
  return LLVM::LLVMPointerType::get(getContext(), 3);
}
Type KernelBuilder::globalPtrType() {
  return LLVM::LLVMPointerType::get(getContext(), 1);
}

Value KernelBuilder::offsetPtr(Value ptr, Value bytes) {
  return create<LLVM::GEPOp>(ptr.getType(), getI8Type(), ptr,
                             ArrayRef<LLVM::GEPArg>{bytes});
}
Value KernelBuilder::offsetPtr(Value ptr, int64_t bytes) {
  if (bytes == 0)
    return ptr;
  return create<LLVM::GEPOp>(ptr.getType(), getI8Type(), ptr,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}
Value KernelBuilder::load(Type type, Value ptr, int64_t alignment) {
  return create<LLVM::LoadOp>(type, ptr, alignment);
}
void KernelBuilder::store(Value value, Value ptr, int64_t alignment) {
  create<LLVM::StoreOp>(value, ptr, alignment);
}
Value KernelBuilder::bitcast(Value a, Type type) {
  return a.getType() == type ? a : create<LLVM::BitcastOp>(type, a);
}
Value KernelBuilder::extractElement(Value vector, int64_t index) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  return create<LLVM::ExtractElementOp>(vector, i32(index));
}
Value KernelBuilder::makeVector(ValueRange elements) {
  if (elements.size() == 1)
    return elements.front();
  Type type =
      VectorType::get({int64_t(elements.size())}, elements.front().getType());
  Value vector = create<LLVM::PoisonOp>(type);
  for (auto [index, element] : llvm::enumerate(elements))
    vector = create<LLVM::InsertElementOp>(vector, element, i32(index));
  return vector;
}

Values KernelBuilder::inlineAsm(TypeRange results, const Twine &text,
                                const Twine &constraints, ValueRange operands) {
  SmallVector<Type> types;
  if (results.size() == 1)
    types.push_back(results.front());
  else if (!results.empty())
    types.push_back(LLVM::LLVMStructType::getLiteral(getContext(),
                                                     llvm::to_vector(results)));
  auto op = create<LLVM::InlineAsmOp>(
      types, operands, text.str(), constraints.str(), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
  if (results.size() <= 1)
    return op->getResults();
  Values values;
  for (size_t index = 0; index < results.size(); ++index)
    values.push_back(create<LLVM::ExtractValueOp>(op->getResult(0), index));
  return values;
}

Values KernelBuilder::inlineAsmInPlace(const Twine &text, const Twine &clobbers,
                                       ValueRange values) {
  SmallVector<std::string> constraints;
  for (Value value : values)
    constraints.push_back(value.getType().isF32() ? "=f" : "=r");
  for (size_t index = 0; index < values.size(); ++index)
    constraints.push_back(std::to_string(index));
  if (std::string clobbered = clobbers.str(); !clobbered.empty())
    constraints.push_back(clobbered);
  return inlineAsm(values.getTypes(), text, llvm::join(constraints, ","),
                   values);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void KernelBuilder::ifThen(Value condition, function_ref<void()> body) {
  auto op = create<scf::IfOp>(condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  body();
}

Values KernelBuilder::ifElse(Value condition, TypeRange types,
                             function_ref<Values()> then,
                             function_ref<Values()> otherwise) {
  auto op = create<scf::IfOp>(types, condition, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  for (auto [block, build] : {std::pair(op.thenBlock(), then),
                              std::pair(op.elseBlock(), otherwise)}) {
    setInsertionPointToStart(block);
    Values results = build();
    // Without results the op comes with its terminators.
    if (!types.empty())
      create<scf::YieldOp>(results);
  }
  return op.getResults();
}

void KernelBuilder::forLoop(Value from, Value to, int64_t step,
                            function_ref<void(Value)> body) {
  auto op = create<scf::ForOp>(from, to, i32(step));
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

Values KernelBuilder::whileLoop(ValueRange init,
                                function_ref<Value(ValueRange)> condition,
                                function_ref<Values(ValueRange)> body) {
  SmallVector<Location> locs(init.size(), getLoc());
  auto op = create<scf::WhileOp>(init.getTypes(), init);
  InsertionGuard guard(*this);
  Block *before = createBlock(&op.getBefore(), {}, init.getTypes(), locs);
  Value again = condition(before->getArguments());
  create<scf::ConditionOp>(again, before->getArguments());
  Block *after = createBlock(&op.getAfter(), {}, init.getTypes(), locs);
  create<scf::YieldOp>(body(after->getArguments()));
  return op.getResults();
}

Values KernelBuilder::doWhileLoop(ValueRange init,
                                  function_ref<Value(Values &)> body) {
  SmallVector<Location> locs(init.size(), getLoc());
  auto op = create<scf::WhileOp>(init.getTypes(), init);
  InsertionGuard guard(*this);
  Block *before = createBlock(&op.getBefore(), {}, init.getTypes(), locs);
  Values state(before->getArguments());
  Value again = body(state);
  create<scf::ConditionOp>(again, state);
  Block *after = createBlock(&op.getAfter(), {}, init.getTypes(), locs);
  create<scf::YieldOp>(after->getArguments());
  return op.getResults();
}

Part::Part(KernelBuilder &builder, StringRef name)
    : builder(builder), saved(builder.getLoc()) {
  builder.setLoc(NameLoc::get(builder.getStringAttr(name), builder.getLoc()));
}
