//===- AttentionForward.cpp - The forward kernel for sm_80 and later ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm80/AttentionForward.h"
#include "KeyTiles.h"
#include "WarpProducts.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/OutputRows.h"
#include "attnfuse/KernelGen/ProgrammaticLaunch.h"
#include "attnfuse/KernelGen/Rotation.h"
#include "attnfuse/KernelGen/ScoreTile.h"
#include "attnfuse/KernelGen/SharedLayout.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "attnfuse/KernelGen/Sm80/TileCopy.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm80;

namespace {
/// What the block's run over the key tiles is for; see the header.
enum Mode : int64_t { Compute, FiniteValues, NonFiniteValues, NumModes };
/// Units of a rotation that a thread has in registers.
constexpr int64_t kUnitsAtOnce = 2;

class ForwardKernel {
public:
  ForwardKernel(AttentionOp op, const KernelTile &tile, LLVM::LLVMFuncOp kernel,
                LLVM::GlobalOp sharedMemory, KernelAbi &abi);
  void build();

private:
  /// What a step of the key loop hands to the next: where the walk is, which
  /// slot its tiles are in, the rows' normaliser states and the output
  /// accumulators.
  struct LoopState {
    Values position;
    Value slotOffset;
    OnlineNormalizer::Rows rows;
    Values output;

    Values flatten() const;
    static LoopState unflatten(ValueRange values, const LoopState &like);
  };

  void buildIndices();
  Value buildRun(Value mode);
  LoopState buildStep(LoopState state, ArrayRef<Values> queryFragments,
                      Value mode);
  void buildMask(Values &scores, Value firstKey);
  void buildNormalizer(LoopState &state, MutableArrayRef<Value> scores);
  void buildValueFilter(Value mode, Value slotOffset);
  Value buildEpilogue(LoopState state, Value mode);
  void storeOutput(ArrayRef<Value> output);

  TileCopy::Rows getQueryRows(Value tensor, Value base);

  AttentionOp op;
  LLVM::LLVMFuncOp kernel;
  LLVM::GlobalOp sharedMemory;
  KernelAbi &abi;
  KernelBuilder b;

  // Compile-time shape.
  PaddedHeadDims dims;
  KernelTile tile;
  SharedMemoryPlan plan;
  int64_t threads, rowTiles;
  Type elementType;
  SharedLayout queryLayout, outputLayout;
  AccumulatorTile scoreShape, outputShape;
  RotationOperands queryRotation, keyRotation;

  // Run-time values.
  AttentionProblem problem;
  OnlineNormalizer normalizer;
  QueryTile query;
  std::optional<KeyTiles> keyTiles;
  std::optional<WarpProducts> products;
  std::optional<ScoreTile> scoreTile;
  std::optional<OutputRows> outputRows;
  Value thread, lane, warpRow, laneRow, laneColumn;
  Value shared, queryTile, queryBase;
};
} // namespace

ForwardKernel::ForwardKernel(AttentionOp op, const KernelTile &tile,
                             LLVM::LLVMFuncOp kernel,
                             LLVM::GlobalOp sharedMemory, KernelAbi &abi)
    : op(op), kernel(kernel), sharedMemory(sharedMemory), abi(abi),
      b(op.getLoc(), OpBuilder::atBlockEnd(&kernel.getBody().front())),
      dims(op.getHeadDim(), op.getValueHeadDim()), tile(tile), plan(dims, tile),
      threads(tile.getThreads()), rowTiles(tile.getRowTilesPerWarp()),
      elementType(op.getElementType()), queryLayout(tile.tileM, dims.qk),
      outputLayout(tile.tileM, dims.v),
      scoreShape{rowTiles, tile.tileN / AccumulatorTile::kColumns},
      outputShape{rowTiles, dims.v / AccumulatorTile::kColumns},
      queryRotation(RotationOperands::getQuery(op)),
      keyRotation(RotationOperands::getKey(op)), problem(b, op, abi),
      normalizer(op.getNormalizer(),
                 problem.scalesScores() ? 1.0 : problem.getScale()) {}

