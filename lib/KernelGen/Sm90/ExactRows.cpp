//===- ExactRows.cpp - Output rows where numbers are not finite -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExactRows.h"
#include "attnfuse/KernelGen/ScoreTile.h"
#include "attnfuse/KernelGen/Sm80/Atoms.h"
#include "attnfuse/KernelGen/ValueFilter.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
using namespace mlir::attnfuse::kernelgen::sm90;

/// Keys that are added at a time.
static constexpr int64_t kKeys = sm80::kMmaK;

namespace {
/// Reads elements of one head of q, k or v, with the rotation that the op asks
/// for. Rows past the end are read as the last, features past the head size as
/// 0.
class HeadReader {
public:
  HeadReader(KernelBuilder &b, const AttentionProblem &problem, Value tensor,
             Value head, Value numRows, const QueryTile &query,
             RotationOperands rotation)
      : problem(problem), numRows(numRows), batch(query.batch),
        rotation(rotation),
        base(problem.getHeadBase(b, tensor, query.batch, head)),
        stride(problem.getAbi().getStride(b, tensor, 2)),
        columns(cast<RankedTensorType>(tensor.getType()).getShape()[3]) {}

  /// Features `column` and `column` + 1 of a row, of which the first is even,
  /// as an i32.
  Value readPair(KernelBuilder &b, Value row, Value column) const {
    Value isInside = b.lt(column, columns);
    Value inside = b.select(isInside, column, b.i32(0));
    Value pair;
    if (rotation)
      pair = readRotatedPair(b, row, inside);
    else
      pair = b.load(b.getI32Type(), getAddress(b, row, inside), 4);
    return b.select(isInside, pair, b.i32(0));
  }
  /// One feature of two rows, as an i32.
  Value readColumn(KernelBuilder &b, Value row, Value nextRow,
                   Value column) const {
    Value isInside = b.lt(column, columns);
    Value inside = b.select(isInside, column, b.i32(0));
    auto readBits = [&](Value row) {
      return b.extendU(b.load(b.getI16Type(), getAddress(b, row, inside), 2));
    };
    Value pair = b.orI(readBits(row), b.shl(readBits(nextRow), 16));
    return b.select(isInside, pair, b.i32(0));
  }

private:
  Value getAddress(KernelBuilder &b, Value row, Value column) const {
    Value last = b.min(row, b.sub(numRows, 1));
    Value element = b.add(b.mul(b.toI64(last), stride), b.toI64(column));
    return b.offsetPtr(base, b.shl(element, 1));
  }
  /// `size` neighbouring features as f32.
  Values read(KernelBuilder &b, Value row, Value column, int64_t size) const {
    Type type = problem.getElementType();
    Value vector = b.load(size == 1 ? type : VectorType::get({size}, type),
                          getAddress(b, row, column), 2 * size);
    Values elements;
    for (int64_t index = 0; index < size; ++index)
      elements.push_back(b.toF32(b.extractElement(vector, index)));
    return elements;
  }
  Value readRotatedPair(KernelBuilder &b, Value row, Value column) const {
    Values pair;
    if (rotation.attr.getPairing() == Pairing::Interleaved)
      pair = readInterleaved(b, row, column);
    else if (rotation.getTableVectorSize() % 2 == 0)
      pair = readHalf(b, row, column, 2);
    else
      for (int64_t index : {0, 1})
        pair.append(readHalf(b, row, b.add(column, index), 1));
    return b.pack(pair[0], pair[1], problem.getElementType());
  }
  /// Features of one half, which are x of their pairs (x, y) or y: x cos - y
  /// sin or y cos + x sin.
  Values readHalf(KernelBuilder &b, Value row, Value column,
                  int64_t size) const {
    int64_t half = rotation.getWidth() / 2;
    Value isRotated = b.lt(column, 2 * half);
    Value feature = b.select(isRotated, column, b.i32(0));
    Value isSecond = b.le(b.i32(half), feature);
    Value angle = b.select(isSecond, b.sub(feature, half), feature);
    Value partner = b.select(isSecond, angle, b.add(feature, half));
    auto [cos, sin] = loadTables(b, row, angle, size);
    Values own = read(b, row, column, size);
    Values other = read(b, row, partner, size);
    for (int64_t index = 0; index < size; ++index) {
      Value turned = b.mulF(other[index], sin[index]);
      turned = b.select(isSecond, turned, b.negF(turned));
      own[index] = b.select(isRotated, b.fma(own[index], cos[index], turned),
                            own[index]);
    }
    return own;
  }
  Values readInterleaved(KernelBuilder &b, Value row, Value column) const {
    Value isRotated = b.lt(column, rotation.getWidth());
    Value feature = b.select(isRotated, column, b.i32(0));
    auto [cos, sin] = loadTables(b, row, b.shrU(feature, 1), 1);
    Values xy = read(b, row, column, 2);
    Value x = b.fma(xy[0], cos[0], b.negF(b.mulF(xy[1], sin[0])));
    Value y = b.fma(xy[1], cos[0], b.mulF(xy[0], sin[0]));
    return {b.select(isRotated, x, xy[0]), b.select(isRotated, y, xy[1])};
  }
  std::pair<Values, Values> loadTables(KernelBuilder &b, Value row, Value angle,
                                       int64_t size) const {
    RowRotation tables(rotation, problem.getElementType(), problem.getAbi());
    Value tableRow = tables.getTableRow(b, row, numRows, batch);
    return {tables.loadTable(b, rotation.cos, tableRow, angle, size),
            tables.loadTable(b, rotation.sin, tableRow, angle, size)};
  }

