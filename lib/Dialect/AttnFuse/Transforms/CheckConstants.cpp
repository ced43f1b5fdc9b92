//===- CheckConstants.cpp - The contents of constant operands
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

/// The op that defines `value`, through casts; null for an argument.
static Operation *getConstantOp(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>()) {
    // In a graph region, casts may form a cycle, which comes back to an
    // earlier op of its block.
    Operation *source = cast.getSource().getDefiningOp();
    if (source && source->getBlock() == cast->getBlock() &&
        !source->isBeforeInBlock(cast))
      return nullptr;
    value = cast.getSource();
  }
  Operation *op = value.getDefiningOp();
  return op && op->hasTrait<OpTrait::ConstantLike>() ? op : nullptr;
}

namespace {
/// The entries of a constant i32 tensor: one for all of a splat.
class ConstantList {
public:
  /// Null if the entries are not at hand.
  static std::optional<ConstantList> get(Value value) {
    ConstantList list;
    Attribute attr;
    list.op = getConstantOp(value);
    if (!list.op || !matchPattern(list.op, m_Constant(&attr)))
      return std::nullopt;
    ArrayRef<char> bytes;
    if (auto dense = dyn_cast<DenseIntElementsAttr>(attr)) {
      bytes = dense.getRawData();
      list.splat = dense.isSplat();
    } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
      AsmResourceBlob *blob = resource.getRawHandle().getBlob();
      if (!blob)
        return std::nullopt;
      bytes = blob->getData();
    } else {
      return std::nullopt;
    }
    list.type = cast<RankedTensorType>(cast<ElementsAttr>(attr).getType());
    list.entries = ArrayRef(reinterpret_cast<const int32_t *>(bytes.data()),
                            bytes.size() / sizeof(int32_t));
    int64_t expected = list.splat ? 1 : list.size();
    if (int64_t(list.entries.size()) != expected)
      return std::nullopt;
    return list;
  }

  int64_t size() const { return type.getNumElements(); }
  int64_t operator[](int64_t index) const { return entries[splat ? 0 : index]; }
  bool isSplat() const { return splat; }
  ArrayRef<int64_t> getShape() const { return type.getShape(); }
  Location getLoc() const { return op->getLoc(); }

private:
  Operation *op = nullptr;
  RankedTensorType type;
  ArrayRef<int32_t> entries;
  bool splat = false;
};

/// The lists of a block-sparse mask (spec S10).
class BlockListChecker {
public:
  BlockListChecker(Operation *op, Value rowOffsets, Value colIndices,
                   int64_t numKeys, int64_t keyBlock)
      : op(op), columnsType(cast<RankedTensorType>(colIndices.getType())),
        offsets(ConstantList::get(rowOffsets)),
        columns(ConstantList::get(colIndices)) {
    if (!ShapedType::isDynamic(numKeys))
      numKeyBlocks = llvm::divideCeil(numKeys, keyBlock);
  }

  LogicalResult check() {
    if (!offsets)
      return success();
    int64_t perPattern = offsets->getShape().back();
    int64_t length = columns ? columns->size() : columnsType.getDimSize(0);
    if (columns)
      findFaults();
    // All the entries of a splat are as the first two.
    int64_t end = offsets->size();
    if (offsets->isSplat())
      end = std::min<int64_t>(end, 2);
    for (int64_t i = 0; i < end; ++i) {
      int64_t first = (*offsets)[i];
      if (first < 0)
        return fail("row_offsets", *offsets, i) << "expected at least 0";
      if (!ShapedType::isDynamic(length) && first > length)
        return fail("row_offsets", *offsets, i)
               << "expected at most " << length << ", the number of columns";
      if (i % perPattern == perPattern - 1 || i + 1 == end)
        continue;
      int64_t last = (*offsets)[i + 1];
      if (last < first)
        return fail("row_offsets", *offsets, i + 1)
               << "expected at least the entry before, " << first;
      if (!columns)
        continue;
      if (std::optional<int64_t> entry = findFault(first, last)) {
        InFlightDiagnostic diag = fail("col_indices", *columns, *entry)
                                  << "expected columns that are at least 0, "
                                     "increase within row "
                                  << i % perPattern;
        if (numKeyBlocks)
          diag << " and are below " << *numKeyBlocks;
        return diag;
      }
    }
    return success();
  }

private:
  bool isOutOfRange(int64_t column) const {
    return column < 0 || (numKeyBlocks && column >= *numKeyBlocks);
  }