Values ForwardKernel::LoopState::flatten() const {
  Values values = position;
  values.push_back(slotOffset);
  values.append(OnlineNormalizer::flatten(rows));
  values.append(output);
  return values;
}

ForwardKernel::LoopState
ForwardKernel::LoopState::unflatten(ValueRange values, const LoopState &like) {
  LoopState state;
  state.position = takeFront(values, like.position.size());
  state.slotOffset = takeFront(values, 1).front();
  state.rows = OnlineNormalizer::takeRows(values, like.rows.size());
  state.output = takeFront(values, like.output.size());
  return state;
}

//===----------------------------------------------------------------------===//
// The block's place in the problem
//===----------------------------------------------------------------------===//

void ForwardKernel::build() {
  if (problem.splitsKeys() && abi.getPartials()->combinesEarly)
    releaseDependents(b);
  buildIndices();
  b.whileLoop(
      b.i32(Compute), [&](ValueRange mode) { return b.lt(mode[0], NumModes); },
      [&](ValueRange mode) -> Values { return {buildRun(mode[0])}; });
  b.create<LLVM::ReturnOp>(ValueRange());
}

void ForwardKernel::buildIndices() {
  Part part(b, "indices");
  thread = b.threadId();
  lane = b.remU(thread, kWarpSize);
  warpRow = b.mul(b.divU(thread, kWarpSize), kMmaM * rowTiles);
  // The lane's part of an accumulator's place; the element's is a constant.
  laneRow = b.divU(lane, 4);
  laneColumn = b.shl(b.remU(lane, 4), 1);

  Value block = b.blockId(), keyPart;
  if (problem.splitsKeys()) {
    keyPart = b.remU(block, problem.numParts);
    block = b.divU(block, problem.numParts);
  }
  Value numRowBlocks = problem.getNumRowBlocks(b, tile);
  Value rowBlock = b.remU(block, numRowBlocks);
  // Below a diagonal the last tile has the most keys: long tiles first.
  if (problem.limits.upper)
    rowBlock = b.sub(b.sub(numRowBlocks, 1), rowBlock);
  query = problem.getQueryTile(b, tile, b.divU(block, numRowBlocks), rowBlock,
                               keyPart);
  Value row = b.add(b.add(query.firstRow, warpRow), laneRow);
  scoreTile.emplace(problem, query, scoreShape, row, laneColumn);
  outputRows.emplace(problem, query, outputShape, row, laneColumn);

  shared =
      b.create<LLVM::AddressOfOp>(b.sharedPtrType(), sharedMemory.getSymName());
  queryTile = b.offsetPtr(shared, plan.q);
  queryBase = problem.getHeadBase(b, op.getQuery(), query.batch, query.head);
  products.emplace(b, tile, dims, elementType, queryTile, warpRow, lane);
  keyTiles.emplace(b, problem, tile, query, shared, thread);
}

/// The block's rows of `tensor`, which has one for each query and whose head is
/// at `base`.
TileCopy::Rows ForwardKernel::getQueryRows(Value tensor, Value base) {
  return {base, abi.getStride(b, tensor, 2), query.firstRow, problem.nq};
}

//===----------------------------------------------------------------------===//
// One run over the key tiles
//===----------------------------------------------------------------------===//

