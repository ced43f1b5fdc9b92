//===- Consumer.cpp - A computing warpgroup -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Consumer.h"
#include "attnfuse/KernelGen/ScoreChain.h"
#include "attnfuse/KernelGen/ValueFilter.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

/// Threads of two warpgroups that take turns.
static constexpr int64_t kTurnThreads = 2 * kWarpgroupThreads;
/// Units of the rotation of Q that a thread has in registers, which hold no
/// accumulators then.
static int64_t getUnitsAtOnce(const RoleRegisters &registers) {
  return registers.compute > 200 ? 4 : 1;
}
static constexpr int64_t kSmallHeadDim = 64;
/// Groups of 8 columns of a step of the product with K.
static constexpr int64_t kStepGroups = kMmaK / 8;
/// Registers of a thread for what is neither an operand nor an accumulator.
static constexpr int64_t kOtherRegisters = 40;
/// Chains of dependent operations, of each row, that look for numbers that are
/// not finite.
static constexpr int64_t kProbeChains = 2;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// References of rows in which no sum has been bounded (docs/spec.md) are
/// larger.
static constexpr double kLeastCertainReference = -0x1p126;

/// A pair of -inf of a 16-bit type.
static int32_t getNegativeInfinities(Type type) {
  return type.isBF16() ? 0xff80ff80 : 0xfc00fc00;
}
/// Bytes of a warpgroup's rows of one panel.
static constexpr int64_t kGroupPanelBytes = kWarpgroupRows * kPanelPitch;

Values Consumer::LoopState::flatten() const {
  Values values = position;
  values.push_back(number);
  values.append(OnlineNormalizer::flatten(rows));
  values.append(largest);
  values.append(weights);
  values.append(output);
  values.append(factors);
  values.append(ahead);
  return values;
}

Consumer::LoopState Consumer::LoopState::unflatten(ValueRange values,
                                                   const LoopState &like) {
  LoopState state;
  state.position = takeFront(values, like.position.size());
  state.number = takeFront(values, 1).front();
  state.rows = OnlineNormalizer::takeRows(values, like.rows.size());
  state.largest = takeFront(values, like.largest.size());
  state.weights = takeFront(values, like.weights.size());
  state.output = takeFront(values, like.output.size());
  state.factors = takeFront(values, like.factors.size());
  state.ahead = takeFront(values, like.ahead.size());
  return state;
}

/// Neighbouring accumulators as pairs of `type`, which are one operand of the
/// next product.
static Values packPairs(KernelBuilder &b, ArrayRef<Value> elements, Type type) {
  Values packed;
  for (size_t index = 0; index < elements.size(); index += 2)
    packed.push_back(b.pack(elements[index], elements[index + 1], type));
  return packed;
}

/// By step of 16 columns, distance of an operand whose columns run along k.
static SmallVector<int64_t> getColumnSteps(int64_t columns, int64_t rows) {
  SmallVector<int64_t> offsets;
  for (int64_t column = 0; column < columns; column += kMmaK)
    offsets.push_back((column / kPanelColumns * rows * kPanelPitch +
                       column % kPanelColumns * 2) /
                      kDescriptorUnit);
  return offsets;
}
/// By step of 16 rows, distance of an operand whose rows run along k.
static SmallVector<int64_t> getRowSteps(int64_t rows) {
  SmallVector<int64_t> offsets;
  for (int64_t row = 0; row < rows; row += kMmaK)
    offsets.push_back(row * kPanelPitch / kDescriptorUnit);
  return offsets;
}

Consumer::Consumer(KernelBuilder &b, const BlockContext &context)
    : b(b), context(context), problem(context.problem),
      scoreShape{1, context.tile.tileN / AccumulatorTile::kColumns},
      outputShape{1, context.dims.v / AccumulatorTile::kColumns},
      normalizer(problem.getOp().getNormalizer(),
                 problem.scalesScores() ? 1.0 : problem.getScale()) {
  const KernelTile &tile = context.tile;
  scoreProduct.elementType = outputProduct.elementType =
      problem.getElementType();
  scoreProduct.n = tile.tileN;
  scoreProduct.transposedB = false;
  scoreProduct.bOffsets = getColumnSteps(context.dims.qk, tile.tileN);
  if (!tile.qInRegisters)
    scoreProduct.aOffsets = getColumnSteps(context.dims.qk, tile.tileM);
  outputProduct.n = context.dims.v;
  outputProduct.transposedB = true;
  outputProduct.bOffsets = getRowSteps(tile.tileN);
  for (const BlockContext::StagedPanels &staged : context.stagedPanels)
    if (Value sum =
            ScoreChain::getHidingSum(problem.getOp(), staged.operand.load)) {
      hiding = &staged.operand;
      hidingSum = sum;
    }
}