  /// Rows of several patterns may share entries, so faults are looked for
  /// once.
  void findFaults() {
    if (columns->isSplat())
      return;
    for (int64_t entry = 0, end = columns->size(); entry < end; ++entry) {
      if (isOutOfRange((*columns)[entry]))
        outOfRange.push_back(entry);
      if (entry > 0 && (*columns)[entry] <= (*columns)[entry - 1])
        notIncreasing.push_back(entry);
    }
  }

  /// An entry in [first, last) that may not be there.
  std::optional<int64_t> findFault(int64_t first, int64_t last) const {
    last = std::min(last, columns->size());
    if (columns->isSplat()) {
      if (first < last && isOutOfRange((*columns)[first]))
        return first;
      return last - first > 1 ? std::optional(first + 1) : std::nullopt;
    }
    auto isIn = [&](ArrayRef<int64_t> faults,
                    int64_t from) -> std::optional<int64_t> {
      const auto *fault = llvm::lower_bound(faults, from);
      return fault != faults.end() && *fault < last ? std::optional(*fault)
                                                    : std::nullopt;
    };
    if (std::optional<int64_t> entry = isIn(outOfRange, first))
      return entry;
    return isIn(notIncreasing, first + 1);
  }

  InFlightDiagnostic fail(StringRef name, const ConstantList &list,
                          int64_t entry) {
    InFlightDiagnostic diag = op->emitOpError("'")
                              << name << "' has entry " << entry << " = "
                              << list[entry] << ": ";
    diag.attachNote(list.getLoc()) << "the constant is here";
    return diag;
  }

  Operation *op;
  RankedTensorType columnsType;
  std::optional<ConstantList> offsets, columns;
  std::optional<int64_t> numKeyBlocks;
  SmallVector<int64_t> outOfRange, notIncreasing;
};
} // namespace

/// A constant offset, where the verifier sees an operand.
static LogicalResult checkOffset(Operation *op, StringRef prefix, Value input,
                                 Value cos, Value offset,
                                 int64_t staticOffset) {
  APInt constant;
  if (!offset || !matchPattern(offset, m_ConstantInt(&constant)))
    return success();
  // Neither sum overflows: static offsets and lengths are far below 2^63.
  __int128 start = __int128(constant.getSExtValue()) + staticOffset;
  auto attachNote = [&](InFlightDiagnostic diag) {
    diag.attachNote(offset.getLoc()) << "the constant is here";
    return diag;
  };
  if (start < 0)
    return attachNote(op->emitOpError("expected '")
                      << prefix << "offset' and the constant offset to add up "
                      << "to at least 0, got " << constant.getSExtValue()
                      << " and " << staticOffset);
  int64_t rows = cast<RankedTensorType>(cos.getType()).getDimSize(0);
  int64_t length = cast<RankedTensorType>(input.getType()).getDimSize(2);
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(length) ||
      start + length <= rows)
    return success();
  return attachNote(op->emitOpError("expected '")
                    << prefix << "cos' to have a row for each of " << length
                    << " positions from " << constant.getSExtValue() << " + "
                    << staticOffset << ", got " << rows << " rows");
}

/// What is known of the sizes that b, h, i and j stay below.
static int64_t getExtent(AttentionOp op, unsigned argument) {
  ArrayRef<int64_t> query = op.getQuery().getType().getShape();
  switch (argument) {
  case AttentionOp::B:
    return query[0];
  case AttentionOp::H:
    return query[1];
  case AttentionOp::I:
    return query[2];
  case AttentionOp::J:
    return op.getKey().getType().getDimSize(2);
  default:
    return ShapedType::kDynamic;
  }
}

