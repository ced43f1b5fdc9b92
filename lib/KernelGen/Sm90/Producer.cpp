//===- Producer.cpp - The loading warpgroup -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producer.h"
#include "attnfuse/KernelGen/ProgrammaticLaunch.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

/// Units of the rotation of K that a thread has in registers.
static constexpr int64_t kUnitsAtOnce = 2;

static bool isRotatedBefore(Value tensor) {
  return bool(tensor.getDefiningOp<RopeOp>());
}

Producer::Producer(KernelBuilder &b, const BlockContext &context)
    : b(b), context(context), problem(context.problem) {
  AttentionOp op = problem.getOp();
  KernelAbi &abi = problem.getAbi();
  const KernelTile &tile = context.tile;
  queryMap = abi.getTensorMap(b, op.getQuery(), tile.packedHeads,
                              tile.getRowsPerHead(), kPanelColumns);
  keyMap = abi.getTensorMap(b, op.getKey(), 1, tile.tileN, kPanelColumns);
  valueMap = abi.getTensorMap(b, op.getValue(), 1, tile.tileN, kPanelColumns);
  for (const auto &[operand, panelBytes, offset] : context.stagedPanels)
    stagedMaps.push_back(abi.getTensorMap(b, operand.tensor, 1,
                                          operand.perQuery ? tile.tileM : 1,
                                          kPanelColumns));
}

void Producer::build() {
  Part part(b, "producer");
  decreaseRegisters(b, context.registers.load);
  if (context.keyRotation)
    buildRounds();
  else
    b.ifThen(b.eq(context.thread, 0), [&] { buildRounds(); });
  if (context.stagesTables())
    b.ifThen(b.le(b.i32(kWarpSize), context.thread),
             [&] { buildTableRounds(); });
}

void Producer::asLoader(function_ref<void()> body) {
  if (context.keyRotation)
    b.ifThen(b.eq(context.thread, 0), body);
  else
    body();
}

void Producer::buildRounds() {
  // Carries the round, the number of the block's next key tile, and the round's
  // query tile.
  Values init{b.i32(0), b.i32(0)};
  TileRecord first = context.order.getFirst(b);
  // A kernel before this one may still be rotating q or k. Every block waits
  // for it, so that this kernel ends after that one.
  bool qIsRotated = isRotatedBefore(problem.getOp().getQuery()),
       kIsRotated = isRotatedBefore(problem.getOp().getKey());
  if (qIsRotated)
    asLoader([&] { waitForPreviousKernel(b); });
  handOver(b.i32(0), first);
  if (kIsRotated && !qIsRotated)
    asLoader([&] { waitForPreviousKernel(b); });
  init.append(first.words);
  b.whileLoop(
      init,
      [&](ValueRange state) {
        return TileRecord{state.drop_front(2)}.isTile(b);
      },
      [&](ValueRange state) {
        TileRecord record{state.drop_front(2)};
        return buildTile(state[0], record.getTile(b, problem), state[1]);
      });
}

void Producer::buildTableRounds() {
  FragmentRotation rotation = context.getFragmentRotation();
  Value isWarpLeader =
      b.select(b.eq(b.remU(context.thread, kWarpSize), 0), b.i32(1), b.i32(0));
  auto take = [&](Value round) {
    return context.handoff.take(b, round, isWarpLeader).words;
  };
  Values init{b.i32(0)};
  init.append(take(b.i32(0)));
  b.whileLoop(
      init,
      [&](ValueRange state) {
        return TileRecord{state.drop_front(1)}.isTile(b);
      },
      [&](ValueRange state) {
        Value round = state[0];
        QueryTile query = TileRecord{state.drop_front(1)}.getTile(b, problem);
        context.tables.waitEmpty(b, round);
        rotation.stageTables(b, context.getStagedTables(b), query.firstRow,
                             problem.nq, query.batch,
                             b.sub(context.thread, kWarpSize),
                             kSpareLoaderWarps * kWarpSize,
                             [&](Value to, Value from, int64_t bytes) {
                               copyAsync(b, to, from, bytes);
                             });
        arriveAfterCopies(b, context.tables.getFull(b, round));
        Values next{b.add(round, 1)};
        next.append(take(next[0]));
        return next;
      });
}

void Producer::handOver(Value round, const TileRecord &record) {
  asLoader([&] {
    context.handoff.put(b, round, record);
    b.ifThen(record.isTile(b), [&] {
      QueryTile query = record.getTile(b, problem);
      if (context.fetchesQuery())
        loadQuery(round, query);
      else if (context.queryRotation)
        prefetchTables(query);
    });
  });
}

void Producer::loadQuery(Value round, const QueryTile &query) {
  load(context.queries, round, queryMap, context.tile.tileM,
       {query.firstRow, query.head, query.batch});
}