//===----------------------------------------------------------------------===//
// The rounds of a block
//===----------------------------------------------------------------------===//

/// Of what has been fetched ahead.
static TileRecord getRecord(ValueRange ahead) {
  return {ahead.take_front(TileRecord::kWords)};
}

void Consumer::build() {
  increaseRegisters(b, context.registers.compute);
  {
    Part part(b, "indices");
    group = b.sub(context.warpgroup, 1);
    groupThread = b.remU(context.thread, kWarpgroupThreads);
    lane = b.remU(context.thread, kWarpSize);
    Value warp = b.divU(groupThread, kWarpSize);
    isWarpLeader = b.select(b.eq(lane, 0), b.i32(1), b.i32(0));
    isGroupLeader = b.select(b.eq(groupThread, 0), b.i32(1), b.i32(0));
    Value warpRow = b.shl(warp, 4);
    tileRow =
        b.add(b.add(b.mul(group, kWarpgroupRows), warpRow), b.divU(lane, 4));
    tileColumn = b.shl(b.andI(lane, 3), 1);
    // ldmatrix and stmatrix take the rows of four 8x8 matrices from the lanes:
    // rows 0-7 and 8-15, then the same of the next chunk.
    Value row = b.add(warpRow, b.andI(lane, 15));
    Value chunk = b.xorI(b.divU(lane, 16), b.andI(lane, 7));
    matrixOffset = b.add(b.mul(row, kPanelPitch), b.shl(chunk, 4));

    int64_t groups = context.getComputingWarpgroups();
    turn = b.add(group, 1);
    nextTurn = b.select(b.eq(turn, groups), b.i32(1), b.add(turn, 1));
    groupBarrier = b.add(group, groups + 1);
    keyDescriptor =
        getDescriptor(b, context.keys.getTile(b, b.i32(0)), kDescriptorUnit);
    valueDescriptor = getDescriptor(b, context.values.getTile(b, b.i32(0)),
                                    context.tile.tileN * kPanelPitch);
  }
  if (context.stagesOutput()) {
    int64_t rows = std::min(context.tile.getRowsPerHead(), kWarpgroupRows);
    outputMap = problem.getAbi().getTensorMap(b, problem.getOp().getOutput(),
                                              kWarpgroupRows / rows, rows,
                                              kPanelColumns);
  }
  if (hasTurns())
    b.ifThen(b.eq(group, 0), [&] { arriveNamed(b, turn, kTurnThreads); });

  // Carries the round, the number of the block's next key tile, and what is
  // known of the round's query tile.
  Value round = b.i32(0), number = b.i32(0);
  Values ahead = fetchAhead(round), scores;
  if (context.startsTiles()) {
    scores = beginFirstProduct(ahead, round, number);
    scores = endFirstProduct(ahead, number, scores);
  }
  Values init{round, number};
  init.append(ahead);
  init.append(scores);
  b.whileLoop(
      init,
      [&](ValueRange state) {
        return getRecord(state.drop_front(2)).isTile(b);
      },
      [&](ValueRange state) {
        Value round = state[0], number = state[1];
        ValueRange ahead = state.drop_front(2);
        Values scores;
        if (context.startsTiles()) {
          scores = Values(ahead.take_back(scoreShape.getSize()));
          ahead = ahead.drop_back(scoreShape.getSize());
        }
        return buildTile(round, number, ahead, scores);
      });
  if (context.stagesOutput())
    waitStoresReadIf(b, isGroupLeader);
}

Values Consumer::fetchAhead(Value round) {
  Part part(b, "ahead");
  TileRecord record = context.handoff.take(b, round, isWarpLeader);
  Values ahead = record.words;
  if (!context.fetchesQuery())
    return ahead;
  // Without a next tile nothing is waited for, and what is there is read: no
  // branch may part a product from its end.
  Value isTile = b.select(record.isTile(b), b.i32(1), b.i32(0));
  context.queries.waitFullIf(b, isTile, round);
  ahead.append(loadQuery());
  context.queries.releaseLoadedIf(b, isWarpLeader, round);
  return ahead;
}

Value Consumer::hasKeys(ValueRange ahead) {
  TileRecord record = getRecord(ahead);
  TileWalk next = problem.getWalk(b, context.tile, record.getTile(b, problem));
  return b.select(b.andI(record.isTile(b), next.isValid(b, next.begin(b))),
                  b.i32(1), b.i32(0));
}

