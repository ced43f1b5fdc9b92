//===- CombinePartials.cpp - The kernel that combines parts ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/CombinePartials.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/ProgrammaticLaunch.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
namespace json = llvm::json;

/// Parts whose loads a warp has under way at a time.
static constexpr int64_t kPartsAtOnce = 4;
/// Columns of a row that a warp covers with a pair in each lane.
static constexpr int64_t kColumnsOfWarp = 2 * kWarpSize;

CombineGrid::CombineGrid(json::Value rows, const PartialResults &partials)
    : rowsPerBlock(json::Array{
          "add", 1,
          json::Array{"mul", kWarps - 1,
                      json::Array{"le", partials.count, kPartsOfWarp}}}),
      blocks(json::Array{"ceildiv", std::move(rows), rowsPerBlock}) {}

namespace {
class CombinePartials {
public:
  CombinePartials(AttentionOp op, const CombineGrid &grid,
                  LLVM::LLVMFuncOp kernel, LLVM::GlobalOp sharedMemory,
                  KernelAbi &abi)
      : b(op.getLoc(), OpBuilder::atBlockEnd(&kernel.getBody().front())),
        op(op), abi(abi), grid(grid), sharedMemory(sharedMemory),
        normalizer(op), columns(op.getValueHeadDim()),
        outputType(
            cast<RankedTensorType>(op.getOutput().getType()).getElementType()) {
  }

  void build();

private:
  using Row = OnlineNormalizer::Row;

  void buildIndices();
  void combineRow();
  Row loadState(Value part);
  /// The row of all parts together.
  Row combineStates();
  /// The lane's pairs of columns, of the parts that are this warp's.
  Values sumOutputs(const Row &whole);
  void addParts(MutableArrayRef<Value> sums, Value firstPart, const Row &whole,
                Value factor);
  void storePair(Value column, Value low, Value high);
  void storeRow(ArrayRef<Value> sums);
  /// The same of a row that all warps of the block have a share of.
  void storeSharedRow(ArrayRef<Value> sums);
  Value reduceWarp(Value value, function_ref<Value(Value, Value)> combine);
  /// First of the lane's columns of a chunk of the row.
  Value getColumn(int64_t chunk) {
    return b.add(b.shl(lane, 1), chunk * kColumnsOfWarp);
  }
  int64_t getNumChunks() const {
    return llvm::divideCeil(columns, kColumnsOfWarp);
  }

  KernelBuilder b;
  AttentionOp op;
  KernelAbi &abi;
  const CombineGrid &grid;
  LLVM::GlobalOp sharedMemory;
  OnlineNormalizer normalizer;
  int64_t columns;
  Type outputType;

  Value numHeads, nq, numParts; ///< i32, i64 and i32
  Value warp, lane, isShared;
  /// The warp's first part, and the distance to its next.
  Value firstPart, partStep;
  Value row, batch, head, rowOfHead;
  Value outputParts, stateParts; ///< of the row's part 0
};
} // namespace

Value CombinePartials::reduceWarp(Value value,
                                  function_ref<Value(Value, Value)> combine) {
  for (int64_t mask = 1; mask < kWarpSize; mask *= 2)
    value = combine(value, b.shuffleXor(value, mask));
  return value;
}

void CombinePartials::buildIndices() {
  auto getSize = [&](int64_t dim) { return abi.getDim(b, op.getQuery(), dim); };
  const PartialResults &partials = *abi.getPartials();
  numHeads = getSize(1);
  nq = getSize(2);
  numParts = b.toI32(abi.getValue(b, partials.count));
  Value rowsPerBlock = b.toI32(abi.getValue(b, grid.rowsPerBlock));
  isShared = b.eq(rowsPerBlock, 1);
  Value thread = b.threadId();
  warp = b.divU(thread, kWarpSize);
  lane = b.remU(thread, kWarpSize);
  firstPart = b.select(isShared, warp, b.i32(0));
  partStep = b.select(isShared, b.i32(CombineGrid::kWarps), b.i32(1));

  row = b.add(b.mul(b.toI64(b.blockId()), b.toI64(rowsPerBlock)),
              b.toI64(b.select(isShared, b.i32(0), warp)));
  Value headOfBatch = b.divU(row, nq);
  rowOfHead = b.sub(row, b.mul(headOfBatch, nq));
  batch = b.divU(headOfBatch, numHeads);
  head = b.sub(headOfBatch, b.mul(batch, numHeads));
  Value first =
      b.add(b.mul(b.mul(headOfBatch, b.toI64(numParts)), nq), rowOfHead);
  outputParts = b.offsetPtr(abi.getWorkspacePointer(b, partials.output),
                            b.mul(first, 4 * columns));
  stateParts =
      b.offsetPtr(abi.getWorkspacePointer(b, partials.rows), b.mul(first, 8));
}

