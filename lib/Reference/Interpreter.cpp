//===- Interpreter.cpp - The fp64 reference -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Reference/Interpreter.h"
#include "Lanes.h"
#include "Rope.h"
#include "ScoreRegion.h"
#include "WeightedSum.h"
#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Dialect/AttnFuse/IR/Normalizers.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;
using ::attnfuse::ElementType;
using ::attnfuse::HostTensor;

static bool isIntType(Type type) { return type.isIntOrIndex(); }

namespace {
class Interpreter {
public:
  Interpreter(const DimensionClasses &classes, bool wantErrors)
      : function(classes.getFunction()), classes(classes), sizes(classes),
        wantErrors(wantErrors) {}

  llvm::Expected<Interpretation> run(ArrayRef<HostTensor> arguments) {
    if (llvm::Error error = bindArguments(arguments))
      return std::move(error);
    for (Operation &op : function.front().without_terminator())
      if (llvm::Error error = visit(&op))
        return std::move(error);
    auto returnOp = dyn_cast<func::ReturnOp>(function.front().getTerminator());
    if (!returnOp)
      return makeError("expected function '" + function.getName() +
                       "' to end in func.return");
    Interpretation interpretation;
    for (Value operand : returnOp.getOperands())
      if (llvm::Error error = addResult(operand, interpretation))
        return std::move(error);
    return interpretation;
  }

private:
  //===--- Arguments and results ------------------------------------------===//

  llvm::Error bindArguments(ArrayRef<HostTensor> arguments) {
    if (arguments.size() != function.getNumArguments())
      return makeError("expected " + Twine(function.getNumArguments()) +
                       " arguments, got " + Twine(arguments.size()));
    for (auto [index, tensor] : llvm::enumerate(arguments)) {
      Value argument = function.getArgument(index);
      Type type = getElementTypeOrSelf(argument.getType());
      bool isInt = tensor.getType() == ElementType::I32 ||
                   tensor.getType() == ElementType::I64;
      if (isInt != isIntType(type))
        return makeError("argument '" + classes.getArguments()[index].name +
                         "' has the wrong kind of element");
      if (llvm::Error error = sizes.setShape(index, tensor.getShape()))
        return error;
      tensors[argument] =
          std::make_shared<Array>(Array::fromHostTensor(tensor));
    }
    return sizes.finish();
  }

  llvm::Error addResult(Value value, Interpretation &interpretation) {
    std::vector<int64_t> shape = sizes.getShape(value);
    HostTensor result(ElementType::F64, shape), error(ElementType::F64, shape);
    if (ArrayPtr array = tensors.lookup(value)) {
      ArrayPtr known = errors.lookup(value);
      for (int64_t i = 0, end = array->getNumElements(); i < end; ++i) {
        double element =
            array->isFloat() ? array->floats[i] : double(array->ints[i]);
        result.setFloat(i, element);
        error.setFloat(i, known ? known->floats[i]
                                : array->relativeError * std::abs(element));
      }
    } else if (ScoreNodePtr node = scores.lookup(value)) {
      auto [rows, rowErrors] = evaluateScores(*node, shape, wantErrors);
      for (int64_t i = 0, end = rows.getNumElements(); i < end; ++i) {
        result.setFloat(i, rows.floats[i]);
        if (wantErrors)
          error.setFloat(i, rowErrors.floats[i]);
      }
    } else {
      return makeError("the reference cannot return a value of type " +
                       describe(value.getType()));
    }
    interpretation.results.push_back(std::move(result));
    interpretation.errors.push_back(std::move(error));
    return llvm::Error::success();
  }

  static std::string describe(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }

  //===--- Ops ------------------------------------------------------------===//

