//===- AttentionForward.cpp - The forward kernel for sm_80 and later
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/Sm80/AttentionForward.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include "attnfuse/KernelGen/KernelResources.h"
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/Rotation.h"
#include "attnfuse/KernelGen/ScoreChain.h"
#include "attnfuse/KernelGen/SharedLayout.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "attnfuse/KernelGen/Sm80/TileCopy.h"
#include "attnfuse/KernelGen/TileWalk.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm80;

namespace {
/// What the block's run over the key tiles is for; see the header.
enum Mode : int64_t { Compute, FiniteValues, NonFiniteValues, NumModes };

class ForwardKernel {
public:
  ForwardKernel(AttentionOp op, LLVM::LLVMFuncOp kernel,
                LLVM::GlobalOp sharedMemory, KernelAbi &abi);
  void build();

private:
  /// What a step of the key loop hands to the next: where the walk is, the
  /// rows' normaliser states and the output accumulators, by row tile.
  struct LoopState {
    Values position;
    SmallVector<OnlineNormalizer::Row> rows; ///< [rowTiles * 2]
    Values output; ///< [rowTiles][valueColumns / 8][4]

    Values flatten() const;
    static LoopState unflatten(ValueRange values, const LoopState &like);
  };

  void buildIndices();
  TileWalk buildWalk();
  Value buildRun(TileWalk &walk, Value mode);
  LoopState buildStep(TileWalk &walk, LoopState state,
                      ArrayRef<Values> queryFragments, Value mode);
  Values buildScores(ArrayRef<Values> queryFragments);
  void buildScoreChain(MutableArrayRef<Value> scores, Value firstKey);
  void buildMask(Values &scores, Value firstKey, Value isBoundary);
  void buildNormalizer(LoopState &state, MutableArrayRef<Value> scores);
  void buildWeightedSum(LoopState &state, ArrayRef<Value> weights);
  void buildValueFilter(Value mode);
  Value buildEpilogue(LoopState state, Value mode);
  void storeOutput(ArrayRef<Value> output);
  void storeLogSumExp(ArrayRef<OnlineNormalizer::Row> rows);
  void storeNaNWhereVisible(ArrayRef<Value> visible);

  SmallVector<Values> loadQueryFragments(int64_t step);
  Value getHeadBase(Value tensor, Value headIndex);
  TileCopy::Rows getRows(Value tensor, Value headIndex, Value first,
                         Value numRows);
  /// Row of the score matrix of this thread's row `half` (0 or 1) in row tile
  /// `rowTile`.
  Value getRow(int64_t rowTile, int64_t half);
  bool appliesScale() { return op.hasScoreChain() || scale <= 0; }
  Value getSharedTile(int64_t byteOffset);

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
  double scale;
  SharedLayout queryLayout, keyLayout, valueLayout, outputLayout;
  RotationOperands queryRotation, keyRotation;
  BandLimits limits;
  OnlineNormalizer normalizer;

  // Run-time values.
  Value thread, lane, warpRow, laneRow, laneColumn;
  Value nq, nkv, batch, head, keyHead, numHeads, firstRow;
  Value queryTile, keyTile, valueTile;
};
} // namespace

ForwardKernel::ForwardKernel(AttentionOp op, LLVM::LLVMFuncOp kernel,
                             LLVM::GlobalOp sharedMemory, KernelAbi &abi)
    : op(op), kernel(kernel), sharedMemory(sharedMemory), abi(abi),
      b(op.getLoc(), OpBuilder::atBlockEnd(&kernel.getBody().front())),
      dims(op.getHeadDim(), op.getValueHeadDim()),
      tile(getKernelTile(op.getScheduleAttr())), plan(dims, tile),
      threads(tile.getThreads()), rowTiles(tile.getRowTilesPerWarp()),
      elementType(op.getElementType()),
      scale(float(op.getScale().convertToDouble())),
      queryLayout(tile.tileM, dims.qk), keyLayout(tile.tileN, dims.qk),
      valueLayout(tile.tileN, dims.v), outputLayout(tile.tileM, dims.v),
      queryRotation(RotationOperands::getQuery(op)),
      keyRotation(RotationOperands::getKey(op)),
      normalizer(op.getNormalizer(), appliesScale() ? 1.0 : scale) {}