Values Consumer::beginFirstProduct(Values &ahead, Value round, Value number) {
  Part part(b, "first_product");
  buildQuery(Value(), ahead);
  context.readyKeys.waitFullIf(b, hasKeys(ahead), number);
  if (context.stagesTables())
    context.tables.waitFullIf(
        b, b.select(getRecord(ahead).isTile(b), b.i32(1), b.i32(0)), round);
  Values scores = buildFirstScores(round, number);
  ahead.truncate(TileRecord::kWords);
  ahead.append(queryOperand);
  return scores;
}

Values Consumer::endFirstProduct(ValueRange ahead, Value number,
                                 Values scores) {
  scores = waitProducts(b, 0, scores);
  context.keys.releaseIf(b, b.mul(isWarpLeader, hasKeys(ahead)), number);
  return scores;
}

Values Consumer::buildTile(Value round, Value number, ValueRange ahead,
                           Values scores) {
  query = getRecord(ahead).getTile(b, problem);
  groupRows =
      problem.getRowsFrom(b, context.tile, query, b.mul(group, kWarpgroupRows));
  ownRows = problem.getRowsFrom(b, context.tile, query, tileRow);
  walk = problem.getWalk(b, context.tile, query);
  scoreTile.emplace(problem, ownRows, scoreShape, ownRows.firstRow, tileColumn);
  outputRows.emplace(problem, ownRows, outputShape, ownRows.firstRow,
                     tileColumn);
  buildQuery(round, ahead);

  LoopState state;
  state.position = walk->begin(b);
  state.number = number;
  state.rows.assign(scoreShape.getNumRows(), normalizer.getInitial(b));
  state.output.assign(outputShape.getSize(), b.f32(0));
  // Without a visible key the output is 0.
  state.factors.assign(scoreShape.getNumRows(), b.f32(0));
  // Gives the types of what the branches fetch.
  state.ahead = ahead;
  Values end = b.ifElse(
      walk->isValid(b, state.position), ValueRange(state.flatten()).getTypes(),
      [&] { return buildKeys(state, round, scores).flatten(); },
      [&] {
        releaseQuery(round);
        if (context.stagesTables() && !context.startsTiles())
          releaseTables(round);
        LoopState here = state;
        here.ahead = fetchAhead(b.add(round, 1));
        return here.flatten();
      });
  state = LoopState::unflatten(end, state);
  buildEpilogue(state);
  if (context.startsTiles())
    scores = beginFirstProduct(state.ahead, b.add(round, 1), state.number);
  if (context.stagesOutput())
    storeStaged(round);
  Values next{b.add(round, 1), state.number};
  next.append(state.ahead);
  if (context.startsTiles())
    next.append(endFirstProduct(state.ahead, state.number, scores));
  return next;
}

void Consumer::rotateTile(Value round) {
  Value pointer = b.offsetPtr(context.getSharedPtr(b, context.plan.q),
                              b.mul(group, kGroupPanelBytes));
  TileRotation(context.queryRotation, problem.getElementType(),
               problem.getAbi(), kWarpgroupThreads,
               getUnitsAtOnce(context.registers))
      .emit(b, context.queryLayout, pointer, kWarpgroupRows,
            context.tile.getRowsPerHead(), groupRows.firstRow, problem.nq,
            query.batch, groupThread,
            [&] { context.queries.waitFull(b, round); });
  fenceAsyncProxy(b);
  syncNamed(b, groupBarrier, kWarpgroupThreads);
}

Value Consumer::getQueryTile() {
  return b.add(context.queries.getTile(b, b.i32(0)),
               b.mul(group, kGroupPanelBytes));
}

Values Consumer::loadQuery() {
  Values fragments;
  Value lanes = b.add(getQueryTile(), matrixOffset);
  for (int64_t column = 0; column < context.dims.qk; column += kMmaK) {
    Value address = b.xorI(lanes, column % kPanelColumns * 2);
    address = b.add(address,
                    column / kPanelColumns * context.tile.tileM * kPanelPitch);
    llvm::append_range(fragments, loadMatrix(b, address));
  }
  return b.pin(fragments);
}

