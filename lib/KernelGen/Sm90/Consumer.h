//===- Consumer.h - A computing warpgroup -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_KERNELGEN_SM90_CONSUMER_H
#define ATTNFUSE_LIB_KERNELGEN_SM90_CONSUMER_H

#include "BlockContext.h"
#include "ExactRows.h"
#include "attnfuse/KernelGen/Normalizer.h"
#include "attnfuse/KernelGen/OutputRows.h"
#include "attnfuse/KernelGen/ScoreTile.h"

namespace mlir::attnfuse::kernelgen::sm90 {

/// Computes 64 query rows at a time.
class Consumer {
public:
  Consumer(KernelBuilder &b, const BlockContext &context);
  void build();

private:
  /// What a step of the key loop hands to the next. The weights are those of
  /// the last step, packed, whose product with V is still to be added.
  ///
  /// An element of a bias hides its key if it is -inf, and the sum with the
  /// score is bounded from below. Inner tiles take the mere sum: it is -inf
  /// where the key is hidden, NaN if the score is, too, and rows with NaN are
  /// computed anew. What is left are rows of which all keys have sums below
  /// the bound. `largest` tells them from rows of which all keys are hidden:
  /// the largest staged elements so far, a pair of 16 bits by row or, where all
  /// rows share them, one.
  struct LoopState {
    Values position;
    Value number; ///< of the next key tile
    OnlineNormalizer::Rows rows;
    Values largest;
    Values weights, output;
    // After the last step: the factors of the output's rows, and what is known
    // of the next tile.
    Values factors, ahead;

    Values flatten() const;
    static LoopState unflatten(ValueRange values, const LoopState &like);
  };
  /// What is known about the tiles of a run of steps.
  enum class TileKind { Boundary, Inner };

  /// What the next tile needs first, while this one ends: which one it is
  /// (TileHandoff.h) and, if it is fetched ahead, Q.
  Values fetchAhead(Value round);
  /// Returns the next round, the number of its first key tile, and what has
  /// been fetched ahead for it.
  Values buildTile(Value round, Value number, ValueRange ahead, Values scores);
  /// 1 if the tile fetched ahead has key tiles, else 0, i32.
  Value hasKeys(ValueRange ahead);
  /// The scores of the first key tile, the block's n-th, of what was fetched
  /// ahead, in which Q is rotated then; without one, of what is there.
  Values beginFirstProduct(Values &ahead, Value round, Value number);
  Values endFirstProduct(ValueRange ahead, Value number, Values scores);
  /// Where the warpgroup's rows of Q are.
  Value getQueryTile();
  /// Q as fragments.
  Values loadQuery();
  /// Brings Q where the products read it, rotated.
  void buildQuery(Value round, ValueRange ahead);
  /// Rotates the warpgroup's rows in shared memory, once they have arrived.
  void rotateTile(Value round);
  /// All key tiles of a walk that has some: from the initial state to factors
  /// of the output, and what has been fetched ahead for the next round.
  LoopState buildKeys(LoopState state, Value round, Values scores);
  LoopState buildFirstStep(LoopState state, Value round, Values scores);
  LoopState buildSteps(LoopState state, TileKind kind, bool untilEnd);
  void buildStep(LoopState &state, TileKind kind);
  void buildLastProduct(LoopState &state, Value round);
  /// Writes or stages the rows.
  void buildEpilogue(LoopState state);

  Value getKeyDescriptor(Value number);
  Values buildScores(Value number);
  /// The same of the first key tile of a round. Where tables are staged, Q is
  /// rotated here: some columns while the product with those before them is
  /// under way. The tables are there.
  Values buildFirstScores(Value round, Value number);
  /// Of a tile without scores.
  void releaseTables(Value round);
  Values buildWeightedSum(const LoopState &state, Value number, bool fences);
  /// Scores to weights, in place; by row, what is to be done to the output.
  /// `betweenRows`, if any, is emitted after the first row's exponentials, of
  /// which the row's sum has half by then.
  SmallVector<OnlineNormalizer::Rescale>
  buildNormalizer(LoopState &state, Values &scores, TileKind kind,
                  function_ref<void()> betweenRows);
  void buildRescale(LoopState &state,
                    ArrayRef<OnlineNormalizer::Rescale> rescales);
  /// What is staged for a key tile, by operand and column tile: of each of the
  /// thread's rows its two neighboring elements, packed; none where they are
  /// not loaded yet.
  using StagedPairs = SmallVector<SmallVector<Values>>;
  StagedPairs makeUnloadedPairs() const;
  void loadPairs(StagedPairs &pairs, Value stage, int64_t n,
                 int64_t columnTile);
  /// All of the n-th key tile's, if registers hold them before the scores are
  /// there, else nothing.
  StagedPairs readStagedAhead(Value number);
  /// The score region, with what is staged for the state's next key tile: with
  /// `pairs` or, without, read beside it.
  void changeScores(LoopState &state, Values &scores, Value firstKey,
                    TileKind kind, StagedPairs pairs);
  /// Makes the sum of a row NaN, which is computed anew then, if its sums with
  /// a staged bias may have left the range.
  void markUncertainRows(LoopState &state);
  /// Waits for the next key tile or, after the last, that of V which has landed
  /// already, once `sum` is known.
  void waitNextKey(const LoopState &state, Value sum);
  /// Stores the output, or stages it for the accelerator.
  void buildStore(ArrayRef<Value> output);
  /// Replaces what is not finite in the warp's rows and in what is kept of
  /// them, stored or staged.
  void replaceNonFiniteRows();
  /// Where the lane stages its row of 16 columns from `column` on.
  Value getStagedAddress(Value column);
  void storeStaged(Value round);
  /// Address of this warpgroup's rows of the panel of `column`.
  Value getStagedPanel(Value column);
  void releaseQuery(Value round);

  /// ReLU gives hidden keys and those below the bound the same weight, 0.
  bool tracksLargest() const {
    return hidingSum && problem.getOp().getNormalizer() == Normalizer::Softmax;
  }
  bool hasTurns() const {
    return context.pipeline.pingPong && context.getComputingWarpgroups() > 1;
  }

  KernelBuilder &b;
  const BlockContext &context;
  const AttentionProblem &problem;
  AccumulatorTile scoreShape, outputShape;
  OnlineNormalizer normalizer;
  /// The sum that stands for the score region in inner tiles, and the staged
  /// operand that it adds; null if only the region itself does.
  Value hidingSum;
  const StagedOperand *hiding = nullptr;
  WarpgroupProduct scoreProduct, outputProduct;

  // By thread.
  Value group; ///< this warpgroup among the computing ones
  Value groupThread, lane, isWarpLeader, isGroupLeader;
  Value tileRow, tileColumn; ///< of the thread's first accumulator
  Value matrixOffset; ///< byte offset of the lane's row for ldmatrix, stmatrix
  Value turn, nextTurn, groupBarrier;   ///< named barriers
  Value keyDescriptor, valueDescriptor; ///< of slot 0
  Value outputMap;

  // By query tile.
  /// The tile, and its rows from the warpgroup's and the thread's first on.
  QueryTile query, groupRows, ownRows;
  std::optional<TileWalk> walk;
  std::optional<ScoreTile> scoreTile;
  std::optional<OutputRows> outputRows;
  Values queryOperand; ///< a descriptor, or fragments
};

} // namespace mlir::attnfuse::kernelgen::sm90

#endif // ATTNFUSE_LIB_KERNELGEN_SM90_CONSUMER_H