  llvm::Error visit(Operation *op) {
    return llvm::TypeSwitch<Operation *, llvm::Error>(op)
        .Case([&](RopeOp op) {
          return rotateOperand(op.getInput(), op.getCos(), op.getSin(),
                               op.getOffset(), op.getPositions(),
                               op.getPairing(), op.getStaticOffset(),
                               tensors[op.getResult()]);
        })
        .Case([&](ScaledDotProductOp op) {
          double scale =
              op.getScale()
                  ? op.getScale()->convertToDouble()
                  : 1 / std::sqrt(double(sizes.getShape(op.getQuery())[3]));
          scores[op.getScores()] = makeProduct(getTensor(op.getQuery()),
                                               getTensor(op.getKey()), scale);
          return llvm::Error::success();
        })
        .Case([&](FullOp op) {
          scores[op.getResult()] = getScores(op.getScores());
          return llvm::Error::success();
        })
        .Case([&](CausalOp op) {
          scores[op.getResult()] = makeBand(getScores(op.getScores()),
                                            op.getAlign(), std::nullopt, 0);
          return llvm::Error::success();
        })
        .Case([&](SlidingWindowOp op) {
          scores[op.getResult()] =
              makeBand(getScores(op.getScores()), op.getAlign(), op.getLeft(),
                       op.getRight());
          return llvm::Error::success();
        })
        .Case([&](BlockSparseOp op) {
          scores[op.getResult()] = makeBlocks(
              getScores(op.getScores()), getTensor(op.getRowOffsets()),
              getTensor(op.getColIndices()), op.getQueryBlock(),
              op.getKeyBlock());
          return llvm::Error::success();
        })
        .Case([&](AlibiOp op) {
          scores[op.getResult()] =
              makeAlibi(getScores(op.getScores()), op.getAlign(),
                        op.getSlopes() ? getTensor(op.getSlopes()) : nullptr);
          return llvm::Error::success();
        })
        .Case([&](AdditiveBiasOp op) {
          scores[op.getResult()] =
              makeBias(getScores(op.getScores()), getTensor(op.getBias()));
          return llvm::Error::success();
        })
        .Case([&](SoftmaxOp op) {
          scores[op.getProbs()] =
              makeNormalizer(getScores(op.getScores()), Normalizer::Softmax,
                             getWeightType(op.getProbs()));
          return visitLse(op);
        })
        .Case([&](ReluAttentionOp op) {
          scores[op.getProbs()] =
              makeNormalizer(getScores(op.getScores()),
                             mlir::attnfuse::getNormalizer(op.getNorm()),
                             getWeightType(op.getProbs()));
          return llvm::Error::success();
        })
        .Case([&](WeightedSumOp op) {
          Value lse;
          if (auto softmax = op.getProbs().getDefiningOp<SoftmaxOp>())
            lse = softmax.getLse();
          addSum(getScores(op.getProbs()), op.getValue(), op.getOutput(), lse);
          return llvm::Error::success();
        })
        .Case([&](AttentionOp op) { return visitAttention(op); })
        .Case([&](tensor::CastOp op) {
          if (ScoreNodePtr node = scores.lookup(op.getSource()))
            scores[op.getDest()] = node;
          else
            tensors[op.getDest()] = tensors.lookup(op.getSource());
          return llvm::Error::success();
        })
        .Default([&](Operation *op) { return visitScalar(op); });
  }

  llvm::Error visitAttention(AttentionOp op) {
    ArrayPtr q = getTensor(op.getQuery()), k = getTensor(op.getKey());
    if (RotationAttr rotation = op.getQRotationAttr())
      if (llvm::Error error =
              rotateOperand(op.getQuery(), op.getQCos(), op.getQSin(),
                            op.getQOffset(), op.getQPositions(),
                            rotation.getPairing(), rotation.getOffset(), q))
        return error;
    if (RotationAttr rotation = op.getKRotationAttr())
      if (llvm::Error error =
              rotateOperand(op.getKey(), op.getKCos(), op.getKSin(),
                            op.getKOffset(), op.getKPositions(),
                            rotation.getPairing(), rotation.getOffset(), k))
        return error;
    ScoreNodePtr node = makeProduct(q, k, op.getScale().convertToDouble());
    for (BandAttr band : op.getBands().getAsRange<BandAttr>())
      node = makeBand(node, band.getAlign(), band.getLeft(), band.getRight());
    if (op.getBlocks())
      node = makeBlocks(
          node, getTensor(op.getRowOffsets()), getTensor(op.getColIndices()),
          op.getBlocksAttr().getQueryBlock(), op.getBlocksAttr().getKeyBlock());
    if (!op.getScore().empty()) {
      // Operands that are not tensors of the function yet are materialised.
      for (Value operand : op.getScoreOperands())
        getTensor(operand);
      llvm::Expected<ScoreNodePtr> region =
          makeScoreRegion(node, op, tensors, faults);
      if (!region)
        return region.takeError();
      node = *region;
    }
    node = makeNormalizer(node, op.getNormalizer(), op.getElementType());
    addSum(node, op.getValue(), op.getOutput(), op.getLse());
    return faults.takeError();
  }

  /// Softmax's second result comes with the weighted sum of its first, if
  /// there is one that is not used elsewhere; else by itself.
  llvm::Error visitLse(SoftmaxOp op) {
    if (!op.getLse() || op.getLse().use_empty() ||
        llvm::any_of(op.getProbs().getUsers(), [&](Operation *user) {
          return isa<WeightedSumOp>(user) && user->getBlock() == op->getBlock();
        }))
      return llvm::Error::success();
    std::vector<int64_t> shape = sizes.getShape(op.getScores());
    addSumResults(
        weightedSum(*scores[op.getProbs()], shape, nullptr, {}, wantErrors),
        Value(), op.getLse());
    return llvm::Error::success();
  }