void Consumer::buildQuery(Value round, ValueRange ahead) {
  Part part(b, "query");
  if (context.fetchesQuery()) {
    queryOperand = Values(ahead.drop_front(TileRecord::kWords));
    return;
  }
  if (context.queryRotation)
    rotateTile(round);
  else
    context.queries.waitFull(b, round);
  if (!context.tile.qInRegisters) {
    queryOperand = {getDescriptor(b, getQueryTile(), kDescriptorUnit)};
    return;
  }
  queryOperand = loadQuery();
  if (!context.outputReplacesQuery())
    context.queries.releaseLoadedIf(b, isWarpLeader, round);
}

/// After the last product with Q, unless it has been released before or is
/// released later.
void Consumer::releaseQuery(Value round) {
  if (!context.tile.qInRegisters && !context.outputReplacesQuery())
    context.queries.releaseIf(b, isWarpLeader, round);
}

//===----------------------------------------------------------------------===//
// The key loop
//===----------------------------------------------------------------------===//

Value Consumer::getKeyDescriptor(Value number) {
  Value slot =
      b.sub(context.keys.getTile(b, number), context.keys.getTile(b, b.i32(0)));
  return b.add(keyDescriptor, b.divU(slot, kDescriptorUnit));
}

Values Consumer::buildScores(Value number) {
  return scoreProduct.emit(b, {}, queryOperand, getKeyDescriptor(number));
}

Values Consumer::buildFirstScores(Value round, Value number) {
  if (!context.stagesTables())
    return buildScores(number);
  FragmentRotation rotation = context.getFragmentRotation();
  Values tables =
      rotation.loadTables(b, context.getStagedTables(b),
                          b.remU(tileRow, context.tile.getRowsPerHead()), lane);
  Value descriptor = getKeyDescriptor(number);
  Values scores;
  int64_t steps = scoreProduct.bOffsets.size(), begun = 0, rotated = 0;
  for (int64_t step = 0; step < steps; ++step) {
    int64_t needed =
        std::min(kStepGroups * (step + 1), rotation.getNumGroups());
    if (rotated == needed)
      continue;
    if (begun != step)
      scores = scoreProduct.emitSteps(b, scores, queryOperand, descriptor,
                                      begun, step);
    begun = step;
    for (; rotated != needed; ++rotated)
      rotation.rotate(b, queryOperand, tables, rotated);
  }
  scores =
      scoreProduct.emitSteps(b, scores, queryOperand, descriptor, begun, steps);
  // Without a fence: what is copied there next is not written by the
  // accelerator.
  syncWarp(b);
  context.tables.releaseIf(b, isWarpLeader, round);
  return scores;
}

void Consumer::releaseTables(Value round) {
  context.tables.waitFull(b, round);
  context.tables.releaseIf(b, isWarpLeader, round);
}

Values Consumer::buildWeightedSum(const LoopState &state, Value number,
                                  bool fences) {
  Value slot = b.sub(context.values.getTile(b, number),
                     context.values.getTile(b, b.i32(0)));
  outputProduct.fences = fences;
  return outputProduct.emit(
      b, state.output, state.weights,
      b.add(valueDescriptor, b.divU(slot, kDescriptorUnit)));
}

Consumer::LoopState Consumer::buildKeys(LoopState state, Value round,
                                        Values scores) {
  // Known only after the last step.
  state.factors.clear();
  state.ahead.clear();
  if (tracksLargest())
    state.largest.assign(
        hiding->perQuery ? scoreShape.getNumRows() : 1,
        b.i32(getNegativeInfinities(hiding->load->getResult(0).getType())));
  state = buildFirstStep(state, round, scores);
  // In the order of the walk; see TileWalk.
  const BandLimits &limits = problem.limits;
  if (limits.upper)
    state = buildSteps(state, TileKind::Boundary, /*untilEnd=*/false);
  state = buildSteps(state, TileKind::Inner,
                     /*untilEnd=*/!limits.upper && !limits.lower);
  if (limits.lower)
    state = buildSteps(state, TileKind::Boundary, /*untilEnd=*/true);
  buildLastProduct(state, round);
  // Of use only in steps.
  state.largest.clear();
  state.weights.clear();
  return state;
}