void CombinePartials::build() {
  {
    Part part(b, "indices");
    buildIndices();
  }
  // Every thread waits, so that this kernel ends after the one before.
  if (abi.getPartials()->combinesEarly)
    waitForPreviousKernel(b);
  // All warps of a block that share a row have one.
  Value numRows = b.mul(b.mul(abi.getDim(b, op.getQuery(), 0), numHeads), nq);
  b.ifThen(b.lt(row, numRows), [&] { combineRow(); });
  b.create<LLVM::ReturnOp>(ValueRange());
}

CombinePartials::Row CombinePartials::loadState(Value part) {
  Value offset = b.mul(b.mul(b.toI64(part), nq), 8);
  Value state = b.load(VectorType::get({2}, b.getF32Type()),
                       b.offsetPtr(stateParts, offset), 8);
  return {b.extractElement(state, 0), b.extractElement(state, 1)};
}

CombinePartials::Row CombinePartials::combineStates() {
  Part part(b, "states");
  // A part a lane; then over the lanes, in an order that is always the same.
  auto fold = [&](Value init, function_ref<Value(const Row &)> get,
                  function_ref<Value(Value, Value)> combine) {
    Values end = b.whileLoop(
        {lane, init},
        [&](ValueRange state) { return b.lt(state[0], numParts); },
        [&](ValueRange state) -> Values {
          return {b.add(state[0], kWarpSize),
                  combine(state[1], get(loadState(state[0])))};
        });
    return reduceWarp(end[1], combine);
  };
  Row whole = normalizer.getInitial(b);
  whole.reference = fold(
      whole.reference, [](const Row &of) { return of.reference; },
      [&](Value x, Value y) { return b.maxF(x, y); });
  whole.sum = fold(
      whole.sum,
      [&](const Row &of) {
        return normalizer.getSumAt(b, of, whole.reference);
      },
      [&](Value x, Value y) { return b.addF(x, y); });
  return whole;
}

/// Adds kPartsAtOnce parts of the warp, from `firstPart` on.
void CombinePartials::addParts(MutableArrayRef<Value> sums, Value firstPart,
                               const Row &whole, Value factor) {
  Type pairType = VectorType::get({2}, b.getF32Type());
  Values weights;
  SmallVector<Values> pairs;
  for (int64_t of = 0; of < kPartsAtOnce; ++of) {
    Value part = b.add(firstPart, b.mul(partStep, of));
    Value isThere = b.lt(part, numParts);
    Value inside = b.select(isThere, part, firstPart);
    Value weight = b.f32(1);
    if (factor)
      weight = b.mulF(
          normalizer.getSumAt(b, loadState(inside), whole.reference), factor);
    weights.push_back(b.select(isThere, weight, b.f32(0)));
    Value start = b.offsetPtr(outputParts,
                              b.mul(b.mul(b.toI64(inside), nq), 4 * columns));
    Values &chunks = pairs.emplace_back();
    for (int64_t chunk = 0; chunk < getNumChunks(); ++chunk) {
      // Past the last column, that pair again.
      Value column = b.min(getColumn(chunk), columns - 2);
      chunks.push_back(
          b.load(pairType, b.offsetPtr(start, b.toI64(b.shl(column, 2))), 8));
    }
  }
  for (auto [weight, chunks] : llvm::zip_equal(weights, pairs)) {
    // A part of weight 0 adds nothing, though its V be infinite or NaN.
    Value adds = b.notI(b.eqF(weight, b.f32(0)));
    for (auto [chunk, pair] : llvm::enumerate(chunks))
      for (int64_t of : {0, 1}) {
        Value &sum = sums[2 * chunk + of];
        sum =
            b.select(adds, b.fma(weight, b.extractElement(pair, of), sum), sum);
      }
  }
}

