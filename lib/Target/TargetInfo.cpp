//===- TargetInfo.cpp - Targets to and from attributes --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Target/TargetInfo.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <variant>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// A fact by its name in an attribute.
struct Field {
  StringLiteral name;
  std::variant<int64_t TargetInfo::*, double TargetInfo::*> member;
};

constexpr StringLiteral kChipField = "chip";

const Field kFields[] = {
    {"ptx_version", &TargetInfo::ptxVersion},
    {"sm_count", &TargetInfo::smCount},
    {"clock_ghz", &TargetInfo::clockGhz},
    {"tensor_flops_per_clock", &TargetInfo::tensorFlopsPerClock},
    {"mufu_per_clock", &TargetInfo::mufuPerClock},
    {"shared_bytes_per_clock", &TargetInfo::sharedBytesPerClock},
    {"l2_bytes_per_clock", &TargetInfo::l2BytesPerClock},
    {"dram_gb_per_second", &TargetInfo::dramGbPerSecond},
    {"l2_bytes", &TargetInfo::l2Bytes},
    {"key_rotation_clocks", &TargetInfo::keyRotationClocks},
    {"loader_rotation_clocks", &TargetInfo::loaderRotationClocks},
    {"loader_latency_clocks", &TargetInfo::loaderLatencyClocks},
    {"loader_sharing", &TargetInfo::loaderSharing},
    {"visit_per_product", &TargetInfo::visitPerProduct},
    {"hidden_clocks_per_feature", &TargetInfo::hiddenClocksPerFeature},
    {"rotation_launch_ns", &TargetInfo::rotationLaunchNs},
    {"rotation_gb_per_second", &TargetInfo::rotationGbPerSecond},
    {"combine_launch_ns", &TargetInfo::combineLaunchNs},
    {"max_shared_per_block", &TargetInfo::maxSharedPerBlock},
    {"max_shared_per_sm", &TargetInfo::maxSharedPerSm},
    {"registers_per_sm", &TargetInfo::registersPerSm},
    {"max_registers_per_thread", &TargetInfo::maxRegistersPerThread},
    {"max_threads_per_block", &TargetInfo::maxThreadsPerBlock},
    {"max_threads_per_sm", &TargetInfo::maxThreadsPerSm},
    {"max_blocks_per_sm", &TargetInfo::maxBlocksPerSm},
    {"shared_reserved_per_block", &TargetInfo::sharedReservedPerBlock},
};

const Field *findField(StringRef name) {
  const Field *field =
      llvm::find_if(kFields, [&](const Field &f) { return f.name == name; });
  return field == std::end(kFields) ? nullptr : field;
}

std::string listFields() {
  std::string names = kChipField.str();
  for (const Field &field : kFields)
    names += ", " + field.name.str();
  return names;
}

/// Bounds that keep the arithmetic of every user of a TargetInfo in range.
constexpr int64_t kMaxFact = int64_t(1) << 40;

llvm::Error setInteger(int64_t &slot, const Field &field, Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  if (!integer || !integer.getType().isSignlessInteger(64))
    return llvm::createStringError("expected fact '" + field.name +
                                   "' of the target to be an i64");
  if (integer.getInt() < 1 || integer.getInt() > kMaxFact)
    return llvm::createStringError("expected fact '" + field.name +
                                   "' of the target to be in 1 to 2^40" +
                                   ", got " + Twine(integer.getInt()));
  slot = integer.getInt();
  return llvm::Error::success();
}

llvm::Error setReal(double &slot, const Field &field, Attribute value) {
  auto real = dyn_cast<FloatAttr>(value);
  if (!real || !real.getType().isF64())
    return llvm::createStringError("expected fact '" + field.name +
                                   "' of the target to be an f64");
  double number = real.getValueAsDouble();
  if (!(number > 0) || !(number < 1e12))
    return llvm::createStringError("expected fact '" + field.name +
                                   "' of the target to be positive and below "
                                   "1e12, got " +
                                   llvm::formatv("{0}", number).str());
  slot = number;
  return llvm::Error::success();
}