/// The first tile of the walk may always be a boundary tile.
Consumer::LoopState Consumer::buildFirstStep(LoopState state, Value round,
                                             Values scores) {
  Part part(b, "first_step");
  if (scores.empty()) {
    context.readyKeys.waitFull(b, state.number);
    if (context.stagesTables())
      context.tables.waitFull(b, round);
    scores = buildFirstScores(round, state.number);
    scores = waitProducts(b, 0, scores);
    context.keys.releaseIf(b, isWarpLeader, state.number);
  } else {
    // Scores that are hidden whatever the sizes have no use: LLVM would drop
    // them from the values of the loop over tiles, and the assembler find a
    // part of the product's accumulators dead, and serialize it.
    scores = b.pin(scores);
  }
  Value firstKey = walk->getFirstKey(b, state.position);
  changeScores(state, scores, firstKey, TileKind::Boundary, {});
  scoreTile->applyMask(b, scores, firstKey);
  buildNormalizer(state, scores, TileKind::Boundary, {});
  state.weights = packPairs(b, scores, problem.getElementType());
  // Zeros that are made here, and not by moves in the loop's entry.
  state.output = b.pin(state.output);
  state.position = walk->next(b, state.position);
  state.number = b.add(state.number, 1);
  if (context.pipeline.productWait == ProductWait::WithNextKey)
    b.ifThen(walk->isValid(b, state.position),
             [&] { context.readyKeys.waitFull(b, state.number); });
  return state;
}

Consumer::LoopState Consumer::buildSteps(LoopState state, TileKind kind,
                                         bool untilEnd) {
  auto isNext = [&](ValueRange position) {
    Value valid = walk->isValid(b, position);
    if (untilEnd)
      return valid;
    Value boundary = walk->isBoundary(b, walk->getFirstKey(b, position));
    return b.andI(valid,
                  kind == TileKind::Boundary ? boundary : b.notI(boundary));
  };
  Values flat = state.flatten();
  Values end = b.ifElse(
      isNext(state.position), ValueRange(flat).getTypes(),
      [&] {
        return b.doWhileLoop(flat, [&](Values &values) {
          LoopState here = LoopState::unflatten(values, state);
          buildStep(here, kind);
          values = here.flatten();
          return isNext(here.position);
        });
      },
      [&] { return flat; });
  return LoopState::unflatten(end, state);
}

void Consumer::buildStep(LoopState &state, TileKind kind) {
  Part part(b, "step");
  ProductWait productWait = context.pipeline.productWait;
  Value number = state.number, previous = b.sub(number, 1);
  Value firstKey = walk->getFirstKey(b, state.position);
  if (productWait != ProductWait::WithNextKey)
    context.readyKeys.waitFull(b, number);
  if (hasTurns())
    syncNamed(b, turn, kTurnThreads);
  Values scores = buildScores(number);
  context.values.waitFull(b, previous);
  state.output = buildWeightedSum(state, previous, /*fences=*/false);
  if (hasTurns())
    arriveNamed(b, nextTurn, kTurnThreads);
  // Beside the products, which leave loads from shared memory little room.
  StagedPairs staged = readStagedAhead(number);
  scores = waitProducts(b, 1, scores);
  context.keys.releaseIf(b, isWarpLeader, number);
  changeScores(state, scores, firstKey, kind, staged);
  state.position = walk->next(b, state.position);
  state.number = b.add(number, 1);

  if (kind == TileKind::Boundary)
    scoreTile->applyMask(b, scores, firstKey);
  auto retireProduct = [&] {
    state.output = waitProducts(b, 0, state.output);
    context.values.releaseIf(b, isWarpLeader, previous);
  };
  // The assembler moves a wait for products up to the start of its block, and
  // only the loop of a wait on a barrier ends a block: without one, nothing
  // runs while the product with V does.
  auto betweenRows = [&] {
    Value sum = state.rows.front().sum;
    if (productWait == ProductWait::WithNextKey)
      waitNextKey(state, sum);
    else
      waitBarrierAfter(b, context.values.getFull(b, previous),
                       context.values.getParity(b, previous), sum);
    retireProduct();
  };
  bool isSplit = productWait != ProductWait::End;
  SmallVector<OnlineNormalizer::Rescale> rescales =
      buildNormalizer(state, scores, kind,
                      isSplit ? function_ref<void()>(betweenRows) : nullptr);
  if (!isSplit) {
    retireProduct();
    scores = b.pin(scores);
  }
  state.weights = packPairs(b, scores, problem.getElementType());
  buildRescale(state, rescales);
}

