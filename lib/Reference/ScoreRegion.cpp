//===- ScoreRegion.cpp - The region of attnfuse.attention -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreRegion.h"
#include "Lanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;

namespace {
class ScoreRegion : public ScoreNode {
public:
  ScoreRegion(ScoreNodePtr input, AttentionOp op,
              llvm::DenseMap<Value, ArrayPtr> tensors, RegionFaults &faults)
      : input(std::move(input)), block(op.getScore().front()),
        tensors(std::move(tensors)), faults(faults) {}

  void mask(Row &row) const override { input->mask(row); }

  void score(Row &row) const override {
    input->score(row);
    // A lane for each visible key.
    std::vector<int64_t> keys, masked;
    std::vector<double> scores;
    for (int64_t j = 0; j < row.nkv; ++j)
      if (row.visible[j]) {
        keys.push_back(j);
        scores.push_back(row.score[j]);
      } else {
        masked.push_back(j);
      }
    std::vector<double> noise(row.wantErrors ? keys.size() : 0);
    std::vector<double> yielded = *run(row, keys, scores, &noise, &faults);
    // An implementation may evaluate the region of a masked key.
    if (mayFault())
      run(row, masked, std::vector<double>(masked.size()), nullptr, &faults);
    if (row.wantErrors)
      propagateErrors(row, keys, scores, yielded, noise);
    for (auto [key, value] : llvm::zip_equal(keys, yielded)) {
      row.score[key] = value;
      if (value == -INFINITY)
        row.visible[key] = 0;
    }
  }

  /// The op in the region that cannot be evaluated, if any.
  Operation *findUnknownOp() const {
    Row row(0, 0, 0, {1, 1, 1, 0}, false);
    Operation *unknown = nullptr;
    run(row, {}, {}, nullptr, nullptr, &unknown);
    return unknown;
  }

private:
  using Environment = llvm::DenseMap<Value, Lanes>;

  /// The yielded scores. `noise`, if not empty, is increased by the rounding
  /// errors of the ops. Faults are added to `report`, if given. Fails only if
  /// `unknown` is given, where it stores the op in the way.
  std::optional<std::vector<double>> run(const Row &row, ArrayRef<int64_t> keys,
                                         ArrayRef<double> scores,
                                         std::vector<double> *noise,
                                         RegionFaults *report = nullptr,
                                         Operation **unknown = nullptr) const {
    Environment lanes;
    bindArguments(row, keys, scores, lanes);
    for (Operation &op : block.without_terminator()) {
      FailureOr<Lanes> result = evaluate(&op, keys.size(), lanes);
      if (failed(result)) {
        if (unknown)
          *unknown = &op;
        return std::nullopt;
      }
      if (report && hasFault(&op, lanes))
        report->add(&op);
      if (noise && !noise->empty() && isRounding(&op))
        for (auto [sum, value] : llvm::zip_equal(*noise, result->floats))
          if (std::isfinite(value))
            sum += 2 * getUnitRoundoff(op.getResult(0).getType()) *
                   std::abs(value);
      lanes[op.getResult(0)] = std::move(*result);
    }
    return lanes[cast<YieldOp>(block.getTerminator()).getScore()].floats;
  }

  static bool isDivision(Operation *op) {
    return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
               arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
  }

  bool mayFault() const {
    return llvm::any_of(block, [](Operation &op) {
      return isDivision(&op) || isa<tensor::ExtractOp>(op);
    });
  }

  /// Spec S14.
  bool hasFault(Operation *op, const Environment &lanes) const {
    auto getInts = [&](Value value) -> ArrayRef<int64_t> {
      return lanes.find(value)->second.ints;
    };
    if (isDivision(op))
      return llvm::is_contained(getInts(op->getOperand(1)), 0);
    auto extract = dyn_cast<tensor::ExtractOp>(op);
    if (!extract)
      return false;
    const Array &tensor = *tensors.lookup(extract.getTensor());
    for (auto [size, index] :
         llvm::zip_equal(tensor.shape, extract.getIndices()))
      if (llvm::any_of(getInts(index),
                       [size = size](int64_t i) { return i < 0 || i >= size; }))
        return true;
    return false;
  }