Values Producer::buildTile(Value round, const QueryTile &query, Value number) {
  TileWalk walk = problem.getWalk(b, context.tile, query);
  auto loadKey = [&](ValueRange position, Value number) {
    b.ifThen(walk.isValid(b, position), [&] {
      load(context.keys, number, keyMap, context.tile.tileN,
           {walk.getFirstKey(b, position), query.keyHead, query.batch});
    });
  };
  // Wanted after its K, and later than the V of the step before.
  auto loadStagedFor = [&](ValueRange position, Value number) {
    if (context.stagedTiles)
      b.ifThen(walk.isValid(b, position), [&] {
        loadStaged(query, walk.getFirstKey(b, position), number);
      });
  };

  Values position = walk.begin(b);
  asLoader([&] {
    loadKey(position, number);
    if (!context.fetchesQuery())
      loadQuery(round, query);
    loadStagedFor(position, number);
  });
  Value nextRound = b.add(round, 1);
  TileRecord next;
  auto getNext = [&] {
    next = context.order.getNext(b, nextRound);
    handOver(nextRound, next);
  };
  // The next Q takes the place of this one, which is read at the end of the
  // tile before: about when there is room for more of K and V. Where K is
  // rotated, registers are short.
  if (!context.keyRotation)
    getNext();

  Values init = position;
  init.push_back(number);
  auto getPosition = [](ValueRange state) { return state.drop_back(); };
  Values end = b.whileLoop(
      init,
      [&](ValueRange state) { return walk.isValid(b, getPosition(state)); },
      [&](ValueRange state) -> Values {
        Value number = state.back();
        Value firstKey = walk.getFirstKey(b, getPosition(state));
        Values next = walk.next(b, getPosition(state));
        asLoader([&] { loadKey(next, b.add(number, 1)); });
        // While the next K is on its way, and before this V, whose slot is
        // released by consumers that may wait for this K.
        if (context.keyRotation)
          rotateKey(query, firstKey, number);
        asLoader([&] {
          load(context.values, number, valueMap, context.tile.tileN,
               {firstKey, query.keyHead, query.batch});
          loadStagedFor(next, b.add(number, 1));
        });
        next.push_back(b.add(number, 1));
        return next;
      });
  if (context.keyRotation)
    getNext();
  Values state{nextRound, end.back()};
  state.append(next.words);
  return state;
}

void Producer::prefetchTables(const QueryTile &query) {
  RowRotation rotation(context.queryRotation, problem.getElementType(),
                       problem.getAbi());
  rotation.forEachTableRange(
      b, query.firstRow, context.tile.getRowsPerHead(), problem.nq, query.batch,
      [&](Value address, Value bytes) { prefetchToCache(b, address, bytes); });
}

void Producer::rotateKey(const QueryTile &query, Value firstKey, Value number) {
  Value slot = b.sub(context.keys.getTile(b, number), context.shared);
  Value tile = b.offsetPtr(context.getSharedPtr(b, 0), slot);
  TileRotation(context.keyRotation, problem.getElementType(), problem.getAbi(),
               kWarpgroupThreads, kUnitsAtOnce)
      .emit(b, context.keyLayout, tile, context.tile.tileN, context.tile.tileN,
            firstKey, problem.nkv, query.batch, context.thread,
            [&] { context.keys.waitFull(b, number); });
  fenceAsyncProxy(b);
  arrive(b, context.readyKeys.getFull(b, number));
}

void Producer::loadStaged(const QueryTile &query, Value firstKey,
                          Value number) {
  auto getRows = [&](const StagedOperand &operand) {
    return operand.perQuery ? context.tile.tileM : 1;
  };
  int64_t panels = context.getKeyPanels(), bytes = 0;
  for (const auto &[operand, panelBytes, offset] : context.stagedPanels)
    bytes += panels * getRows(operand) * kPanelPitch;
  Value tile = beginLoad(*context.stagedTiles, number, bytes);
  Value zero = b.i32(0);
  for (auto [map, staged] : llvm::zip_equal(stagedMaps, context.stagedPanels)) {
    const StagedOperand &operand = staged.operand;
    loadPanels(b.add(tile, staged.offset), map, panels, staged.panelBytes,
               firstKey,
               {operand.perQuery ? query.firstRow : zero,
                operand.perHead ? query.head : zero,
                operand.perBatch ? query.batch : zero},
               context.stagedTiles->getFull(b, number));
  }
}

void Producer::load(const StageRing &ring, Value number, Value map,
                    int64_t rows, ValueRange rowHeadBatch) {
  int64_t panelBytes = rows * kPanelPitch;
  Value tile = beginLoad(ring, number, ring.getTileBytes());
  loadPanels(tile, map, ring.getTileBytes() / panelBytes, panelBytes, b.i32(0),
             rowHeadBatch, ring.getFull(b, number));
}

Value Producer::beginLoad(const StageRing &ring, Value number, int64_t bytes) {
  ring.waitEmpty(b, number);
  arriveExpecting(b, ring.getFull(b, number), bytes);
  return ring.getTile(b, number);
}

void Producer::loadPanels(Value tile, Value map, int64_t panels,
                          int64_t panelBytes, Value firstColumn,
                          ValueRange rowHeadBatch, Value full) {
  for (int64_t panel = 0; panel < panels; ++panel) {
    Values at{b.add(firstColumn, panel * kPanelColumns)};
    llvm::append_range(at, rowHeadBatch);
    loadBox(b, b.add(tile, panel * panelBytes), map, at, full);
  }
}
