//===- AttentionForward.cpp - The forward kernel for sm_80 and later ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm80/AttentionForward.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/OutputRows.h"
#include "attnfuse/KernelGen/Rotation.h"
#include "attnfuse/KernelGen/ScoreTile.h"
#include "attnfuse/KernelGen/SharedLayout.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "attnfuse/KernelGen/Sm80/TileCopy.h"
#include "attnfuse/KernelGen/Sm90/Atoms.h"
#include "attnfuse/KernelGen/ValueFilter.h"
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
  /// What a step of the key loop hands to the next: where the walk is, in which
  /// slot its tiles lie, the rows' normaliser states and the output
  /// accumulators.
  struct LoopState {
    Values position;
    Value slot;
    OnlineNormalizer::Rows rows;
    Values output;

    Values flatten() const;
    static LoopState unflatten(ValueRange values, const LoopState &like);
  };

  void buildIndices();
  Value buildRun(Value mode);
  int64_t loadFirstTiles(ValueRange position);
  void awaitKeys(ValueRange position, Value slot);
  void awaitValues(ValueRange next, Value slot);
  LoopState buildStep(LoopState state, ArrayRef<Values> queryFragments,
                      Value mode);
  Values buildScores(ArrayRef<Values> queryFragments, Value keyTile);
  void buildMask(Values &scores, Value firstKey);
  void buildNormalizer(LoopState &state, MutableArrayRef<Value> scores);
  void buildWeightedSum(LoopState &state, ArrayRef<Value> weights,
                        Value valueTile);
  void buildValueFilter(Value mode, Value valueTile);
  Value buildEpilogue(LoopState state, Value mode);
  void storeOutput(ArrayRef<Value> output);

  SmallVector<Values> loadQueryFragments(int64_t step);
  TileCopy::Rows getQueryRows(Value tensor, Value base);
  void loadKeys(ValueRange position, Value slot);
  void loadValues(ValueRange position, Value slot);
  void loadGroup(ValueRange position, function_ref<void()> load);
  void loadTiles(ValueRange position, Value slot);
  Value getSharedTile(int64_t byteOffset);
  Value getKeyTile(Value slot) { return b.offsetPtr(firstKeyTile, slot); }
  Value getValueTile(Value slot) { return b.offsetPtr(firstValueTile, slot); }
  Value getNextSlot(Value slot);
  Value getPreviousSlot(Value slot);

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
  SharedLayout queryLayout, keyLayout, valueLayout, outputLayout;
  AccumulatorTile scoreShape, outputShape;
  RotationOperands queryRotation, keyRotation;

  // Run-time values.
  AttentionProblem problem;
  OnlineNormalizer normalizer;
  QueryTile query;
  std::optional<TileWalk> walk;
  std::optional<ScoreTile> scoreTile;
  std::optional<OutputRows> outputRows;
  Value thread, lane, warpRow, laneRow, laneColumn;
  Value queryTile, firstKeyTile, firstValueTile;
  Value queryBase, keyBase, valueBase;
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
      keyLayout(tile.tileN, dims.qk), valueLayout(tile.tileN, dims.v),
      outputLayout(tile.tileM, dims.v),
      scoreShape{rowTiles, tile.tileN / AccumulatorTile::kColumns},
      outputShape{rowTiles, dims.v / AccumulatorTile::kColumns},
      queryRotation(RotationOperands::getQuery(op)),
      keyRotation(RotationOperands::getKey(op)), problem(b, op, abi),
      normalizer(op.getNormalizer(),
                 problem.scalesScores() ? 1.0 : problem.getScale()) {}

Values ForwardKernel::LoopState::flatten() const {
  Values values = position;
  values.push_back(slot);
  values.append(OnlineNormalizer::flatten(rows));
  values.append(output);
  return values;
}

ForwardKernel::LoopState
ForwardKernel::LoopState::unflatten(ValueRange values, const LoopState &like) {
  LoopState state;
  state.position = takeFront(values, like.position.size());
  state.slot = takeFront(values, 1).front();
  state.rows = OnlineNormalizer::takeRows(values, like.rows.size());
  state.output = takeFront(values, like.output.size());
  return state;
}

//===----------------------------------------------------------------------===//
// The block's place in the problem
//===----------------------------------------------------------------------===//