Values CombinePartials::sumOutputs(const Row &whole) {
  Part part(b, "outputs");
  Value factor;
  if (normalizer.weighsParts())
    factor = normalizer.getOutputFactor(b, whole, /*nkv=*/{});
  Values init{firstPart};
  init.append(2 * getNumChunks(), b.f32(0));
  Values end = b.whileLoop(
      init, [&](ValueRange state) { return b.lt(state[0], numParts); },
      [&](ValueRange state) -> Values {
        Values sums(state.drop_front());
        addParts(sums, state[0], whole, factor);
        Values next{b.add(state[0], b.mul(partStep, kPartsAtOnce))};
        next.append(sums);
        return next;
      });
  return Values(ValueRange(end).drop_front());
}

void CombinePartials::combineRow() {
  bool hasLse = abi.has(op.getLse());
  Row whole;
  if (normalizer.weighsParts())
    whole = combineStates();
  Values sums = sumOutputs(whole);
  Part part(b, "store");
  if (hasLse)
    b.ifThen(b.andI(b.eq(firstPart, 0), b.eq(lane, 0)), [&] {
      Value lse = op.getLse();
      Value element = b.add(b.add(b.mul(batch, abi.getStride(b, lse, 0)),
                                  b.mul(head, abi.getStride(b, lse, 1))),
                            b.mul(rowOfHead, abi.getStride(b, lse, 2)));
      b.store(normalizer.getLogSumExp(b, whole),
              b.offsetPtr(abi.getPointer(b, lse), b.shl(element, 2)), 4);
    });
  b.ifElse(
      isShared, TypeRange(),
      [&]() -> Values {
        storeSharedRow(sums);
        return {};
      },
      [&]() -> Values {
        storeRow(sums);
        return {};
      });
}

void CombinePartials::storePair(Value column, Value low, Value high) {
  Value output = op.getOutput();
  Value element = b.add(
      b.add(b.mul(batch, abi.getStride(b, output, 0)),
            b.mul(head, abi.getStride(b, output, 1))),
      b.add(b.mul(rowOfHead, abi.getStride(b, output, 2)), b.toI64(column)));
  int64_t bytes = outputType.getIntOrFloatBitWidth() / 8;
  Value address = b.offsetPtr(abi.getPointer(b, output), b.mul(element, bytes));
  Value pair = outputType.isF32() ? b.makeVector({low, high})
                                  : b.pack(low, high, outputType);
  b.store(pair, address, 2 * bytes);
}

void CombinePartials::storeRow(ArrayRef<Value> sums) {
  for (int64_t chunk = 0; chunk < getNumChunks(); ++chunk) {
    Value column = getColumn(chunk);
    auto store = [&] {
      storePair(column, sums[2 * chunk], sums[2 * chunk + 1]);
    };
    if ((chunk + 1) * kColumnsOfWarp <= columns)
      store();
    else
      b.ifThen(b.lt(column, columns), store);
  }
}

void CombinePartials::storeSharedRow(ArrayRef<Value> sums) {
  Value base =
      b.create<LLVM::AddressOfOp>(b.sharedPtrType(), sharedMemory.getSymName());
  Type pairType = VectorType::get({2}, b.getF32Type());
  Value own = b.mul(warp, 4 * columns);
  for (int64_t chunk = 0; chunk < getNumChunks(); ++chunk) {
    Value column = getColumn(chunk);
    b.ifThen(b.lt(column, columns), [&] {
      b.store(b.makeVector({sums[2 * chunk], sums[2 * chunk + 1]}),
              b.offsetPtr(base, b.add(own, b.shl(column, 2))), 8);
    });
  }
  b.barrier();
  // A pair of columns a thread: no head is larger than the block's pairs.
  Value column = b.shl(b.threadId(), 1);
  b.ifThen(b.lt(column, columns), [&] {
    Value low = b.f32(0), high = low;
    for (int64_t of = 0; of < CombineGrid::kWarps; ++of) {
      Value pair = b.load(
          pairType,
          b.offsetPtr(base, b.add(b.shl(column, 2), of * 4 * columns)), 8);
      low = b.addF(low, b.extractElement(pair, 0));
      high = b.addF(high, b.extractElement(pair, 1));
    }
    storePair(column, low, high);
  });
}

void kernelgen::buildCombinePartials(AttentionOp op, const CombineGrid &grid,
                                     LLVM::LLVMFuncOp kernel,
                                     LLVM::GlobalOp sharedMemory,
                                     KernelAbi &abi) {
  CombinePartials(op, grid, kernel, sharedMemory, abi).build();
}