Values ForwardKernel::LoopState::flatten() const {
  Values values = position;
  for (const OnlineNormalizer::Row &row : rows)
    values.append({row.reference, row.sum});
  values.append(output);
  return values;
}

ForwardKernel::LoopState
ForwardKernel::LoopState::unflatten(ValueRange values, const LoopState &like) {
  LoopState state;
  auto take = [&](size_t count) {
    ValueRange taken = values.take_front(count);
    values = values.drop_front(count);
    return taken;
  };
  state.position = take(like.position.size());
  for (size_t row = 0; row < like.rows.size(); ++row) {
    ValueRange pair = take(2);
    state.rows.push_back({pair[0], pair[1]});
  }
  state.output = take(like.output.size());
  return state;
}

//===----------------------------------------------------------------------===//
// The block's place in the problem
//===----------------------------------------------------------------------===//

void ForwardKernel::build() {
  buildIndices();
  TileWalk walk = buildWalk();
  b.whileLoop(
      b.i32(Compute), [&](ValueRange mode) { return b.lt(mode[0], NumModes); },
      [&](ValueRange mode) -> Values { return {buildRun(walk, mode[0])}; });
  b.create<LLVM::ReturnOp>(ValueRange());
}

void ForwardKernel::buildIndices() {
  Part part(b, "indices");
  thread = b.threadId();
  lane = b.remU(thread, kWarpSize);
  warpRow = b.mul(b.divU(thread, kWarpSize), kMmaM * rowTiles);
  // The lane's part of getAccumulatorRow and getAccumulatorColumn; the
  // element's is a constant.
  laneRow = b.divU(lane, 4);
  laneColumn = b.shl(b.remU(lane, 4), 1);

  numHeads = b.toI32(abi.getDim(b, op.getQuery(), 1));
  nq = b.toI32(abi.getDim(b, op.getQuery(), 2));
  nkv = b.toI32(abi.getDim(b, op.getKey(), 2));
  Value numKeyHeads = b.toI32(abi.getDim(b, op.getKey(), 1));

  limits = BandLimits::get(b, op.getBands(), nq, nkv);
  Value block = b.blockId();
  Value numTiles = b.ceilDiv(nq, tile.tileM);
  Value headOfBatch = b.divU(block, numTiles);
  Value rowBlock = b.remU(block, numTiles);
  // Below a diagonal the last tile has the most keys: long tiles first.
  if (limits.upper)
    rowBlock = b.sub(b.sub(numTiles, 1), rowBlock);
  firstRow = b.mul(rowBlock, tile.tileM);
  batch = b.divU(headOfBatch, numHeads);
  head = b.remU(headOfBatch, numHeads);
  keyHead = b.divU(head, b.divU(numHeads, numKeyHeads));

  queryTile = getSharedTile(plan.q);
  keyTile = getSharedTile(plan.k);
  valueTile = getSharedTile(plan.v);
}

Value ForwardKernel::getSharedTile(int64_t byteOffset) {
  Value base =
      b.create<LLVM::AddressOfOp>(b.sharedPtrType(), sharedMemory.getSymName());
  return b.offsetPtr(base, byteOffset);
}

Value ForwardKernel::getHeadBase(Value tensor, Value headIndex) {
  int64_t bytes =
      cast<RankedTensorType>(tensor.getType()).getElementTypeBitWidth() / 8;
  Value element = b.add(b.mul(b.toI64(batch), abi.getStride(b, tensor, 0)),
                        b.mul(b.toI64(headIndex), abi.getStride(b, tensor, 1)));
  return b.offsetPtr(abi.getPointer(b, tensor), b.mul(element, bytes));
}