  void bindArguments(const Row &row, ArrayRef<int64_t> keys,
                     ArrayRef<double> scores, Environment &lanes) const {
    auto bind = [&](AttentionOp::ScoreArg arg, int64_t value) {
      lanes[block.getArgument(arg)].ints.assign(keys.size(), value);
    };
    lanes[block.getArgument(AttentionOp::Score)].floats = scores;
    bind(AttentionOp::B, row.b);
    bind(AttentionOp::H, row.h);
    bind(AttentionOp::I, row.i);
    lanes[block.getArgument(AttentionOp::J)].ints = keys;
    bind(AttentionOp::Nq, row.nq);
    bind(AttentionOp::Nkv, row.nkv);
    bind(AttentionOp::Hq, row.hq);
  }

  FailureOr<Lanes> evaluate(Operation *op, size_t count,
                            Environment &lanes) const {
    bool isExtract = isa<tensor::ExtractOp>(op);
    ValueRange scalars(op->getOperands());
    if (isExtract)
      scalars = scalars.drop_front();
    SmallVector<const Lanes *> operands;
    for (Value operand : scalars) {
      auto it = lanes.find(operand);
      if (it == lanes.end())
        return failure();
      operands.push_back(&it->second);
    }
    if (!isExtract)
      return evaluateLanes(op, operands, count);
    ArrayPtr tensor = tensors.lookup(op->getOperand(0));
    if (!tensor || tensor->shape.size() != operands.size())
      return failure();
    return extract(*tensor, operands, count);
  }

  /// An index out of range reads NaN, or 0.
  static Lanes extract(const Array &tensor, ArrayRef<const Lanes *> indices,
                       size_t count) {
    Lanes result;
    for (size_t lane = 0; lane < count; ++lane) {
      int64_t offset = 0;
      bool inRange = true;
      for (auto [size, index] : llvm::zip_equal(tensor.shape, indices)) {
        inRange &= index->ints[lane] >= 0 && index->ints[lane] < size;
        offset = inRange ? offset * size + index->ints[lane] : 0;
      }
      if (tensor.isFloat())
        result.floats.push_back(inRange ? tensor.floats[offset] : NAN);
      else
        result.ints.push_back(inRange ? tensor.ints[offset] : 0);
    }
    return result;
  }

  /// How far the region carries an error of its argument is seen by moving
  /// the argument.
  void propagateErrors(Row &row, ArrayRef<int64_t> keys,
                       ArrayRef<double> scores, ArrayRef<double> yielded,
                       ArrayRef<double> noise) const {
    std::vector<double> above(scores), below(scores);
    for (auto [lane, key] : llvm::enumerate(keys)) {
      above[lane] += row.error[key];
      below[lane] -= row.error[key];
    }
    above = *run(row, keys, above, nullptr);
    below = *run(row, keys, below, nullptr);
    for (auto [lane, key] : llvm::enumerate(keys)) {
      double moved = 0;
      for (double other : {above[lane], below[lane]})
        if (std::isfinite(other) && std::isfinite(yielded[lane]))
          moved = std::max(moved, std::abs(other - yielded[lane]));
      row.error[key] = moved + noise[lane];
    }
  }

  ScoreNodePtr input;
  Block &block;
  /// Score operands, under the region's arguments.
  llvm::DenseMap<Value, ArrayPtr> tensors;
  RegionFaults &faults;
};
} // namespace

void RegionFaults::add(Operation *op) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!first || op->isBeforeInBlock(first))
    first = op;
}

llvm::Error RegionFaults::takeError() {
  if (!first)
    return llvm::Error::success();
  std::string message;
  llvm::raw_string_ostream os(message);
  if (auto place = first->getLoc()->findInstanceOf<FileLineColLoc>())
    os << place.getFilename().getValue() << ":" << place.getLine() << ":"
       << place.getColumn() << ": ";
  os << "'" << first->getName() << "' in a score region "
     << (isa<tensor::ExtractOp>(first) ? "reads outside of its tensor"
                                       : "divides by 0");
  return llvm::createStringError(message);
}

llvm::Expected<ScoreNodePtr>
reference::makeScoreRegion(ScoreNodePtr input, AttentionOp op,
                           const llvm::DenseMap<Value, ArrayPtr> &tensors,
                           RegionFaults &faults) {
  llvm::DenseMap<Value, ArrayPtr> inside;
  for (auto [operand, argument] :
       llvm::zip(op.getScoreOperands(), op.getScore().getArguments().drop_front(
                                            AttentionOp::NumFixedScoreArgs)))
    inside[argument] = tensors.lookup(operand);
  auto node = std::make_shared<ScoreRegion>(std::move(input), op,
                                            std::move(inside), faults);
  if (Operation *unknown = node->findUnknownOp())
    return llvm::createStringError("the reference cannot evaluate '" +
                                   unknown->getName().getStringRef().str() +
                                   "' in a score region");
  return node;
}
