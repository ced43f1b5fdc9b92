//===- AttnFuseOps.cpp - Assembly and accessors of the ops ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

#define GET_OP_CLASSES
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseOps.cpp.inc"

double mlir::attnfuse::getAlibiSlope(int64_t head, int64_t numHeads) {
  double power = double(llvm::bit_floor(uint64_t(numHeads)));
  return head < power ? std::exp2(-8.0 * (head + 1) / power)
                      : std::exp2(-4.0 * (2 * (head - power) + 1) / power);
}

double ScaledDotProductOp::getScaleOrDefault() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(double(getQuery().getType().getShape()[3]));
}

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

static std::optional<RotationWay> getWay(RotationAttr rotation,
                                         RotationWay planned) {
  return rotation ? std::optional(planned) : std::nullopt;
}
std::optional<RotationWay> AttentionOp::getQueryRotationWay() {
  RotationPlanAttr plan = getRotationPlanAttr();
  return getWay(getQRotationAttr(), plan ? plan.getQ() : RotationWay::Fused);
}
std::optional<RotationWay> AttentionOp::getKeyRotationWay() {
  RotationPlanAttr plan = getRotationPlanAttr();
  return getWay(getKRotationAttr(), plan ? plan.getK() : RotationWay::Fused);
}
int64_t AttentionOp::getHeadDim() { return getQuery().getType().getShape()[3]; }
int64_t AttentionOp::getValueHeadDim() {
  return getValue().getType().getShape()[3];
}
Type AttentionOp::getElementType() {
  return getQuery().getType().getElementType();
}

bool AttentionOp::hasScoreChain() {
  if (getScore().empty())
    return false;
  Block &block = getScore().front();
  return cast<YieldOp>(block.getTerminator()).getScore() !=
         block.getArgument(Score);
}

// attnfuse.attention q(%q) k(%k) v(%v)
//     [rotate_q <half, offset = 0>(%cos, %sin [, offset %o] [, positions %p])]
//     [rotate_k ...] [blocks <64x64>(%rows, %cols)] [bands [...]] softmax
//     [score [operands(%t, ...)] {...}] [schedule <...>] attr-dict
//     : (operand types) -> result types

namespace {
using Unresolved = OpAsmParser::UnresolvedOperand;

/// Operands in the order of the op's segments, and how many each segment has.
struct SegmentedOperands {
  SmallVector<Unresolved> operands;
  SmallVector<int32_t> sizes;

  void addSegment(ArrayRef<Unresolved> segment) {
    operands.append(segment.begin(), segment.end());
    sizes.push_back(segment.size());
  }
  void addOptional(const std::optional<Unresolved> &operand) {
    addSegment(operand ? ArrayRef(*operand) : ArrayRef<Unresolved>());
  }
};

ParseResult parseNamedOperand(OpAsmParser &parser, StringRef name,
                              SegmentedOperands &segments) {
  Unresolved operand;
  if (parser.parseKeyword(name) || parser.parseLParen() ||
      parser.parseOperand(operand) || parser.parseRParen())
    return failure();
  segments.addSegment(operand);
  return success();
}

ParseResult parseOptionalRotation(OpAsmParser &parser, StringRef keyword,
                                  StringAttr attrName, OperationState &state,
                                  SegmentedOperands &segments) {
  std::optional<Unresolved> cos, sin, offset, positions;
  if (succeeded(parser.parseOptionalKeyword(keyword))) {
    Attribute rotation = RotationAttr::parse(parser, {});
    if (!rotation || parser.parseLParen() ||
        parser.parseOperand(cos.emplace()) || parser.parseComma() ||
        parser.parseOperand(sin.emplace()))
      return failure();
    state.addAttribute(attrName, rotation);
    while (succeeded(parser.parseOptionalComma())) {
      if (succeeded(parser.parseOptionalKeyword("offset"))) {
        if (parser.parseOperand(offset.emplace()))
          return failure();
      } else if (parser.parseKeyword("positions") ||
                 parser.parseOperand(positions.emplace())) {
        return failure();
      }
    }
    if (parser.parseRParen())
      return failure();
  }
  for (const auto &operand : {cos, sin, offset, positions})
    segments.addOptional(operand);
  return success();
}

void printRotation(OpAsmPrinter &p, StringRef keyword, RotationAttr rotation,
                   Value cos, Value sin, Value offset, Value positions) {
  if (!rotation)
    return;
  p << " " << keyword << " ";
  rotation.print(p);
  p << "(" << cos << ", " << sin;
  if (offset)
    p << ", offset " << offset;
  if (positions)
    p << ", positions " << positions;
  p << ")";
}
} // namespace