TileCopy::Rows ForwardKernel::getRows(Value tensor, Value headIndex,
                                      Value first, Value numRows) {
  return {getHeadBase(tensor, headIndex), abi.getStride(b, tensor, 2), first,
          numRows};
}

Value ForwardKernel::getRow(int64_t rowTile, int64_t half) {
  return b.add(b.add(b.add(firstRow, warpRow), laneRow),
               rowTile * kMmaM + getAccumulatorRow(0, 2 * half));
}

TileWalk ForwardKernel::buildWalk() {
  Part part(b, "walk");
  std::optional<BlockList> blocks;
  if (BlocksAttr attr = op.getBlocksAttr()) {
    Value offsets = op.getRowOffsets();
    auto type = cast<RankedTensorType>(offsets.getType());
    int64_t last = type.getRank() - 1;
    Value element = b.mul(b.toI64(b.divU(firstRow, attr.getQueryBlock())),
                          abi.getStride(b, offsets, last));
    // One list serves all batch entries or heads where the dimension is 1.
    for (int64_t dim = 0; dim < last; ++dim)
      if (type.getDimSize(dim) != 1)
        element = b.add(element, b.mul(b.toI64(dim == 0 ? batch : head),
                                       abi.getStride(b, offsets, dim)));
    Value address = b.offsetPtr(abi.getPointer(b, offsets), b.mul(element, 4));
    Value nextAddress =
        b.offsetPtr(address, b.mul(abi.getStride(b, offsets, last), 4));
    blocks = BlockList{abi.getPointer(b, op.getColIndices()),
                       abi.getStride(b, op.getColIndices(), 0),
                       b.load(b.getI32Type(), address, 4),
                       b.load(b.getI32Type(), nextAddress, 4),
                       attr.getKeyBlock() / tile.tileN};
  }
  return TileWalk(b, limits, blocks, firstRow, tile.tileM, tile.tileN, nq, nkv);
}

//===----------------------------------------------------------------------===//
// One run over the key tiles
//===----------------------------------------------------------------------===//

Value ForwardKernel::buildRun(TileWalk &walk, Value mode) {
  LoopState state;
  {
    Part part(b, "prologue");
    TileCopy(b, queryLayout, op.getHeadDim(), threads, thread)
        .load(b, getRows(op.getQuery(), head, firstRow, nq), queryTile);
    commitCopies(b);
    state.position = walk.begin(b);
    b.ifThen(walk.isValid(b, state.position), [&] {
      TileCopy(b, keyLayout, op.getHeadDim(), threads, thread)
          .load(b,
                getRows(op.getKey(), keyHead,
                        walk.getFirstKey(b, state.position), nkv),
                keyTile);
    });
    commitCopies(b);
  }
  SmallVector<Values> queryFragments;
  if (queryRotation || tile.qInRegisters) {
    waitCopies(b, 1);
    b.barrier();
  }
  if (queryRotation) {
    TileRotation(queryRotation, elementType, abi, threads)
        .emit(b, queryLayout, queryTile, firstRow, nq, batch, thread);
    if (tile.qInRegisters)
      b.barrier();
  }
  if (tile.qInRegisters)
    for (int64_t step = 0; step < queryLayout.getColumns() / kMmaK; ++step)
      queryFragments.append(loadQueryFragments(step));

  state.rows.assign(rowTiles * 2, normalizer.getInitial(b));
  state.output.assign(rowTiles * outputLayout.getColumns() / kMmaN *
                          kAccumulatorSize,
                      b.f32(0));
  Values final = b.whileLoop(
      state.flatten(),
      [&](ValueRange values) {
        return walk.isValid(b, LoopState::unflatten(values, state).position);
      },
      [&](ValueRange values) {
        return buildStep(walk, LoopState::unflatten(values, state),
                         queryFragments, mode)
            .flatten();
      });
  return buildEpilogue(LoopState::unflatten(final, state), mode);
}