SmallVector<OnlineNormalizer::Rescale>
Consumer::buildNormalizer(LoopState &state, Values &scores, TileKind kind,
                          function_ref<void()> betweenRows) {
  Part part(b, "normalize");
  const KernelPipeline &pipeline = context.pipeline;
  OnlineNormalizer::Style style;
  style.partialSums = pipeline.partialSums;
  style.partialMaxima = pipeline.partialMaxima;
  style.skipsRescale = pipeline.skipRescale && kind == TileKind::Inner;
  // A score chain can hide a key by -inf.
  style.mayBeEmpty =
      kind == TileKind::Boundary || problem.getOp().hasScoreChain();

  SmallVector<Values> rows;
  for (int64_t r = 0; r < scoreShape.getNumRows(); ++r)
    rows.push_back(
        llvm::map_to_vector(scoreShape.getRowIndices(r),
                            [&](int64_t index) { return scores[index]; }));
  SmallVector<OnlineNormalizer::Rescale> rescales(rows.size());
  auto advance = [&](int64_t r) {
    rescales[r] = normalizer.advance(b, state.rows[r], rows[r], style);
  };
  auto weigh = [&](int64_t r) {
    normalizer.weigh(b, state.rows[r], rows[r], style);
  };
  if (pipeline.rowOrder == RowOrder::Joint) {
    for (size_t r = 0; r < rows.size(); ++r)
      advance(r);
    for (size_t r = 0; r < rows.size(); ++r)
      weigh(r);
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    if (pipeline.rowOrder == RowOrder::Rows) {
      advance(r);
      weigh(r);
    }
    ArrayRef<Value> left = rows[r];
    if (betweenRows && r == 0) {
      // The assembler moves exponentials behind the wait, or not, by what else
      // there is, but for the sum that the wait depends on: half of a row's.
      // The others hide what the wait costs.
      left = rows[r] = b.pin(rows[r]);
      size_t half = left.size() / 2;
      normalizer.accumulate(b, state.rows[r], left.take_front(half), style);
      betweenRows();
      left = left.drop_front(half);
    }
    normalizer.accumulate(b, state.rows[r], left, style);
    for (auto [index, weight] :
         llvm::zip_equal(scoreShape.getRowIndices(r), rows[r]))
      scores[index] = weight;
  }
  return rescales;
}

void Consumer::buildRescale(LoopState &state,
                            ArrayRef<OnlineNormalizer::Rescale> rescales) {
  Part part(b, "rescale");
  // Else LLVM would sink the packing below the branch, out of the shadow of
  // the exponentials.
  if (rescales.front().isNeeded)
    state.weights = b.pin(state.weights);
  state.output =
      OnlineNormalizer::rescale(b, rescales, outputShape, state.output);
}

Consumer::StagedPairs Consumer::makeUnloadedPairs() const {
  return StagedPairs(context.stagedPanels.size(),
                     SmallVector<Values>(scoreShape.columnTiles));
}

void Consumer::loadPairs(StagedPairs &pairs, Value stage, int64_t n,
                         int64_t columnTile) {
  if (!pairs[n][columnTile].empty())
    return;
  const auto &[operand, panelBytes, offset] = context.stagedPanels[n];
  int64_t column = columnTile * AccumulatorTile::kColumns;
  Value panel = b.add(stage, offset + column / kPanelColumns * panelBytes);
  int64_t inPanel = column % kPanelColumns * 2;
  if (!operand.perQuery) {
    // One row for all queries, in the panel's row 0, which is not swizzled.
    Value pair =
        loadWord(b, b.add(b.add(panel, b.shl(tileColumn, 1)), inPanel));
    pairs[n][columnTile] = {pair, pair};
    return;
  }
  // Four matrices: both rows of two column tiles.
  Value rows =
      b.add(b.add(panel, b.mul(group, kGroupPanelBytes)), matrixOffset);
  Values matrices = loadMatrix(b, b.xorI(rows, inPanel));
  for (int64_t of : {0, 1})
    pairs[n][columnTile + of] = {matrices[2 * of], matrices[2 * of + 1]};
}

Consumer::StagedPairs Consumer::readStagedAhead(Value number) {
  if (!context.stagedTiles)
    return {};
  // Measured: small heads lose by it, with matrices (docs/performance.md).
  bool hasMatrices = llvm::any_of(context.stagedPanels, [](const auto &staged) {
    return staged.operand.perQuery;
  });
  if (hasMatrices && context.dims.v <= kSmallHeadDim)
    return {};
  // What a thread holds while both products run, and would hold besides.
  int64_t held = scoreShape.getSize() * 3 / 2 + outputShape.getSize() +
                 (context.tile.qInRegisters ? context.dims.qk / 4 : 0);
  for (const BlockContext::StagedPanels &staged : context.stagedPanels)
    held += scoreShape.columnTiles * (staged.operand.perQuery ? 2 : 1);
  if (held + kOtherRegisters > context.registers.compute)
    return {};
  StagedPairs pairs = makeUnloadedPairs();
  const StageRing &ring = *context.stagedTiles;
  ring.waitFull(b, number);
  Value stage = ring.getTile(b, number);
  for (size_t n = 0; n < pairs.size(); ++n)
    for (size_t columnTile = 0; columnTile < pairs[n].size(); ++columnTile)
      loadPairs(pairs, stage, n, columnTile);
  ring.releaseLoadedIf(b, isWarpLeader, number);
  return pairs;
}