void ForwardKernel::build() {
  if (problem.splitsKeys() && abi.getPartials()->combinesEarly)
    sm90::releaseDependents(b);
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
  Value numTiles = problem.getNumRowBlocks(b, tile);
  Value rowBlock = b.remU(block, numTiles);
  // Below a diagonal the last tile has the most keys: long tiles first.
  if (problem.limits.upper)
    rowBlock = b.sub(b.sub(numTiles, 1), rowBlock);
  query =
      problem.getQueryTile(b, tile, b.divU(block, numTiles), rowBlock, keyPart);
  Value row = b.add(b.add(query.firstRow, warpRow), laneRow);
  scoreTile.emplace(problem, query, scoreShape, row, laneColumn);
  outputRows.emplace(problem, query, outputShape, row, laneColumn);

  queryTile = getSharedTile(plan.q);
  firstKeyTile = getSharedTile(plan.k);
  firstValueTile = getSharedTile(plan.v);
  queryBase = problem.getHeadBase(b, op.getQuery(), query.batch, query.head);
  keyBase = problem.getHeadBase(b, op.getKey(), query.batch, query.keyHead);
  valueBase = problem.getHeadBase(b, op.getValue(), query.batch, query.keyHead);
  walk = problem.getWalk(b, tile, query);
}

Value ForwardKernel::getSharedTile(int64_t byteOffset) {
  Value base =
      b.create<LLVM::AddressOfOp>(b.sharedPtrType(), sharedMemory.getSymName());
  return b.offsetPtr(base, byteOffset);
}

//===----------------------------------------------------------------------===//
// Tiles of K and V on their way
//===----------------------------------------------------------------------===//

Value ForwardKernel::getNextSlot(Value slot) {
  if (tile.stages == 1)
    return slot;
  int64_t last = (tile.stages - 1) * plan.slotBytes;
  return b.select(b.eq(slot, last), b.i32(0), b.add(slot, plan.slotBytes));
}

Value ForwardKernel::getPreviousSlot(Value slot) {
  int64_t last = (tile.stages - 1) * plan.slotBytes;
  return b.select(b.eq(slot, 0), b.i32(last), b.sub(slot, plan.slotBytes));
}

/// The block's rows of `tensor`, which has one for each query and whose head is
/// at `base`.
TileCopy::Rows ForwardKernel::getQueryRows(Value tensor, Value base) {
  return {base, abi.getStride(b, tensor, 2), query.firstRow, problem.nq};
}

void ForwardKernel::loadKeys(ValueRange position, Value slot) {
  TileCopy(b, keyLayout, op.getHeadDim(), threads, thread)
      .load(b,
            {keyBase, abi.getStride(b, op.getKey(), 2),
             walk->getFirstKey(b, position), problem.nkv},
            getKeyTile(slot));
}

void ForwardKernel::loadValues(ValueRange position, Value slot) {
  TileCopy(b, valueLayout, op.getValueHeadDim(), threads, thread)
      .load(b,
            {valueBase, abi.getStride(b, op.getValue(), 2),
             walk->getFirstKey(b, position), problem.nkv},
            getValueTile(slot));
}

/// A group of copies of the tiles at `position`; an empty one if the walk has
/// ended there, so that groups can be counted.
void ForwardKernel::loadGroup(ValueRange position, function_ref<void()> load) {
  b.ifThen(walk->isValid(b, position), load);
  commitCopies(b);
}

void ForwardKernel::loadTiles(ValueRange position, Value slot) {
  loadGroup(position, [&] {
    loadKeys(position, slot);
    loadValues(position, slot);
  });
}

/// Issues what is under way when the key loop begins, and returns the number of
/// groups.
int64_t ForwardKernel::loadFirstTiles(ValueRange position) {
  if (tile.stages == 1) {
    loadGroup(position, [&] { loadKeys(position, b.i32(0)); });
    return 1;
  }
  Values at(position);
  for (int64_t ahead = 0; ahead < tile.stages - 1; ++ahead) {
    if (ahead > 0)
      at = b.ifElse(
          walk->isValid(b, at), ValueRange(at).getTypes(),
          [&] { return walk->next(b, at); }, [&] { return at; });
    loadTiles(at, b.i32(ahead * plan.slotBytes));
  }
  return tile.stages - 1;
}

/// Awaits the K of a step, and issues the loads for which there is room once
/// every warp is done with the step before.
void ForwardKernel::awaitKeys(ValueRange position, Value slot) {
  if (tile.stages == 1) {
    Part part(b, "load_v");
    waitCopies(b, 0);
    b.barrier();
    loadValues(position, slot);
    commitCopies(b);
    return;
  }
  Part part(b, "load_ahead");
  waitCopies(b, tile.stages - 2);
  b.barrier();
  loadTiles(walk->next(b, position, tile.stages - 1), getPreviousSlot(slot));
}

/// Awaits the V of a step, and loads the next K where that has room only then.
void ForwardKernel::awaitValues(ValueRange next, Value slot) {
  if (tile.stages > 1)
    return;
  Part part(b, "load_k");
  waitCopies(b, 0);
  b.barrier();
  loadGroup(next, [&] { loadKeys(next, slot); });
}