ForwardKernel::LoopState
ForwardKernel::buildStep(TileWalk &walk, LoopState state,
                         ArrayRef<Values> queryFragments, Value mode) {
  Value firstKey = walk.getFirstKey(b, state.position);
  {
    Part part(b, "load_v");
    // K has landed, and every warp is done with the V of the step before.
    waitCopies(b, 0);
    b.barrier();
    TileCopy(b, valueLayout, op.getValueHeadDim(), threads, thread)
        .load(b, getRows(op.getValue(), keyHead, firstKey, nkv), valueTile);
    commitCopies(b);
  }
  if (keyRotation) {
    TileRotation(keyRotation, elementType, abi, threads)
        .emit(b, keyLayout, keyTile, firstKey, nkv, batch, thread);
    b.barrier();
  }
  Values scores = buildScores(queryFragments);
  buildScoreChain(scores, firstKey);
  buildMask(scores, firstKey, walk.isBoundary(b, firstKey));
  {
    Part part(b, "load_k");
    state.position = walk.next(b, state.position);
    // V has landed, and every warp is done with K.
    waitCopies(b, 0);
    b.barrier();
    b.ifThen(walk.isValid(b, state.position), [&] {
      TileCopy(b, keyLayout, op.getHeadDim(), threads, thread)
          .load(b,
                getRows(op.getKey(), keyHead,
                        walk.getFirstKey(b, state.position), nkv),
                keyTile);
    });
    commitCopies(b);
  }
  buildValueFilter(mode);
  buildNormalizer(state, scores);
  buildWeightedSum(state, scores);
  return state;
}

//===----------------------------------------------------------------------===//
// S = Q K^T, its modification and its masks
//===----------------------------------------------------------------------===//

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

/// Scores by [row tile][key tile of 8][accumulator element].
Values ForwardKernel::buildScores(ArrayRef<Values> queryFragments) {
  Part part(b, "qk");
  LanePosition position = getLanePositionB(b, lane);
  LaneAddress address(b, keyLayout, keyTile, position.row,
                      position.chunkLowBit);
  int64_t keyTiles = tile.tileN / kMmaN;
  Values scores(rowTiles * keyTiles * kAccumulatorSize, b.f32(0));
  for (int64_t step = 0; step < keyLayout.getColumns() / kMmaK; ++step) {
    SmallVector<Values> loaded;
    if (!tile.qInRegisters)
      loaded = loadQueryFragments(step);
    ArrayRef<Values> a = tile.qInRegisters
                             ? queryFragments.slice(step * rowTiles, rowTiles)
                             : ArrayRef<Values>(loaded);
    for (int64_t pair = 0; pair < keyTiles / 2; ++pair) {
      Values fragments = loadMatrix(
          b, address.get(b, pair * 2 * kMmaN, step * 2), /*transposed=*/false);
      for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile)
        for (int64_t of = 0; of < 2; ++of)
          multiplyAccumulate(
              b, elementType, a[rowTile],
              ValueRange(fragments).slice(2 * of, 2),
              MutableArrayRef(scores).slice(
                  (rowTile * keyTiles + pair * 2 + of) * kAccumulatorSize,
                  kAccumulatorSize));
    }
  }
  return scores;
}

void ForwardKernel::buildScoreChain(MutableArrayRef<Value> scores,
                                    Value firstKey) {
  if (!appliesScale())
    return;
  Part part(b, "score_chain");
  ScoreChain chain(op, abi);
  ScorePosition at{batch, head, {}, {}, nq, nkv, numHeads};
  int64_t keyTiles = tile.tileN / kMmaN;
  Value threadKey = b.add(firstKey, laneColumn);
  Value lastRow = b.sub(nq, 1), lastKey = b.sub(nkv, 1);
  for (auto [index, score] : llvm::enumerate(scores)) {
    int64_t element = index % kAccumulatorSize;
    int64_t keyTile = index / kAccumulatorSize % keyTiles;
    int64_t rowTile = index / kAccumulatorSize / keyTiles;
    score = b.mulF(score, b.f32(scale));
    if (!op.hasScoreChain())
      continue;
    // The tile may stick out of the score matrix; its operands may not be read
    // there.
    at.query = b.min(getRow(rowTile, element / 2), lastRow);
    at.key = b.min(
        b.add(threadKey, keyTile * kMmaN + getAccumulatorColumn(0, element)),
        lastKey);
    score = chain.apply(b, score, at);
  }
}