void Consumer::changeScores(LoopState &state, Values &scores, Value firstKey,
                            TileKind kind, StagedPairs pairs) {
  if (!context.stagedTiles)
    return scoreTile->applyChain(b, scores, firstKey);
  const StageRing &ring = *context.stagedTiles;
  bool isRead = !pairs.empty();
  Value stage;
  if (!isRead) {
    pairs = makeUnloadedPairs();
    ring.waitFull(b, state.number);
    stage = ring.getTile(b, state.number);
  }
  bool takesSum = hidingSum && kind == TileKind::Inner;
  auto getElements = [&](int64_t n, int64_t columnTile) {
    loadPairs(pairs, stage, n, columnTile);
    const StagedOperand &operand = context.stagedPanels[n].operand;
    Type pairType = VectorType::get({2}, operand.load->getResult(0).getType());
    if (takesSum && &operand == hiding)
      for (auto [largest, pair] :
           llvm::zip_first(state.largest, pairs[n][columnTile]))
        largest = b.bitcast(
            b.maxF(b.bitcast(largest, pairType), b.bitcast(pair, pairType)),
            b.getI32Type());
    Values elements;
    for (Value pair : pairs[n][columnTile])
      for (int64_t of : {0, 1})
        elements.push_back(b.extractElement(b.bitcast(pair, pairType), of));
    return elements;
  };
  ScoreTile::StagedLoads loads{{}, getElements, takesSum ? hidingSum : Value()};
  for (const BlockContext::StagedPanels &staged : context.stagedPanels)
    loads.loads.push_back(staged.operand.load);
  scoreTile->applyChain(b, scores, firstKey, loads);
  if (!isRead)
    ring.releaseLoadedIf(b, isWarpLeader, state.number);
}

void Consumer::markUncertainRows(LoopState &state) {
  auto type = cast<FloatType>(hiding->load->getResult(0).getType());
  Type pairType = VectorType::get({2}, type);
  for (auto [r, row] : llvm::enumerate(state.rows)) {
    Value largest = state.largest[state.largest.size() == 1 ? 0 : r];
    Value hasVisible = b.i1(false);
    for (int64_t of : {0, 1}) {
      Value element =
          b.toF32(b.extractElement(b.bitcast(largest, pairType), of));
      for (int64_t mask : {1, 2})
        element = b.maxF(element, b.shuffleXor(element, mask));
      hasVisible = b.orI(hasVisible, b.ltF(b.f32(-kInfinity), element));
    }
    Value isUncertain =
        b.andI(hasVisible, b.ltF(row.reference, b.f32(kLeastCertainReference)));
    row.sum = b.select(isUncertain, b.f32(kNaN), row.sum);
  }
}