  void addSum(ScoreNodePtr node, Value v, Value output, Value lse) {
    ArrayPtr value = getTensor(v);
    std::vector<int64_t> shape = sizes.getShape(output);
    shape[3] = value->shape[2];
    addSumResults(
        weightedSum(*node, shape, value.get(),
                    {getElementTypeOrSelf(v), getElementTypeOrSelf(output)},
                    wantErrors),
        output, lse);
  }

  void addSumResults(SumResults sum, Value output, Value lse) {
    auto add = [&](Value value, Array array, Array error) {
      if (!value)
        return;
      tensors[value] = std::make_shared<Array>(std::move(array));
      if (wantErrors)
        errors[value] = std::make_shared<Array>(std::move(error));
    };
    add(output, std::move(sum.output), std::move(sum.outputError));
    add(lse, std::move(sum.lse), std::move(sum.lseError));
  }

  /// Constants, and scalar arithmetic on offsets.
  llvm::Error visitScalar(Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (isa<ShapedType>(constant.getType()))
        return visitConstantTensor(constant);
    if (op->getNumResults() == 1 && isa<ShapedType>(op->getResult(0).getType()))
      return visitElementwise(op);
    SmallVector<Lanes> lanes;
    for (Value operand : op->getOperands()) {
      ArrayPtr array = tensors.lookup(operand);
      if (!array || !array->shape.empty())
        return makeUnknownOpError(op);
      lanes.push_back({array->floats, array->ints});
    }
    SmallVector<const Lanes *> operands;
    for (const Lanes &lane : lanes)
      operands.push_back(&lane);
    FailureOr<Lanes> result = evaluateLanes(op, operands, 1);
    if (failed(result))
      return makeUnknownOpError(op);
    bool isInt = isIntType(op->getResult(0).getType());
    Array array = isInt ? Array::ofInts({}) : Array::ofFloats({});
    (isInt ? array.ints.assign(result->ints.begin(), result->ints.end())
           : array.floats.assign(result->floats.begin(), result->floats.end()));
    tensors[op->getResult(0)] = std::make_shared<Array>(std::move(array));
    return llvm::Error::success();
  }

  /// Products, quotients and conversions of tensors around an attention, for
  /// which errors of elements are known.
  llvm::Error visitElementwise(Operation *op) {
    bool isProduct = isa<arith::MulFOp>(op),
         isQuotient = isa<arith::DivFOp>(op);
    bool isExact = isa<arith::NegFOp, arith::ExtFOp>(op);
    if (!isProduct && !isQuotient && !isExact && !isa<arith::TruncFOp>(op))
      return makeUnknownOpError(op);
    Value result = op->getResult(0), lhs = op->getOperand(0);
    Value rhs = isProduct || isQuotient ? op->getOperand(1) : Value();
    ArrayPtr x = getTensor(lhs), y = rhs ? getTensor(rhs) : nullptr;
    if (!x || !x->isFloat() || (rhs && (!y || !y->isFloat())))
      return makeUnknownOpError(op);
    if (y && y->shape != x->shape)
      return makeError("the operands of '" + op->getName().getStringRef() +
                       "' have different shapes");
    double roundoff =
        isExact ? 0 : getUnitRoundoff(getElementTypeOrSelf(result));
    Array z = Array::ofFloats(x->shape), error = Array::ofFloats(x->shape);
    z.relativeError = roundoff + x->relativeError + (y ? y->relativeError : 0);
    auto getError = [&](Value value, const ArrayPtr &array, int64_t i) {
      ArrayPtr known = errors.lookup(value);
      return known ? known->floats[i]
                   : array->relativeError * std::abs(array->floats[i]);
    };
    for (int64_t i = 0, end = z.getNumElements(); i < end; ++i) {
      double a = x->floats[i], b = y ? y->floats[i] : 1;
      double factor = isQuotient ? 1 / b : b;
      z.floats[i] = isa<arith::NegFOp>(op) ? -a : a * factor;
      error.floats[i] = roundoff * std::abs(z.floats[i]) +
                        std::abs(factor) * getError(lhs, x, i);
      if (rhs)
        error.floats[i] +=
            std::abs(isQuotient ? z.floats[i] / b : a) * getError(rhs, y, i);
    }
    if (errors.lookup(lhs) || (rhs && errors.lookup(rhs)))
      errors[result] = std::make_shared<Array>(std::move(error));
    tensors[result] = std::make_shared<Array>(std::move(z));
    return llvm::Error::success();
  }