Value ForwardKernel::buildRun(Value mode) {
  LoopState state;
  {
    Part part(b, "prologue");
    TileCopy(b, queryLayout, op.getHeadDim(), threads, thread)
        .load(b, getQueryRows(op.getQuery(), queryBase), queryTile);
    commitCopies(b);
    state.position = keyTiles->getWalk().begin(b);
    state.slotOffset = b.i32(0);
    keyTiles->loadFirst(state.position);
  }
  SmallVector<Values> queryFragments;
  if (queryRotation || tile.qInRegisters) {
    waitCopies(b, keyTiles->getNumFirstGroups());
    b.barrier();
  }
  if (queryRotation) {
    TileRotation(queryRotation, elementType, abi, threads, kUnitsAtOnce)
        .emit(b, queryLayout, queryTile, tile.tileM, tile.tileM, query.firstRow,
              problem.nq, query.batch, thread);
    if (tile.qInRegisters)
      b.barrier();
  }
  if (tile.qInRegisters)
    queryFragments = products->loadQuery();

  state.rows.assign(scoreShape.getNumRows(), normalizer.getInitial(b));
  state.output.assign(outputShape.getSize(), b.f32(0));
  Values final = b.whileLoop(
      state.flatten(),
      [&](ValueRange values) {
        return keyTiles->getWalk().isValid(
            b, LoopState::unflatten(values, state).position);
      },
      [&](ValueRange values) {
        return buildStep(LoopState::unflatten(values, state), queryFragments,
                         mode)
            .flatten();
      });
  return buildEpilogue(LoopState::unflatten(final, state), mode);
}

ForwardKernel::LoopState
ForwardKernel::buildStep(LoopState state, ArrayRef<Values> queryFragments,
                         Value mode) {
  // With a length that it knows, LLVM knows how the position runs, too. It
  // would keep an address for each load of a step, and no register be left.
  if (!cast<RankedTensorType>(problem.getOp().getKey().getType())
           .isDynamicDim(2))
    state.position = b.pin(state.position);
  Value firstKey = keyTiles->getWalk().getFirstKey(b, state.position);
  Value keyTile = keyTiles->getKeyTile(state.slotOffset);
  Value valueTile = keyTiles->getValueTile(state.slotOffset);
  keyTiles->awaitKeys(state.position, state.slotOffset);
  if (keyRotation) {
    TileRotation(keyRotation, elementType, abi, threads, kUnitsAtOnce)
        .emit(b, keyTiles->getKeyLayout(), keyTile, tile.tileN, tile.tileN,
              firstKey, problem.nkv, query.batch, thread);
    b.barrier();
  }
  Values scores = products->getScores(queryFragments, keyTile);
  scoreTile->applyChain(b, scores, firstKey);
  buildMask(scores, firstKey);
  state.position = keyTiles->getWalk().next(b, state.position);
  keyTiles->awaitValues(state.position, state.slotOffset);
  buildValueFilter(mode, state.slotOffset);
  buildNormalizer(state, scores);
  products->addWeightedSum(scores, valueTile, state.output);
  state.slotOffset = keyTiles->getNextSlot(state.slotOffset);
  return state;
}

//===----------------------------------------------------------------------===//
// Masks, and scores to weights
//===----------------------------------------------------------------------===//

void ForwardKernel::buildMask(Values &scores, Value firstKey) {
  scores = b.ifElse(
      keyTiles->getWalk().isBoundary(b, firstKey),
      ValueRange(scores).getTypes(),
      [&] {
        Values masked = scores;
        scoreTile->applyMask(b, masked, firstKey);
        return masked;
      },
      [&] { return scores; });
}

void ForwardKernel::buildNormalizer(LoopState &state,
                                    MutableArrayRef<Value> scores) {
  Part part(b, "normalize");
  // References stay where they are until a row has outgrown its own by far:
  // after the first tiles the output is hardly ever rescaled.
  OnlineNormalizer::Style style;
  style.skipsRescale = true;
  SmallVector<Values> rows;
  SmallVector<OnlineNormalizer::Rescale> rescales;
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    rows.push_back(
        llvm::map_to_vector(scoreShape.getRowIndices(r),
                            [&](int64_t index) { return scores[index]; }));
    rescales.push_back(normalizer.advance(b, row, rows.back(), style));
  }
  {
    Part part(b, "rescale");
    state.output =
        OnlineNormalizer::rescale(b, rescales, outputShape, state.output);
  }
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    normalizer.weigh(b, row, rows[r], style);
    normalizer.accumulate(b, row, rows[r], style);
    for (auto [index, weight] :
         llvm::zip_equal(scoreShape.getRowIndices(r), rows[r]))
      scores[index] = weight;
  }
}