void ForwardKernel::buildMask(Values &scores, Value firstKey,
                              Value isBoundary) {
  Part part(b, "mask");
  int64_t keyTiles = tile.tileN / kMmaN;
  auto masked = [&] {
    Values result;
    Value threadKey = b.add(firstKey, laneColumn);
    Value hidden = b.f32(-std::numeric_limits<double>::infinity());
    for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile) {
      // Limits of a row relative to the thread's first key, so that keys
      // compare as constants.
      std::array<Value, 2> first, last;
      for (int64_t half : {0, 1}) {
        Value row = getRow(rowTile, half);
        Value lastKey = b.sub(nkv, 1);
        if (limits.upper)
          lastKey = b.min(lastKey, b.add(row, limits.upper));
        last[half] = b.sub(lastKey, threadKey);
        if (limits.lower)
          first[half] = b.sub(b.add(row, limits.lower), threadKey);
      }
      for (int64_t index = 0; index < keyTiles * kAccumulatorSize; ++index) {
        int64_t element = index % kAccumulatorSize, half = element / 2;
        Value key = b.i32(index / kAccumulatorSize * kMmaN +
                          getAccumulatorColumn(0, element));
        Value visible = b.le(key, last[half]);
        if (limits.lower)
          visible = b.andI(visible, b.le(first[half], key));
        result.push_back(b.select(
            visible, scores[rowTile * keyTiles * kAccumulatorSize + index],
            hidden));
      }
    }
    return result;
  };
  scores = b.ifElse(isBoundary, ValueRange(scores).getTypes(), masked,
                    [&] { return scores; });
}

//===----------------------------------------------------------------------===//
// P, and O += P V
//===----------------------------------------------------------------------===//

void ForwardKernel::buildNormalizer(LoopState &state,
                                    MutableArrayRef<Value> scores) {
  Part part(b, "normalize");
  int64_t perRowTile = tile.tileN / kMmaN * kAccumulatorSize;
  int64_t outputPerRowTile = state.output.size() / rowTiles;
  for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile) {
    for (int64_t half : {0, 1}) {
      // Elements 0 and 1 of every accumulator are in the upper row, 2 and 3 in
      // the lower.
      SmallVector<int64_t> indices;
      Values rowScores;
      for (int64_t index = 0; index < perRowTile; ++index)
        if (index % kAccumulatorSize / 2 == half) {
          indices.push_back(rowTile * perRowTile + index);
          rowScores.push_back(scores[indices.back()]);
        }
      Value factor =
          normalizer.update(b, state.rows[rowTile * 2 + half], rowScores);
      for (auto [index, weight] : llvm::zip_equal(indices, rowScores))
        scores[index] = weight;
      for (int64_t index = 0; index < outputPerRowTile; ++index)
        if (index % kAccumulatorSize / 2 == half) {
          Value &output = state.output[rowTile * outputPerRowTile + index];
          output = b.mulF(output, factor);
        }
    }
  }
}