  llvm::Error visitConstantTensor(arith::ConstantOp op) {
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!elements)
      return makeUnknownOpError(op);
    std::vector<int64_t> shape(elements.getType().getShape());
    Type type = elements.getElementType();
    Array array =
        isIntType(type) ? Array::ofInts(shape) : Array::ofFloats(shape);
    if (isIntType(type)) {
      if (type.isIndex() || type.getIntOrFloatBitWidth() > 64)
        return makeUnknownOpError(op);
      for (auto [index, value] : llvm::enumerate(elements.getValues<APInt>()))
        array.ints[index] = value.getSExtValue();
    } else {
      for (auto [index, value] :
           llvm::enumerate(elements.getValues<APFloat>())) {
        bool lostInfo;
        APFloat wide = value;
        wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                     &lostInfo);
        array.floats[index] = wide.convertToDouble();
      }
    }
    tensors[op.getResult()] = std::make_shared<Array>(std::move(array));
    return llvm::Error::success();
  }

  llvm::Error makeUnknownOpError(Operation *op) {
    return makeError("the reference cannot evaluate '" +
                     op->getName().getStringRef() + "'");
  }

  //===--- Operands -------------------------------------------------------===//

  llvm::Error rotateOperand(Value x, Value cos, Value sin, Value offset,
                            Value positions, Pairing pairing,
                            int64_t staticOffset, ArrayPtr &result) {
    auto find = [&](Value value) { return value ? getTensor(value) : nullptr; };
    ArrayPtr arrays[] = {find(x), find(cos), find(sin), find(offset),
                         find(positions)};
    RopeArguments arguments{arrays[0].get(), arrays[1].get(), arrays[2].get(),
                            arrays[3].get(), arrays[4].get(), pairing,
                            staticOffset};
    // S12: an offset that is given or constant is refused, one that is computed
    // is clamped, as positions are.
    bool isGiven = !offset || isa<BlockArgument>(offset) ||
                   offset.getDefiningOp<arith::ConstantOp>();
    if (!positions && isGiven && !isInsideTables(arguments))
      return makeError(
          "the rows of a rotation from " +
          (offset ? std::to_string(arrays[3]->ints[0]) + " + " : "") +
          Twine(staticOffset) + " on are not all in its table of " +
          Twine(arrays[1]->shape[0]) + " rows");
    result = std::make_shared<Array>(
        rotate(arguments, getUnitRoundoff(getElementTypeOrSelf(x))));
    return llvm::Error::success();
  }

  /// The whole tensor, also of scores.
  ArrayPtr getTensor(Value value) {
    ArrayPtr &array = tensors[value];
    if (!array)
      if (ScoreNodePtr node = scores.lookup(value))
        array = std::make_shared<Array>(
            evaluateScores(*node, sizes.getShape(value), false).first);
    return array;
  }

  /// Any tensor, as rows.
  ScoreNodePtr getScores(Value value) {
    ScoreNodePtr node = scores.lookup(value);
    return node ? node : makeGivenScores(getTensor(value));
  }

  /// The type of the v that the weights meet, which a fused kernel rounds
  /// them to.
  static Type getWeightType(Value probs) {
    for (Operation *user : probs.getUsers())
      if (auto sum = dyn_cast<WeightedSumOp>(user))
        return getElementTypeOrSelf(sum.getValue());
    return getElementTypeOrSelf(probs);
  }

  func::FuncOp function;
  const DimensionClasses &classes;
  DimensionSizes sizes;
  bool wantErrors;
  llvm::DenseMap<Value, ArrayPtr> tensors;
  llvm::DenseMap<Value, ArrayPtr> errors;
  llvm::DenseMap<Value, ScoreNodePtr> scores;
  RegionFaults faults;
};

llvm::Expected<Interpretation> interpretImpl(func::FuncOp function,
                                             ArrayRef<HostTensor> arguments,
                                             bool wantErrors) {
  llvm::Expected<DimensionClasses> classes =
      DimensionClasses::analyze(function);
  if (!classes)
    return classes.takeError();
  return Interpreter(*classes, wantErrors).run(arguments);
}
} // namespace

llvm::Expected<std::vector<HostTensor>>
mlir::attnfuse::interpret(func::FuncOp function,
                          llvm::ArrayRef<HostTensor> arguments) {
  llvm::Expected<Interpretation> interpretation =
      interpretImpl(function, arguments, false);
  if (!interpretation)
    return interpretation.takeError();
  return std::move(interpretation->results);
}

llvm::Expected<Interpretation>
mlir::attnfuse::interpretWithErrors(func::FuncOp function,
                                    llvm::ArrayRef<HostTensor> arguments) {
  return interpretImpl(function, arguments, true);
}