/// A keyword that is known but stands elsewhere is the usual mistake.
static ParseResult emitOutOfOrder(OpAsmParser &parser, SMLoc loc,
                                  StringRef expected, StringRef keyword) {
  InFlightDiagnostic error = parser.emitError(loc, "expected ")
                             << expected << ", got '" << keyword << "'";
  constexpr StringRef kParts[] = {"rotate_q", "rotate_k", "blocks",
                                  "bands",    "score",    "schedule"};
  if (llvm::is_contained(kParts, keyword) || symbolizeNormalizer(keyword))
    error << "; the order is rotate_q, rotate_k, blocks, bands, a normalizer, "
             "score, schedule, of which only the normalizer must be there";
  return error;
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &state) {
  SegmentedOperands segments;
  if (parseNamedOperand(parser, "q", segments) ||
      parseNamedOperand(parser, "k", segments) ||
      parseNamedOperand(parser, "v", segments) ||
      parseOptionalRotation(parser, "rotate_q",
                            getQRotationAttrName(state.name), state,
                            segments) ||
      parseOptionalRotation(parser, "rotate_k",
                            getKRotationAttrName(state.name), state, segments))
    return failure();

  std::optional<Unresolved> rows, cols;
  if (succeeded(parser.parseOptionalKeyword("blocks"))) {
    Attribute blocks = BlocksAttr::parse(parser, {});
    if (!blocks || parser.parseLParen() ||
        parser.parseOperand(rows.emplace()) || parser.parseComma() ||
        parser.parseOperand(cols.emplace()) || parser.parseRParen())
      return failure();
    state.addAttribute(getBlocksAttrName(state.name), blocks);
  }
  segments.addOptional(rows);
  segments.addOptional(cols);

  ArrayAttr bands;
  if (succeeded(parser.parseOptionalKeyword("bands")) &&
      parser.parseAttribute(bands, getBandsAttrName(state.name),
                            state.attributes))
    return failure();

  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Normalizer> normalizer = symbolizeNormalizer(keyword);
  if (!normalizer)
    return emitOutOfOrder(parser, loc,
                          "a normalizer (softmax, relu_sum, relu_length or "
                          "relu_none)",
                          keyword);
  state.addAttribute(getNormalizerAttrName(state.name),
                     NormalizerAttr::get(parser.getContext(), *normalizer));

  SmallVector<Unresolved> scoreOperands;
  Region *region = state.addRegion();
  if (succeeded(parser.parseOptionalKeyword("score"))) {
    if (succeeded(parser.parseOptionalKeyword("operands")) &&
        parser.parseOperandList(scoreOperands, OpAsmParser::Delimiter::Paren))
      return failure();
    if (parser.parseRegion(*region))
      return failure();
  }
  segments.addSegment(scoreOperands);

  if (succeeded(parser.parseOptionalKeyword("schedule"))) {
    Attribute schedule = ScheduleAttr::parse(parser, {});
    if (!schedule)
      return failure();
    state.addAttribute(getScheduleAttrName(state.name), schedule);
  }
  loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword(&keyword)))
    return emitOutOfOrder(parser, loc, "attributes or ':'", keyword);

  FunctionType type;
  SMLoc typeLoc;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColon() ||
      parser.getCurrentLocation(&typeLoc) || parser.parseType(type) ||
      parser.resolveOperands(segments.operands, type.getInputs(), typeLoc,
                             state.operands))
    return failure();
  state.addTypes(type.getResults());
  state.addAttribute(getOperandSegmentSizeAttr(),
                     parser.getBuilder().getDenseI32ArrayAttr(segments.sizes));
  return success();
}

void AttentionOp::print(OpAsmPrinter &p) {
  p << " q(" << getQuery() << ") k(" << getKey() << ") v(" << getValue() << ")";
  printRotation(p, "rotate_q", getQRotationAttr(), getQCos(), getQSin(),
                getQOffset(), getQPositions());
  printRotation(p, "rotate_k", getKRotationAttr(), getKCos(), getKSin(),
                getKOffset(), getKPositions());
  if (BlocksAttr blocks = getBlocksAttr()) {
    p << " blocks ";
    blocks.print(p);
    p << "(" << getRowOffsets() << ", " << getColIndices() << ")";
  }
  if (!getBands().empty())
    p << " bands " << getBands();
  p << " " << stringifyNormalizer(getNormalizer());
  if (!getScore().empty()) {
    p << " score ";
    if (!getScoreOperands().empty())
      p << "operands(" << getScoreOperands() << ") ";
    p.printRegion(getScore());
  }
  if (ScheduleAttr schedule = getScheduleAttr()) {
    p << " schedule ";
    schedule.print(p);
  }
  p.printOptionalAttrDict((*this)->getAttrs(),
                          {getQRotationAttrName(), getKRotationAttrName(),
                           getBlocksAttrName(), getBandsAttrName(),
                           getNormalizerAttrName(), getScheduleAttrName(),
                           getOperandSegmentSizeAttr()});
  p << " : ";
  p.printFunctionalType(*this);
}