//===----------------------------------------------------------------------===//
// One run over the key tiles
//===----------------------------------------------------------------------===//

Value ForwardKernel::buildRun(Value mode) {
  LoopState state;
  int64_t groupsBehindQuery;
  {
    Part part(b, "prologue");
    TileCopy(b, queryLayout, op.getHeadDim(), threads, thread)
        .load(b, getQueryRows(op.getQuery(), queryBase), queryTile);
    commitCopies(b);
    state.position = walk->begin(b);
    state.slot = b.i32(0);
    groupsBehindQuery = loadFirstTiles(state.position);
  }
  SmallVector<Values> queryFragments;
  if (queryRotation || tile.qInRegisters) {
    waitCopies(b, groupsBehindQuery);
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
    for (int64_t step = 0; step < queryLayout.getColumns() / kMmaK; ++step)
      queryFragments.append(loadQueryFragments(step));

  state.rows.assign(scoreShape.getNumRows(), normalizer.getInitial(b));
  state.output.assign(outputShape.getSize(), b.f32(0));
  Values final = b.whileLoop(
      state.flatten(),
      [&](ValueRange values) {
        return walk->isValid(b, LoopState::unflatten(values, state).position);
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
  Value firstKey = walk->getFirstKey(b, state.position);
  Value keyTile = getKeyTile(state.slot), valueTile = getValueTile(state.slot);
  awaitKeys(state.position, state.slot);
  if (keyRotation) {
    TileRotation(keyRotation, elementType, abi, threads, kUnitsAtOnce)
        .emit(b, keyLayout, keyTile, tile.tileN, tile.tileN, firstKey,
              problem.nkv, query.batch, thread);
    b.barrier();
  }
  Values scores = buildScores(queryFragments, keyTile);
  scoreTile->applyChain(b, scores, firstKey);
  buildMask(scores, firstKey);
  state.position = walk->next(b, state.position);
  awaitValues(state.position, state.slot);
  buildValueFilter(mode, valueTile);
  buildNormalizer(state, scores);
  buildWeightedSum(state, scores, valueTile);
  state.slot = getNextSlot(state.slot);
  return state;
}

//===----------------------------------------------------------------------===//
// S = Q K^T, its modification and its masks
//===----------------------------------------------------------------------===//

/// Columns tiles 2 `pair` and 2 `pair` + 1 of `accumulators` += A B, by row
/// tile; `fragments` are B's of both.
static void multiplyPair(KernelBuilder &b, Type type, ArrayRef<Values> a,
                         ValueRange fragments, AccumulatorTile shape,
                         int64_t pair, MutableArrayRef<Value> accumulators) {
  for (int64_t rowTile = 0; rowTile < shape.rowTiles; ++rowTile)
    for (int64_t of = 0; of < 2; ++of)
      multiplyAccumulate(
          b, type, a[rowTile], fragments.slice(2 * of, 2),
          accumulators.slice(shape.getIndex(rowTile, 2 * pair + of, 0),
                             AccumulatorTile::kElements));
}

SmallVector<Values> ForwardKernel::loadQueryFragments(int64_t step) {
  LanePosition position = getLanePositionA(b, lane);
  LaneAddress address(b, queryLayout, queryTile, b.add(warpRow, position.row),
                      position.chunkLowBit);
  SmallVector<Values> fragments;
  for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile)
    fragments.push_back(loadMatrix(b, address.get(b, rowTile * kMmaM, step * 2),
                                   /*transposed=*/false));
  return fragments;
}

Values ForwardKernel::buildScores(ArrayRef<Values> queryFragments,
                                  Value keyTile) {
  Part part(b, "qk");
  LanePosition position = getLanePositionB(b, lane);
  LaneAddress address(b, keyLayout, keyTile, position.row,
                      position.chunkLowBit);
  Values scores(scoreShape.getSize(), b.f32(0));
  for (int64_t step = 0; step < keyLayout.getColumns() / kMmaK; ++step) {
    SmallVector<Values> loaded;
    if (!tile.qInRegisters)
      loaded = loadQueryFragments(step);
    ArrayRef<Values> a = tile.qInRegisters
                             ? queryFragments.slice(step * rowTiles, rowTiles)
                             : ArrayRef<Values>(loaded);
    for (int64_t pair = 0; pair < scoreShape.columnTiles / 2; ++pair) {
      Values fragments = loadMatrix(
          b, address.get(b, pair * 2 * kMmaN, step * 2), /*transposed=*/false);
      multiplyPair(b, elementType, a, fragments, scoreShape, pair, scores);
    }
  }
  return scores;
}

void ForwardKernel::buildMask(Values &scores, Value firstKey) {
  scores = b.ifElse(
      walk->isBoundary(b, firstKey), ValueRange(scores).getTypes(),
      [&] {
        Values masked = scores;
        scoreTile->applyMask(b, masked, firstKey);
        return masked;
      },
      [&] { return scores; });
}

//===----------------------------------------------------------------------===//
// P, and O += P V
//===----------------------------------------------------------------------===//

void ForwardKernel::buildNormalizer(LoopState &state,
                                    MutableArrayRef<Value> scores) {
  Part part(b, "normalize");
  // References stay where they are until a row has outgrown its own by far:
  // after the first tiles the output is hardly ever rescaled.
  OnlineNormalizer::Style style;
  style.skipsRescale = true;
  SmallVector<Values> rows;
  Values factors;
  Value isNeeded;
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    rows.push_back(
        llvm::map_to_vector(scoreShape.getRowIndices(r),
                            [&](int64_t index) { return scores[index]; }));
    OnlineNormalizer::Rescale rescale =
        normalizer.advance(b, row, rows.back(), style);
    factors.push_back(rescale.factor);
    isNeeded = isNeeded ? b.orI(isNeeded, rescale.isNeeded) : rescale.isNeeded;
  }
  auto rescale = [&]() -> Values {
    Values output = state.output;
    for (auto [r, factor] : llvm::enumerate(factors))
      for (int64_t index : outputShape.getRowIndices(r))
        output[index] = b.mulF(output[index], factor);
    return output;
  };
  state.output = isNeeded
                     ? b.ifElse(isNeeded, ValueRange(state.output).getTypes(),
                                rescale, [&] { return state.output; })
                     : rescale();
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    normalizer.weigh(b, row, rows[r], style);
    normalizer.accumulate(b, row, rows[r], style);
    for (auto [index, weight] :
         llvm::zip_equal(scoreShape.getRowIndices(r), rows[r]))
      scores[index] = weight;
  }
}