/// The generic row of the chip that `facts` states; none if it states none.
llvm::Expected<std::optional<TargetInfo>> getStatedChip(DictionaryAttr facts) {
  Attribute chip = facts ? facts.get(kChipField) : Attribute();
  if (!chip)
    return std::nullopt;
  auto name = dyn_cast<StringAttr>(chip);
  if (!name)
    return llvm::createStringError(
        "expected fact 'chip' of the target to be a string");
  llvm::Expected<TargetInfo> row = lookupTarget(name.getValue());
  if (!row)
    return row.takeError();
  if (row->name != row->chip)
    return llvm::createStringError("expected fact 'chip' of the target to name "
                                   "a chip, got the machine '" +
                                   name.getValue() + "', whose chip is '" +
                                   row->chip + "'");
  return std::optional(*row);
}
} // namespace

bool TargetInfo::hasProgrammaticLaunch() const {
  StringRef digits = chip;
  int64_t capability = 0;
  return digits.consume_front("sm_") &&
         !digits.consumeInteger(10, capability) && capability >= 90;
}

llvm::Expected<TargetInfo> mlir::attnfuse::getTargetInfo(TargetAttr target) {
  DictionaryAttr facts = target.getFacts();
  llvm::Expected<std::optional<TargetInfo>> chip = getStatedChip(facts);
  if (!chip)
    return chip.takeError();

  llvm::Expected<TargetInfo> row = lookupTarget(target.getName());
  if (!row && !*chip)
    return llvm::createStringError(
        llvm::toString(row.takeError()) +
        "; a machine of your own must state its 'chip'");
  if (!row) {
    llvm::consumeError(row.takeError());
    row = **chip;
    row->name = target.getName().str();
  } else if (*chip) {
    row->chip = (*chip)->chip;
    row->ptxVersion = std::max(row->ptxVersion, (*chip)->ptxVersion);
  }

  TargetInfo info = *row;
  if (!facts)
    return info;
  for (NamedAttribute fact : facts) {
    if (fact.getName() == kChipField)
      continue;
    const Field *field = findField(fact.getName());
    if (!field)
      return llvm::createStringError(
          "unknown fact '" + fact.getName().strref() +
          "' of the target; known are " + listFields());
    llvm::Error error =
        std::holds_alternative<int64_t TargetInfo::*>(field->member)
            ? setInteger(info.*std::get<0>(field->member), *field,
                         fact.getValue())
            : setReal(info.*std::get<1>(field->member), *field,
                      fact.getValue());
    if (error)
      return std::move(error);
  }
  // Code generation does not survive a version that lacks the chip, and 9.0
  // is the newest that it writes.
  int64_t minimum = row->ptxVersion;
  if (info.ptxVersion < minimum || info.ptxVersion > 90)
    return llvm::createStringError(
        "expected fact 'ptx_version' of the target to be in " + Twine(minimum) +
        " to 90 for " + info.chip + ", got " + Twine(info.ptxVersion));
  return info;
}

TargetAttr mlir::attnfuse::getTargetAttr(MLIRContext *context,
                                         const TargetInfo &info) {
  Builder builder(context);
  TargetInfo row;
  llvm::Expected<TargetInfo> known = lookupTarget(info.name);
  if (known)
    row = *known;
  else
    llvm::consumeError(known.takeError());

  SmallVector<NamedAttribute> facts;
  if (info.chip != row.chip)
    facts.push_back(
        builder.getNamedAttr(kChipField, builder.getStringAttr(info.chip)));
  for (const Field &field : kFields) {
    if (const auto *member = std::get_if<0>(&field.member)) {
      if (info.**member != row.**member)
        facts.push_back(builder.getNamedAttr(
            field.name, builder.getI64IntegerAttr(info.**member)));
    } else if (double TargetInfo::*real = std::get<1>(field.member);
               info.*real != row.*real) {
      facts.push_back(builder.getNamedAttr(
          field.name, builder.getF64FloatAttr(info.*real)));
    }
  }
  return TargetAttr::get(context, info.name,
                         facts.empty() ? DictionaryAttr()
                                       : builder.getDictionaryAttr(facts));
}

llvm::Expected<TargetInfo> mlir::attnfuse::getTargetOf(Operation *op) {
  for (Operation *scope = op; scope; scope = scope->getParentOp())
    if (auto target = scope->getAttrOfType<TargetAttr>(kTargetAttrName))
      return getTargetInfo(target);
  return llvm::createStringError(
      "no machine is given; use --chip, or put 'attnfuse.target = "
      "#attnfuse.target<\"sm_80\">' on the module");
}
