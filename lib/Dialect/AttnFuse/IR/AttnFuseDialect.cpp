//===- AttnFuseDialect.cpp - Registration, enums and attributes -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseDialect.cpp.inc"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// The end of a schedule: `, key_splits = 4, pipeline = <...>`, in any order and
// each once or not at all
//===----------------------------------------------------------------------===//

static ParseResult parseScheduleOptions(AsmParser &parser, int64_t &keySplits,
                                        int64_t &packedHeads, int64_t &stages,
                                        PipelineAttr &pipeline) {
  keySplits = 0;
  packedHeads = stages = 1;
  SmallVector<std::pair<StringRef, int64_t *>> numbers{
      {"key_splits", &keySplits},
      {"packed_heads", &packedHeads},
      {"stages", &stages}};
  while (succeeded(parser.parseOptionalComma())) {
    llvm::SMLoc loc = parser.getCurrentLocation();
    auto *number = llvm::find_if(numbers, [&](const auto &option) {
      return succeeded(parser.parseOptionalKeyword(option.first));
    });
    if (number != numbers.end()) {
      if (parser.parseEqual() || parser.parseInteger(*number->second))
        return failure();
      numbers.erase(number);
      continue;
    }
    if (pipeline || failed(parser.parseOptionalKeyword("pipeline")))
      return parser.emitError(loc, "expected 'key_splits', 'packed_heads', "
                                   "'stages' or 'pipeline', each once");
    // By its name too, if it has one.
    FailureOr<PipelineAttr> parsed;
    if (parser.parseEqual() ||
        failed(parsed = FieldParser<PipelineAttr>::parse(parser)))
      return failure();
    pipeline = *parsed;
  }
  return success();
}

static void printScheduleOptions(AsmPrinter &printer, int64_t keySplits,
                                 int64_t packedHeads, int64_t stages,
                                 PipelineAttr pipeline) {
  if (keySplits != 0)
    printer << ", key_splits = " << keySplits;
  if (packedHeads != 1)
    printer << ", packed_heads = " << packedHeads;
  if (stages != 1)
    printer << ", stages = " << stages;
  if (pipeline) {
    printer << ", pipeline = ";
    printer.printStrippedAttrOrType(pipeline);
  }
}

#define GET_ATTRDEF_CLASSES
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseAttrs.cpp.inc"

void AttnFuseDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuseOps.cpp.inc"
      >();
}

Operation *AttnFuseDialect::materializeConstant(OpBuilder &builder,
                                                Attribute value, Type type,
                                                Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===----------------------------------------------------------------------===//
// Attributes on other dialects' ops
//===----------------------------------------------------------------------===//

LogicalResult
AttnFuseDialect::verifyOperationAttribute(Operation *op,
                                          NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kTargetAttrName) {
    if (isa<TargetAttr>(value))
      return success();
    return op->emitError("expected '")
           << name << "' to be a target such as #attnfuse.target<\"sm_80\">, "
           << "got " << value;
  }
  if (name == kManifestAttrName) {
    auto array = dyn_cast<ArrayAttr>(value);
    if (isa<StringAttr>(value) ||
        (array && llvm::all_of(array, llvm::IsaPred<StringAttr>)))
      return success();
    return op->emitError("expected '")
           << name << "' to be a string or an array of strings, got " << value;
  }
  if (name == kNameAttr || name == kStreamAttr)
    return op->emitError("expected '")
           << name << "' on an argument or result of a function, got it on '"
           << op->getName() << "'";
  return op->emitError("unknown attribute '")
         << name << "': expected '" << kTargetAttrName
         << "', or a name without 'attnfuse.'";
}

/// An attribute of argument or result `index` of a function.
static LogicalResult verifyFunctionAttribute(Operation *op, StringRef kind,
                                             unsigned index,
                                             NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name != kNameAttr)
    return op->emitError("unknown attribute '")
           << name << "' of " << kind << " " << index << ": expected '"
           << kNameAttr << "', or a name without 'attnfuse.'";
  auto value = dyn_cast<StringAttr>(attribute.getValue());
  if (value && !value.empty())
    return success();
  return op->emitError("expected '")
         << name << "' of " << kind << " " << index
         << " to be a string that is not empty, got " << attribute.getValue();
}

LogicalResult AttnFuseDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attribute.getName() == kStreamAttr && function) {
    Type type = function.getArgumentTypes()[index];
    if (isa<UnitAttr>(attribute.getValue()) && type.isInteger(64))
      return success();
    return op->emitError("expected '")
           << kStreamAttr
           << "', without a value, on an i64 argument, got it on "
           << "argument " << index << " of type " << type;
  }
  return verifyFunctionAttribute(op, "argument", index, attribute);
}

LogicalResult AttnFuseDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return verifyFunctionAttribute(op, "result", index, attribute);
}

//===----------------------------------------------------------------------===//
// BandAttr: <align (, left = N)? (, right = N)?>
//===----------------------------------------------------------------------===//

Attribute BandAttr::parse(AsmParser &parser, Type) {
  std::string keyword;
  std::optional<int64_t> left, right;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeywordOrString(&keyword))
    return {};
  std::optional<Alignment> align = symbolizeAlignment(keyword);
  if (!align) {
    parser.emitError(loc, "expected top_left or bottom_right, got '")
        << keyword << "'";
    return {};
  }
  while (succeeded(parser.parseOptionalComma())) {
    StringRef bound;
    SMLoc boundLoc = parser.getCurrentLocation();
    int64_t value;
    if (parser.parseKeyword(&bound) || parser.parseEqual() ||
        parser.parseInteger(value))
      return {};
    std::optional<int64_t> *slot = bound == "left"    ? &left
                                   : bound == "right" ? &right
                                                      : nullptr;
    if (!slot || *slot) {
      parser.emitError(boundLoc,
                       "expected 'left' or 'right', each at most once, got '")
          << bound << "'";
      return {};
    }
    *slot = value;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BandAttr>(parser.getContext(), *align, left, right);
}

void BandAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyAlignment(getAlign());
  if (getLeft())
    printer << ", left = " << *getLeft();
  if (getRight())
    printer << ", right = " << *getRight();
  printer << ">";
}

LogicalResult BandAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               Alignment, std::optional<int64_t> left,
                               std::optional<int64_t> right) {
  for (auto [name, bound] :
       {std::pair("left", left), std::pair("right", right)})
    if (bound && (*bound < 0 || *bound >= kMaxExtent))
      return emitError() << "expected '" << name << "' to be in [0, 2^31), got "
                         << *bound << "; leave it out for an unbounded side";
  return success();
}

LogicalResult
RotationPlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         RotationWay q, RotationWay, std::optional<int64_t>,
                         std::optional<int64_t>) {
  // To rotate q once in its tile is quicker at every size.
  if (q == RotationWay::BySize)
    return emitError() << "expected q to be fused or split, got by_size";
  return success();
}

//===----------------------------------------------------------------------===//
// BlocksAttr: <query x key>
//===----------------------------------------------------------------------===//

Attribute BlocksAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> sizes;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(sizes, /*allowDynamic=*/false,
                                /*withTrailingX=*/false) ||
      parser.parseGreater())
    return {};
  if (sizes.size() != 2) {
    parser.emitError(loc, "expected 2 block sizes, got ") << sizes.size();
    return {};
  }
  return parser.getChecked<BlocksAttr>(parser.getContext(), sizes[0], sizes[1]);
}

void BlocksAttr::print(AsmPrinter &printer) const {
  printer << "<" << getQueryBlock() << "x" << getKeyBlock() << ">";
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t queryBlock, int64_t keyBlock) {
  for (auto [name, size] :
       {std::pair("query", queryBlock), std::pair("key", keyBlock)})
    if (size < 1 || size >= kMaxExtent)
      return emitError() << "expected a " << name << " block in [1, 2^31), got "
                         << size;
  return success();
}

//===----------------------------------------------------------------------===//
// Target and schedule
//===----------------------------------------------------------------------===//

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, DictionaryAttr) {
  if (name.empty())
    return emitError() << "expected the name of a machine, got an empty string";
  return success();
}

/// More rows or keys than any machine's shared memory holds.
static constexpr int64_t kMaxTile = 1024;

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t stages, bool, RowOrder rowOrder,
                                   int64_t partialSums, int64_t partialMaxima,
                                   bool, ProductWait productWait) {
  if (stages < 2 || stages > 8 || !llvm::isPowerOf2_64(stages))
    return emitError() << "expected 2, 4 or 8 stages, got " << stages;
  for (auto [name, count] : {std::pair("partial_sums", partialSums),
                             std::pair("partial_maxima", partialMaxima)})
    if (count < 1 || count > 4)
      return emitError() << "expected 1 to 4 " << name << ", got " << count;
  if (productWait != ProductWait::End && rowOrder != RowOrder::Rows)
    return emitError() << "expected row_order = rows for product_wait = "
                       << stringifyProductWait(productWait) << ", got "
                       << stringifyRowOrder(rowOrder);
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t tileM, int64_t tileN, int64_t warps,
                                   bool, int64_t keySplits, int64_t packedHeads,
                                   int64_t stages, PipelineAttr pipeline) {
  if (warps < 1 || warps > 32)
    return emitError() << "expected 1 to 32 warps, got " << warps;
  // A warp owns whole 16-row MMA tiles, and the weighted sum steps 16 keys.
  if (tileM < 1 || tileM % (16 * warps) != 0)
    return emitError()
           << "expected tile_m to be a multiple of 16 rows for each of "
           << warps << " warps, got " << tileM;
  for (auto [name, size] :
       {std::pair("tile_m", tileM), std::pair("tile_n", tileN)})
    if (size > kMaxTile)
      return emitError() << "expected " << name << " to be at most " << kMaxTile
                         << ", got " << size;
  if (tileN < 1 || tileN % 16 != 0)
    return emitError() << "expected tile_n to be a multiple of 16, got "
                       << tileN;
  if (keySplits < 0 || keySplits > kMaxKeySplits)
    return emitError() << "expected key_splits from 0 to " << kMaxKeySplits
                       << ", got " << keySplits;
  if (packedHeads < 1 || packedHeads > tileM || tileM % (16 * packedHeads) != 0)
    return emitError() << "expected packed_heads to divide tile_m into "
                          "multiples of 16 rows, got "
                       << packedHeads;
  if (stages < 1 || stages > kMaxUnpipelinedStages)
    return emitError() << "expected 1 to " << kMaxUnpipelinedStages
                       << " stages, got " << stages;
  if (!pipeline) {
    if (packedHeads != 1)
      return emitError() << "expected packed_heads = 1 without a pipeline, got "
                         << packedHeads;
    return success();
  }
  if (stages != 1)
    return emitError() << "expected no stages beside those of the pipeline, "
                       << "got " << stages;
  if (warps % 4 != 0 || warps > 12)
    return emitError() << "expected 4, 8 or 12 warps with a pipeline, got "
                       << warps;
  if (tileM != 16 * warps)
    return emitError() << "expected tile_m to be 16 rows for each of " << warps
                       << " warps with a pipeline, got " << tileM;
  if (tileN > 256)
    return emitError()
           << "expected tile_n to be at most 256 with a pipeline, got "
           << tileN;
  return success();
}