void Consumer::waitNextKey(const LoopState &state, Value sum) {
  Value previous = b.sub(state.number, 2);
  Value more = walk->isValid(b, state.position);
  Value barrier = b.select(more, context.readyKeys.getFull(b, state.number),
                           context.values.getFull(b, previous));
  Value parity = b.select(more, context.readyKeys.getParity(b, state.number),
                          context.values.getParity(b, previous));
  waitBarrierAfter(b, barrier, parity, sum);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Adds the last step's weights times V, and completes the rows.
void Consumer::buildLastProduct(LoopState &state, Value round) {
  Part part(b, "last_product");
  releaseQuery(round);
  Value previous = b.sub(state.number, 1);
  context.values.waitFull(b, previous);
  Values output = buildWeightedSum(state, previous, /*fences=*/true);
  state.ahead = fetchAhead(b.add(round, 1));
  for (OnlineNormalizer::Row &row : state.rows)
    normalizer.finish(b, row);
  // Before the factors, which make NaN of the output of such rows.
  if (tracksLargest())
    markUncertainRows(state);
  for (const OnlineNormalizer::Row &row : state.rows)
    state.factors.push_back(normalizer.getOutputFactor(b, row, problem.nkv));
  // Ends a block, as in a step: all of this is done while the product runs.
  state.factors = b.pin(state.factors);
  context.values.waitFull(b, previous);
  state.output = waitProducts(b, 0, output);
  context.values.releaseIf(b, isWarpLeader, previous);
}

void Consumer::buildEpilogue(LoopState state) {
  Part part(b, "epilogue");
  // 0 times a number is 0, and NaN otherwise.
  Value probe = b.f32(0);
  for (int64_t r = 0; r < outputShape.getNumRows(); ++r) {
    Values chains(kProbeChains, b.f32(0));
    for (auto [n, index] : llvm::enumerate(outputShape.getRowIndices(r))) {
      state.output[index] = b.mulF(state.output[index], state.factors[r]);
      // Both columns of a lane in one, the next two in the other.
      Value &chain = chains[n / 2 % kProbeChains];
      chain = b.fma(state.output[index], b.f32(0), chain);
    }
    Value ofRow = chains.front();
    for (Value chain : ArrayRef(chains).drop_front())
      ofRow = b.addF(ofRow, chain);
    // A score region may make NaN of rows past the end, for which nothing is
    // computed anew.
    if (problem.getOp().hasScoreChain())
      ofRow =
          b.select(b.le(problem.nq, outputRows->getRow(b, r)), b.f32(0), ofRow);
    probe = b.addF(probe, ofRow);
  }
  if (context.stagesOutput()) {
    // The accelerator may still read the rows of the tile before.
    waitStoresReadIf(b, isGroupLeader);
    syncNamed(b, groupBarrier, kWarpgroupThreads);
  }
  // Before rows are computed anew, so that no register holds them meanwhile.
  outputRows->storeStates(b, normalizer, state.rows);
  buildStore(state.output);
  b.ifThen(b.anyLane(b.notI(b.eqF(probe, b.f32(0)))),
           [&] { replaceNonFiniteRows(); });
}

void Consumer::buildStore(ArrayRef<Value> output) {
  if (!context.stagesOutput())
    return outputRows->store(b, output);
  int64_t size = ExactRows::kShape.getSize();
  for (int64_t part = 0; part * size < int64_t(output.size()); ++part)
    storeMatrix(
        b, getStagedAddress(b.i32(part * ExactRows::kColumns)),
        packPairs(b, output.slice(part * size, size), problem.getOutputType()));
}

void Consumer::replaceNonFiniteRows() {
  Value row = ownRows.firstRow;
  syncWarp(b);
  ExactRows::Rows exact =
      ExactRows(context, normalizer, ownRows, *walk, row, lane)
          .emit(b, [&](Value column, ArrayRef<Value> output) {
            // What is finite stays, so that it does not depend on what the
            // warp's other rows hold.
            if (!context.stagesOutput()) {
              // Else the addresses are made before the loops over the keys.
              OutputRows(problem, ownRows, ExactRows::kShape, b.pin({row})[0],
                         tileColumn, column)
                  .replaceNonFinite(b, output);
              return;
            }
            Type type = problem.getOutputType();
            Value address = getStagedAddress(column);
            Values staged = loadMatrix(b, address);
            for (auto [pair, other] :
                 llvm::zip_equal(staged, packPairs(b, output, type)))
              pair = replaceNonFinite(b, pair, other, type);
            storeMatrix(b, address, staged);
          });
  OutputRows(problem, ownRows, outputShape, b.pin({row})[0], tileColumn)
      .replaceNaNStates(b, normalizer, exact);
}

Value Consumer::getStagedAddress(Value column) {
  Value inPanel = b.shl(b.remU(column, kPanelColumns), 1);
  return b.xorI(b.add(getStagedPanel(column), matrixOffset), inPanel);
}

Value Consumer::getStagedPanel(Value column) {
  Value panel = b.divU(column, kPanelColumns);
  return b.add(b.add(context.shared, context.plan.output),
               b.add(b.mul(group, kGroupPanelBytes),
                     b.mul(panel, context.tile.tileM * kPanelPitch)));
}

void Consumer::storeStaged(Value round) {
  fenceAsyncProxy(b);
  syncNamed(b, groupBarrier, kWarpgroupThreads);
  b.ifThen(b.eq(isGroupLeader, 1), [&] {
    for (int64_t column = 0; column < context.dims.v; column += kPanelColumns)
      storeBox(b, outputMap,
               {b.i32(column), groupRows.firstRow, groupRows.head, query.batch},
               getStagedPanel(b.i32(column)));
    commitStores(b);
    if (context.outputReplacesQuery()) {
      waitStoresRead(b);
      context.queries.releaseIf(b, isGroupLeader, round);
    }
  });
}