void ForwardKernel::buildWeightedSum(LoopState &state,
                                     ArrayRef<Value> weights) {
  Part part(b, "pv");
  LanePosition position = getLanePositionBTransposed(b, lane);
  LaneAddress address(b, valueLayout, valueTile, position.row,
                      position.chunkLowBit);
  int64_t perRowTile = tile.tileN / kMmaN * kAccumulatorSize;
  int64_t columnTiles = valueLayout.getColumns() / kMmaN;
  for (int64_t step = 0; step < tile.tileN / kMmaK; ++step) {
    SmallVector<Values> a;
    for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile) {
      Values &fragment = a.emplace_back();
      // Two neighbouring accumulators are one A fragment.
      for (int64_t pair = 0; pair < 4; ++pair) {
        int64_t first =
            rowTile * perRowTile + step * 2 * kAccumulatorSize + pair * 2;
        fragment.push_back(
            b.pack(weights[first], weights[first + 1], elementType));
      }
    }
    for (int64_t pair = 0; pair < columnTiles / 2; ++pair) {
      Values fragments = loadMatrix(b, address.get(b, step * kMmaK, pair * 2),
                                    /*transposed=*/true);
      for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile)
        for (int64_t of = 0; of < 2; ++of)
          multiplyAccumulate(
              b, elementType, a[rowTile],
              ValueRange(fragments).slice(2 * of, 2),
              MutableArrayRef(state.output)
                  .slice((rowTile * columnTiles + pair * 2 + of) *
                             kAccumulatorSize,
                         kAccumulatorSize));
    }
  }
}