void ForwardKernel::buildValueFilter(Value mode, Value slotOffset) {
  Part part(b, "value_filter");
  b.ifThen(b.lt(b.i32(Compute), mode), [&] {
    keyTiles->filterValues(b.eq(mode, FiniteValues), slotOffset);
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value ForwardKernel::buildEpilogue(LoopState state, Value mode) {
  Part part(b, "epilogue");
  // The tiles' memory is about to be reused; a block without keys still awaits
  // its Q.
  waitCopies(b, 0);
  b.barrier();
  // Pinned, so that no comparison with it is made before the key loop and kept
  // meanwhile.
  Value rowsLeft;
  if (op.hasScoreChain())
    rowsLeft = b.sub(problem.nq, b.pin({outputRows->getRow(b, 0)})[0]);
  // 0 times a number is 0, and NaN otherwise.
  Value probe = b.f32(0);
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    normalizer.finish(b, row);
    Value factor = normalizer.getOutputFactor(b, row, problem.nkv);
    Value before = probe;
    for (int64_t index : outputShape.getRowIndices(r)) {
      Value &output = state.output[index];
      output = b.mulF(output, factor);
      probe = b.fma(output, b.f32(0), probe);
    }
    // A score region may make NaN of rows past the end, for which nothing is
    // computed anew.
    if (op.hasScoreChain())
      probe = b.select(b.le(rowsLeft, b.i32(AccumulatorTile::getRowOffset(r))),
                       before, probe);
  }
  b.ifElse(
      b.eq(mode, NonFiniteValues), TypeRange(),
      [&]() -> Values {
        outputRows->storeNaN(b, state.output);
        return {};
      },
      [&]() -> Values {
        storeOutput(state.output);
        outputRows->storeStates(b, normalizer, state.rows);
        return {};
      });
  // The vote tells the assembler that a warp repeats the run as a whole; else
  // it takes the loop for divergent and keeps registers for calls in place of
  // shuffles.
  Value again = b.anyLane(b.barrierAny(b.notI(b.eqF(probe, b.f32(0)))));
  Value afterCompute = b.select(again, b.i32(FiniteValues), b.i32(NumModes));
  return b.select(b.eq(mode, Compute), afterCompute, b.add(mode, 1));
}

void ForwardKernel::storeOutput(ArrayRef<Value> output) {
  Type type = problem.getOutputType();
  if (type.isF32())
    return outputRows->store(b, output);
  // Through shared memory, so that rows are written in 16-byte pieces.
  Value staged = b.offsetPtr(shared, plan.output);
  for (int64_t r = 0; r < outputShape.getNumRows(); ++r) {
    Value row =
        b.add(b.add(warpRow, laneRow), AccumulatorTile::getRowOffset(r));
    SmallVector<int64_t> indices = outputShape.getRowIndices(r);
    for (size_t n = 0; n < indices.size(); n += 2) {
      Value offset = b.add(outputLayout.getOffset(b, row, b.i32(n / 2)),
                           b.shl(laneColumn, 1));
      b.store(b.pack(output[indices[n]], output[indices[n + 1]], type),
              b.offsetPtr(staged, offset), 4);
    }
  }
  b.barrier();
  TileCopy(b, outputLayout, op.getValueHeadDim(), threads, thread)
      .store(b,
             getQueryRows(op.getOutput(),
                          problem.getHeadBase(b, op.getOutput(), query.batch,
                                              query.head)),
             staged);
}

void sm80::buildAttentionForward(AttentionOp op, const KernelTile &tile,
                                 LLVM::LLVMFuncOp kernel,
                                 LLVM::GlobalOp sharedMemory, KernelAbi &abi) {
  ForwardKernel(op, tile, kernel, sharedMemory, abi).build();
}