  const AttentionProblem &problem;
  Value numRows, batch;
  RotationOperands rotation;
  Value base, stride;
  int64_t columns;
};
} // namespace

Values ExactRows::Sums::flatten() const {
  Values values = OnlineNormalizer::flatten(rows);
  values.append(output);
  values.append(marks);
  return values;
}
ExactRows::Sums ExactRows::Sums::unflatten(ValueRange values) {
  Sums sums;
  sums.rows = OnlineNormalizer::takeRows(values, kShape.getNumRows());
  sums.output = takeFront(values, kShape.getSize());
  sums.marks = values;
  return sums;
}

ExactRows::Sums ExactRows::getInitial(KernelBuilder &b) const {
  Sums sums;
  sums.rows.assign(kShape.getNumRows(), normalizer.getInitial(b));
  sums.output.assign(kShape.getSize(), b.f32(0));
  sums.marks = sums.output;
  return sums;
}

ExactRows::Rows ExactRows::emit(
    KernelBuilder &b,
    function_ref<void(Value column, ArrayRef<Value> output)> store) {
  Part part(b, "exact_rows");
  Values init{b.i32(0)};
  init.append(getInitial(b).flatten());
  // The rows are the same for all columns.
  Values end = b.doWhileLoop(init, [&](Values &state) {
    Value column = state[0];
    Sums sums = sumOverKeys(b, column);
    Value nan = b.f32(std::numeric_limits<double>::quiet_NaN());
    Values output = llvm::map_to_vector(
        llvm::zip_equal(sums.output, sums.marks), [&](auto pair) {
          return b.select(b.eqF(std::get<1>(pair), b.f32(0)), std::get<0>(pair),
                          nan);
        });
    store(column, output);
    Value next = b.add(column, kColumns);
    state = {next};
    state.append(sums.flatten());
    return b.lt(next, context.dims.v);
  });
  return Sums::unflatten(ValueRange(end).drop_front()).rows;
}

/// The warp's rows, finished, and `kColumns` columns of the output.
ExactRows::Sums ExactRows::sumOverKeys(KernelBuilder &b, Value column) {
  Values position = walk.begin(b);
  size_t positionSize = position.size();
  Values init = position;
  init.append(getInitial(b).flatten());
  Values end = b.whileLoop(
      init,
      [&](ValueRange state) {
        return walk.isValid(b, state.take_front(positionSize));
      },
      [&](ValueRange state) -> Values {
        ValueRange position = state.take_front(positionSize);
        Value firstKey = walk.getFirstKey(b, position);
        Values keys{b.i32(0)};
        llvm::append_range(keys, state.drop_front(positionSize));
        Values tile = b.doWhileLoop(keys, [&](Values &inner) {
          Sums sums = Sums::unflatten(ValueRange(inner).drop_front());
          addKeys(b, sums, b.add(firstKey, inner[0]), column);
          Value next = b.add(inner[0], kKeys);
          inner = {next};
          inner.append(sums.flatten());
          return b.lt(next, context.tile.tileN);
        });
        Values next = walk.next(b, position);
        llvm::append_range(next, ValueRange(tile).drop_front());
        return next;
      });
  Sums sums = Sums::unflatten(ValueRange(end).drop_front(positionSize));
  for (auto [r, state] : llvm::enumerate(sums.rows)) {
    normalizer.finish(b, state);
    Value factor = normalizer.getOutputFactor(b, state, problem.nkv);
    for (int64_t index : kShape.getRowIndices(r)) {
      sums.output[index] = b.mulF(sums.output[index], factor);
      sums.marks[index] = b.mulF(sums.marks[index], factor);
    }
  }
  return sums;
}