void ForwardKernel::buildValueFilter(Value mode) {
  Part part(b, "value_filter");
  // Two elements in an i32, element by element: an exponent of all ones is inf
  // or NaN.
  int64_t exponent = elementType.isBF16() ? 0x7f80 : 0x7c00;
  int64_t one = elementType.isBF16() ? 0x3f80 : 0x3c00;
  b.ifThen(b.lt(b.i32(Compute), mode), [&] {
    Value keepsFinite = b.eq(mode, FiniteValues);
    TileCopy(b, valueLayout, op.getValueHeadDim(), threads, thread)
        .transform(b, valueTile, [&](Value word) {
          Value result = b.i32(0);
          for (int64_t shift : {0, 16}) {
            Value element = b.andI(word, int32_t(0xffffu << shift));
            Value bits = b.i32(int32_t(exponent << shift));
            Value isFinite =
                b.xorI(b.eq(b.andI(element, bits), bits), b.i1(true));
            Value kept = b.select(isFinite, element, b.i32(0));
            Value marked =
                b.select(isFinite, b.i32(0), b.i32(int32_t(one << shift)));
            result = b.orI(result, b.select(keepsFinite, kept, marked));
          }
          return result;
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
  int64_t perRowTile = state.output.size() / rowTiles;
  // 0 times a number is 0, and NaN otherwise.
  Value probe = b.f32(0);
  for (auto [index, row] : llvm::enumerate(state.rows)) {
    normalizer.finish(b, row);
    Value factor = normalizer.getOutputFactor(b, row, nkv);
    for (int64_t element = 0; element < perRowTile; ++element) {
      if (element % kAccumulatorSize / 2 != int64_t(index % 2))
        continue;
      Value &output = state.output[index / 2 * perRowTile + element];
      output = b.mulF(output, factor);
      probe = b.fma(output, b.f32(0), probe);
    }
  }
  b.ifElse(
      b.eq(mode, NonFiniteValues), TypeRange(),
      [&]() -> Values {
        storeNaNWhereVisible(state.output);
        return {};
      },
      [&]() -> Values {
        storeOutput(state.output);
        if (op.getLse() && !op.getLse().use_empty())
          storeLogSumExp(state.rows);
        return {};
      });
  Value isFinite = b.eqF(probe, b.f32(0));
  Value again = b.barrierAny(b.xorI(isFinite, b.i1(true)));
  Value afterCompute = b.select(again, b.i32(FiniteValues), b.i32(NumModes));
  return b.select(b.eq(mode, Compute), afterCompute, b.add(mode, 1));
}

/// Calls `body` for every pair of neighbouring columns that this thread holds
/// of the output; `index` is that of the pair's first accumulator element.
static void
forEachOutputPair(int64_t rowTiles, int64_t columns,
                  function_ref<void(int64_t index, int64_t rowTile,
                                    int64_t half, int64_t columnTile)>
                      body) {
  int64_t columnTiles = columns / kMmaN;
  for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile)
    for (int64_t columnTile = 0; columnTile < columnTiles; ++columnTile)
      for (int64_t half : {0, 1})
        body((rowTile * columnTiles + columnTile) * kAccumulatorSize + 2 * half,
             rowTile, half, columnTile);
}

void ForwardKernel::storeOutput(ArrayRef<Value> output) {
  Type type = cast<RankedTensorType>(op.getOutput().getType()).getElementType();
  TileCopy::Rows rows = getRows(op.getOutput(), head, firstRow, nq);
  if (type.isF32()) {
    // Four lanes write 32 neighbouring bytes.
    forEachOutputPair(
        rowTiles, outputLayout.getColumns(),
        [&](int64_t index, int64_t rowTile, int64_t half, int64_t columnTile) {
          if (columnTile * kMmaN >= op.getValueHeadDim())
            return;
          Value row = getRow(rowTile, half);
          b.ifThen(b.lt(row, nq), [&] {
            Value element =
                b.add(b.mul(b.toI64(row), rows.stride),
                      b.toI64(b.add(laneColumn, columnTile * kMmaN)));
            b.store(b.makeVector({output[index], output[index + 1]}),
                    b.offsetPtr(rows.base, b.shl(element, 2)), 8);
          });
        });
    return;
  }
  // Through shared memory, so that rows are written in 16-byte pieces.
  Value staged = getSharedTile(plan.output);
  forEachOutputPair(
      rowTiles, outputLayout.getColumns(),
      [&](int64_t index, int64_t rowTile, int64_t half, int64_t columnTile) {
        Value row = b.add(b.add(warpRow, laneRow),
                          rowTile * kMmaM + getAccumulatorRow(0, 2 * half));
        Value offset = b.add(outputLayout.getOffset(b, row, b.i32(columnTile)),
                             b.shl(laneColumn, 1));
        b.store(b.pack(output[index], output[index + 1], type),
                b.offsetPtr(staged, offset), 4);
      });
  b.barrier();
  TileCopy(b, outputLayout, op.getValueHeadDim(), threads, thread)
      .store(b, rows, staged);
}

void ForwardKernel::storeLogSumExp(ArrayRef<OnlineNormalizer::Row> rows) {
  Value base = getHeadBase(op.getLse(), head);
  Value stride = abi.getStride(b, op.getLse(), 2);
  for (int64_t index = 0; index < rowTiles * 2; ++index) {
    Value row = getRow(index / 2, index % 2);
    // All four threads of a row have its value.
    b.ifThen(b.andI(b.lt(row, nq), b.eq(laneColumn, 0)), [&] {
      Value address = b.offsetPtr(base, b.shl(b.mul(b.toI64(row), stride), 2));
      b.store(normalizer.getLogSumExp(b, rows[index]), address, 4);
    });
  }
}

void ForwardKernel::storeNaNWhereVisible(ArrayRef<Value> visible) {
  Type type = cast<RankedTensorType>(op.getOutput().getType()).getElementType();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  TileCopy::Rows rows = getRows(op.getOutput(), head, firstRow, nq);
  Value nan = b.fromF32(b.f32(std::numeric_limits<double>::quiet_NaN()), type);
  forEachOutputPair(
      rowTiles, outputLayout.getColumns(),
      [&](int64_t index, int64_t rowTile, int64_t half, int64_t columnTile) {
        if (columnTile * kMmaN >= op.getValueHeadDim())
          return;
        Value row = getRow(rowTile, half);
        for (int64_t of : {0, 1}) {
          Value isZero = b.eqF(visible[index + of], b.f32(0));
          b.ifThen(b.andI(b.lt(row, nq), b.xorI(isZero, b.i1(true))), [&] {
            Value element =
                b.add(b.mul(b.toI64(row), rows.stride),
                      b.toI64(b.add(laneColumn, columnTile * kMmaN + of)));
            b.store(nan, b.offsetPtr(rows.base, b.mul(element, bytes)), bytes);
          });
        }
      });
}

void sm80::buildAttentionForward(AttentionOp op, LLVM::LLVMFuncOp kernel,
                                 LLVM::GlobalOp sharedMemory, KernelAbi &abi) {
  ForwardKernel(op, kernel, sharedMemory, abi).build();
}