static LogicalResult checkExtract(AttentionOp attention, tensor::ExtractOp op) {
  for (auto [dim, index, size] :
       llvm::enumerate(op.getIndices(), op.getTensor().getType().getShape())) {
    APInt constant;
    int64_t last = 0;
    auto argument = dyn_cast<BlockArgument>(index);
    bool isArgument = bool(argument);
    if (isArgument) {
      if (argument.getOwner() != &attention.getScore().front())
        continue;
      int64_t extent = getExtent(attention, argument.getArgNumber());
      if (ShapedType::isDynamic(extent) || extent == 0)
        continue;
      last = extent - 1;
    } else if (matchPattern(index, m_ConstantInt(&constant))) {
      last = constant.getSExtValue();
    } else {
      continue;
    }
    bool isKnown = !ShapedType::isDynamic(size);
    if (last >= 0 && !(isKnown && last >= size))
      continue;
    InFlightDiagnostic diag = op.emitOpError("expected index ")
                              << dim << " to be at least 0";
    if (isKnown)
      diag << " and below " << size;
    return diag << " in the score region, got " << (isArgument ? "up to " : "")
                << last;
  }
  return success();
}

/// Spec S14, as far as it is seen from here.
static LogicalResult checkScoreRegion(AttentionOp attention) {
  if (attention.getScore().empty())
    return success();
  WalkResult result = attention.getScore().walk([&](Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return WalkResult(checkExtract(attention, extract));
    bool isDivision =
        isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
    if (!isDivision || !matchPattern(op->getOperand(1), m_Zero()))
      return WalkResult::advance();
    InFlightDiagnostic diag =
        op->emitOpError("expected a divisor that is not 0");
    diag.attachNote(op->getOperand(1).getLoc()) << "the constant is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Code spells out every element of a constant, those of a splat too.
static LogicalResult checkSizesOfConstants(Operation *op) {
  constexpr int64_t kMaxBytes = int64_t(1) << 28;
  if (!isa_and_nonnull<AttnFuseDialect>(op->getDialect()))
    return success();
  for (Value operand : op->getOperands()) {
    Operation *constant = getConstantOp(operand);
    auto type =
        constant ? dyn_cast<RankedTensorType>(constant->getResult(0).getType())
                 : RankedTensorType();
    if (!type || !type.getElementType().isIntOrFloat())
      continue;
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    bool isEmpty = llvm::is_contained(type.getShape(), 0), isLarge = false;
    for (int64_t size : type.getShape())
      isLarge |= llvm::MulOverflow(bytes, size, bytes) || bytes > kMaxBytes;
    if (isEmpty || !isLarge)
      continue;
    InFlightDiagnostic diag = op->emitOpError("expected constants of at most ")
                              << kMaxBytes << " bytes, got a " << type
                              << "; make it an argument of the function";
    diag.attachNote(constant->getLoc()) << "the constant is here";
    return diag;
  }
  return success();
}

LogicalResult mlir::attnfuse::checkConstantOperands(Operation *root) {
  auto check = [](Operation *op) {
    if (failed(checkSizesOfConstants(op)))
      return LogicalResult::failure();
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([](RopeOp op) {
          return checkOffset(op, "", op.getInput(), op.getCos(), op.getOffset(),
                             op.getStaticOffset());
        })
        .Case([](BlockSparseOp op) {
          return BlockListChecker(op, op.getRowOffsets(), op.getColIndices(),
                                  op.getScores().getType().getDimSize(3),
                                  op.getKeyBlock())
              .check();
        })
        .Case([](AttentionOp op) -> LogicalResult {
          if (failed(checkScoreRegion(op)))
            return failure();
          if (RotationAttr rotation = op.getQRotationAttr())
            if (failed(checkOffset(op, "q_", op.getQuery(), op.getQCos(),
                                   op.getQOffset(), rotation.getOffset())))
              return failure();
          if (RotationAttr rotation = op.getKRotationAttr())
            if (failed(checkOffset(op, "k_", op.getKey(), op.getKCos(),
                                   op.getKOffset(), rotation.getOffset())))
              return failure();
          BlocksAttr blocks = op.getBlocksAttr();
          if (!blocks)
            return success();
          return BlockListChecker(op, op.getRowOffsets(), op.getColIndices(),
                                  op.getKey().getType().getDimSize(2),
                                  blocks.getKeyBlock())
              .check();
        })
        .Default(success());
  };
  WalkResult result = root->walk([&](Operation *op) {
    return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