void ExactRows::addKeys(KernelBuilder &b, Sums &sums, Value firstKey,
                        Value column) {
  AccumulatorTile shape{1, kKeys / AccumulatorTile::kColumns};
  Value laneColumn = b.shl(b.andI(lane, 3), 1);
  Values scores = getScores(b, firstKey);
  ScoreTile scoreTile(problem, query, shape, row, laneColumn);
  scoreTile.applyChain(b, scores, firstKey);
  scoreTile.applyMask(b, scores, firstKey);
  OnlineNormalizer::Style style;
  for (int64_t r = 0; r < shape.getNumRows(); ++r) {
    Values rowScores = llvm::map_to_vector(
        shape.getRowIndices(r), [&](int64_t index) { return scores[index]; });
    Value factor = normalizer.advance(b, sums.rows[r], rowScores, style).factor;
    normalizer.weigh(b, sums.rows[r], rowScores, style);
    normalizer.accumulate(b, sums.rows[r], rowScores, style);
    for (auto [index, weight] :
         llvm::zip_equal(shape.getRowIndices(r), rowScores))
      scores[index] = weight;
    for (int64_t index : kShape.getRowIndices(r)) {
      sums.output[index] = b.mulF(sums.output[index], factor);
      sums.marks[index] = b.mulF(sums.marks[index], factor);
    }
  }

  Values weights;
  for (size_t index = 0; index < scores.size(); index += 2)
    weights.push_back(
        b.pack(scores[index], scores[index + 1], problem.getElementType()));
  HeadReader values(b, problem, problem.getOp().getValue(), query.keyHead,
                    problem.nkv, query, {});
  Value laneKey = b.add(firstKey, laneColumn);
  for (int64_t columnTile = 0; columnTile < kShape.columnTiles; ++columnTile) {
    Value here = b.add(b.add(column, b.shrU(lane, 2)),
                       columnTile * AccumulatorTile::kColumns);
    Values pairs;
    for (int64_t key : {0, 8})
      pairs.push_back(values.readColumn(b, b.add(laneKey, key),
                                        b.add(laneKey, key + 1), here));
    for (bool keepsFinite : {true, false}) {
      Values fragment = llvm::map_to_vector(pairs, [&](Value pair) {
        return filterValues(b, pair, problem.getElementType(),
                            b.i1(keepsFinite));
      });
      sm80::multiplyAccumulate(
          b, problem.getElementType(), weights, fragment,
          MutableArrayRef(keepsFinite ? sums.output : sums.marks)
              .slice(kShape.getIndex(0, columnTile, 0),
                     AccumulatorTile::kElements));
    }
  }
}

Values ExactRows::getScores(KernelBuilder &b, Value firstKey) {
  AttentionOp op = problem.getOp();
  AccumulatorTile shape{1, kKeys / AccumulatorTile::kColumns};
  HeadReader queries(b, problem, op.getQuery(), query.head, problem.nq, query,
                     context.queryRotation);
  HeadReader keys(b, problem, op.getKey(), query.keyHead, problem.nkv, query,
                  context.keyRotation);
  Value laneColumn = b.shl(b.andI(lane, 3), 1);
  Value laneKey = b.add(firstKey, b.shrU(lane, 2));
  // Carries (feature, scores).
  Values init{b.i32(0)};
  init.append(Values(shape.getSize(), b.f32(0)));
  Values end = b.doWhileLoop(init, [&](Values &state) {
    Value feature = b.add(state[0], laneColumn);
    Values a;
    for (int64_t column : {0, 8})
      for (int64_t below : {0, 8})
        a.push_back(
            queries.readPair(b, b.add(row, below), b.add(feature, column)));
    Values scores(ValueRange(state).drop_front());
    for (int64_t columnTile = 0; columnTile < shape.columnTiles; ++columnTile) {
      Values fragment;
      for (int64_t column : {0, 8})
        fragment.push_back(keys.readPair(
            b, b.add(laneKey, columnTile * AccumulatorTile::kColumns),
            b.add(feature, column)));
      sm80::multiplyAccumulate(
          b, problem.getElementType(), a, fragment,
          MutableArrayRef(scores).slice(shape.getIndex(0, columnTile, 0),
                                        AccumulatorTile::kElements));
    }
    Value next = b.add(state[0], sm80::kMmaK);
    state = {next};
    state.append(scores);
    return b.lt(next, context.dims.qk);
  });
  return Values(ValueRange(end).drop_front());
}