void ForwardKernel::buildWeightedSum(LoopState &state, ArrayRef<Value> weights,
                                     Value valueTile) {
  Part part(b, "pv");
  LanePosition position = getLanePositionBTransposed(b, lane);
  LaneAddress address(b, valueLayout, valueTile, position.row,
                      position.chunkLowBit);
  for (int64_t step = 0; step < tile.tileN / kMmaK; ++step) {
    SmallVector<Values> a;
    for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile) {
      Values &fragment = a.emplace_back();
      // Two neighbouring accumulators are one A fragment.
      for (int64_t pair = 0; pair < 4; ++pair) {
        int64_t first = scoreShape.getIndex(rowTile, step * 2, pair * 2);
        fragment.push_back(
            b.pack(weights[first], weights[first + 1], elementType));
      }
    }
    for (int64_t pair = 0; pair < outputShape.columnTiles / 2; ++pair) {
      Values fragments = loadMatrix(b, address.get(b, step * kMmaK, pair * 2),
                                    /*transposed=*/true);
      multiplyPair(b, elementType, a, fragments, outputShape, pair,
                   state.output);
    }
  }
}

void ForwardKernel::buildValueFilter(Value mode, Value valueTile) {
  Part part(b, "value_filter");
  b.ifThen(b.lt(b.i32(Compute), mode), [&] {
    Value keepsFinite = b.eq(mode, FiniteValues);
    TileCopy(b, valueLayout, op.getValueHeadDim(), threads, thread)
        .transform(b, valueTile, [&](Value pair) {
          return filterValues(b, pair, elementType, keepsFinite);
        });
    b.barrier();
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
  // 0 times a number is 0, and NaN otherwise.
  Value probe = b.f32(0);
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    normalizer.finish(b, row);
    Value factor = normalizer.getOutputFactor(b, row, problem.nkv);
    for (int64_t index : outputShape.getRowIndices(r)) {
      Value &output = state.output[index];
      output = b.mulF(output, factor);
      probe = b.fma(output, b.f32(0), probe);
    }
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
  // By a vote the assembler sees that whole warps repeat the run. It would keep
  // registers for what is then diverging shuffles otherwise.
  Value again = b.anyLane(b.barrierAny(b.notI(b.eqF(probe, b.f32(0)))));
  Value afterCompute = b.select(again, b.i32(FiniteValues), b.i32(NumModes));
  return b.select(b.eq(mode, Compute), afterCompute, b.add(mode, 1));
}

void ForwardKernel::storeOutput(ArrayRef<Value> output) {
  Type type = problem.getOutputType();
  if (type.isF32())
    return outputRows->store(b, output);
  // Through shared memory, so that rows are written in 16-byte pieces.
  Value staged = getSharedTile(plan.output);
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
