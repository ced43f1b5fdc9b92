//===- ArgumentRoles.cpp - What a function's arguments are ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/ArgumentRoles.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attnfuse;

Value mlir::attnfuse::skipCasts(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  return value;
}

namespace {
/// What a rotated tensor is used as, through further rotations and casts.
struct Side {
  bool query = false, key = false;
};

void findSides(Value value, Side &side) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto product = dyn_cast<ScaledDotProductOp>(user)) {
      side.query |= use.get() == product.getQuery();
      side.key |= use.get() == product.getKey();
    } else if (auto attention = dyn_cast<AttentionOp>(user)) {
      side.query |= use.get() == attention.getQuery();
      side.key |= use.get() == attention.getKey();
    } else if (isa<RopeOp, tensor::CastOp>(user) &&
               use.getOperandNumber() == 0) {
      findSides(user->getResult(0), side);
    }
  }
}

/// How the score region indexes its operand number `index`.
RoleKind classifyScoreOperand(AttentionOp op, unsigned index) {
  Block &block = op.getScore().front();
  unsigned number = AttentionOp::NumFixedScoreArgs + index;
  if (number >= block.getNumArguments())
    return RoleKind::ScoreOperand;
  auto isIndex = [&](Value value, AttentionOp::ScoreArg arg) {
    return value == block.getArgument(arg);
  };
  for (Operation *user : block.getArgument(number).getUsers()) {
    auto extract = dyn_cast<tensor::ExtractOp>(user);
    if (!extract)
      return RoleKind::ScoreOperand;
    OperandRange indices = extract.getIndices();
    // Slopes are [Hq] or [B, Hq]; a bias ends in the dimension of the keys.
    if (!indices.empty() && indices.size() <= 2 &&
        isIndex(indices.back(), AttentionOp::H))
      return RoleKind::Slopes;
    for (auto [position, value] : llvm::enumerate(llvm::reverse(indices))) {
      auto arg = AttentionOp::ScoreArg(AttentionOp::J - position);
      if (position >= 4 ||
          (!isIndex(value, arg) && !value.getDefiningOp<arith::ConstantOp>()))
        return RoleKind::ScoreOperand;
    }
    return RoleKind::Bias;
  }
  return RoleKind::ScoreOperand;
}

class RoleFinder {
public:
  explicit RoleFinder(func::FuncOp function)
      : roles(function.getNumArguments()),
        entry(function.empty() ? nullptr : &function.front()) {}

  std::vector<ArgumentRole> find() {
    if (entry)
      for (Operation &op : *entry)
        visit(&op);
    return std::move(roles);
  }

private:
  void assign(Value value, RoleKind kind, Side side = {}) {
    auto argument = value ? dyn_cast<BlockArgument>(skipCasts(value)) : nullptr;
    if (!argument || argument.getOwner() != entry)
      return;
    ArgumentRole &role = roles[argument.getArgNumber()];
    if (role.kind == RoleKind::Other)
      role.kind = kind;
    if (role.kind != kind)
      return;
    role.ofQuery |= side.query;
    role.ofKey |= side.key;
  }

  void assignRotation(Side side, Value cos, Value sin, Value offset,
                      Value positions) {
    assign(cos, RoleKind::Cos, side);
    assign(sin, RoleKind::Sin, side);
    assign(offset, RoleKind::Offset, side);
    assign(positions, RoleKind::Positions, side);
  }

  void visit(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](RopeOp op) {
          Side side;
          findSides(op.getResult(), side);
          assign(op.getInput(), side.query ? RoleKind::Query
                                : side.key ? RoleKind::Key
                                           : RoleKind::Input);
          assignRotation(side, op.getCos(), op.getSin(), op.getOffset(),
                         op.getPositions());
        })
        .Case([&](ScaledDotProductOp op) {
          assign(op.getQuery(), RoleKind::Query);
          assign(op.getKey(), RoleKind::Key);
        })
        .Case([&](BlockSparseOp op) {
          assign(op.getScores(), RoleKind::Scores);
          assign(op.getRowOffsets(), RoleKind::RowOffsets);
          assign(op.getColIndices(), RoleKind::ColIndices);
        })
        .Case([&](AlibiOp op) {
          assign(op.getScores(), RoleKind::Scores);
          assign(op.getSlopes(), RoleKind::Slopes);
        })
        .Case([&](AdditiveBiasOp op) {
          assign(op.getScores(), RoleKind::Scores);
          assign(op.getBias(), RoleKind::Bias);
        })
        .Case([&](WeightedSumOp op) {
          assign(op.getProbs(), RoleKind::Scores);
          assign(op.getValue(), RoleKind::Value);
        })
        .Case<FullOp, CausalOp, SlidingWindowOp, SoftmaxOp, ReluAttentionOp>(
            [&](auto op) { assign(op.getScores(), RoleKind::Scores); })
        .Case([&](AttentionOp op) { visitAttention(op); });
  }

  void visitAttention(AttentionOp op) {
    assign(op.getQuery(), RoleKind::Query);
    assign(op.getKey(), RoleKind::Key);
    assign(op.getValue(), RoleKind::Value);
    assignRotation({true, false}, op.getQCos(), op.getQSin(), op.getQOffset(),
                   op.getQPositions());
    assignRotation({false, true}, op.getKCos(), op.getKSin(), op.getKOffset(),
                   op.getKPositions());
    assign(op.getRowOffsets(), RoleKind::RowOffsets);
    assign(op.getColIndices(), RoleKind::ColIndices);
    if (op.getScore().empty())
      return;
    for (auto [index, operand] : llvm::enumerate(op.getScoreOperands()))
      assign(operand, classifyScoreOperand(op, index));
  }

  std::vector<ArgumentRole> roles;
  Block *entry;
};

StringRef getBaseName(RoleKind kind) {
  switch (kind) {
  case RoleKind::Query:
    return "q";
  case RoleKind::Key:
    return "k";
  case RoleKind::Value:
    return "v";
  case RoleKind::Input:
    return "x";
  case RoleKind::Cos:
    return "cos";
  case RoleKind::Sin:
    return "sin";
  case RoleKind::Offset:
    return "offset";
  case RoleKind::Positions:
    return "positions";
  case RoleKind::Slopes:
    return "slopes";
  case RoleKind::Bias:
    return "bias";
  case RoleKind::RowOffsets:
    return "row_offsets";
  case RoleKind::ColIndices:
    return "col_indices";
  case RoleKind::ScoreOperand:
    return "operand";
  case RoleKind::Scores:
    return "scores";
  case RoleKind::Output:
    return "output";
  case RoleKind::LogSumExp:
    return "lse";
  case RoleKind::Other:
    return "";
  }
  llvm_unreachable("unknown role");
}

bool belongsToRotation(RoleKind kind) {
  return kind == RoleKind::Cos || kind == RoleKind::Sin ||
         kind == RoleKind::Offset || kind == RoleKind::Positions;
}

/// Hands out unique names.
class NameTable {
public:
  void take(StringRef name) { taken.insert(name); }
  std::string claim(StringRef wanted) {
    std::string name = wanted.str();
    for (unsigned suffix = 1; !taken.insert(name).second; ++suffix)
      name = (wanted + "_" + Twine(suffix)).str();
    return name;
  }

private:
  llvm::StringSet<> taken;
};

/// Gives every role its name. Names given in the IR come first, so that a
/// default name never takes one of them away.
template <typename GetAttr>
void assignNames(std::vector<ArgumentRole> &roles, StringRef otherName,
                 GetAttr getNameAttr, NameTable names = {}) {
  for (auto [index, role] : llvm::enumerate(roles))
    if (auto attr = dyn_cast_or_null<StringAttr>(getNameAttr(index)))
      if (!attr.empty())
        role.name = names.claim(attr.getValue());

  // A side is named only where it is needed to tell two arguments apart.
  auto needsSide = [&](const ArgumentRole &role) {
    if (!belongsToRotation(role.kind) || role.ofQuery == role.ofKey)
      return false;
    return llvm::any_of(roles, [&](const ArgumentRole &other) {
      return other.kind == role.kind && other.ofQuery != role.ofQuery &&
             other.ofKey != role.ofKey;
    });
  };
  for (auto [index, role] : llvm::enumerate(roles)) {
    if (!role.name.empty())
      continue;
    StringRef base = getBaseName(role.kind);
    std::string name =
        base.empty() ? (otherName + Twine(index)).str() : base.str();
    if (needsSide(role))
      name = (role.ofQuery ? "q_" : "k_") + name;
    role.name = names.claim(name);
  }
}
} // namespace

std::string ArgumentRole::getRoleString() const {
  switch (kind) {
  case RoleKind::Query:
    return "query";
  case RoleKind::Key:
    return "key";
  case RoleKind::Value:
    return "value";
  case RoleKind::Input:
    return "input";
  case RoleKind::Other:
    return "other";
  default:
    break;
  }
  std::string base = getBaseName(kind).str();
  if (!belongsToRotation(kind) || ofQuery == ofKey)
    return base;
  return (ofQuery ? "q_" : "k_") + base;
}

std::vector<ArgumentRole>
mlir::attnfuse::getArgumentRoles(func::FuncOp function) {
  std::vector<ArgumentRole> roles = RoleFinder(function).find();
  assignNames(roles, "arg", [&](unsigned index) {
    return function.getArgAttr(index, kNameAttr);
  });
  return roles;
}

std::vector<ArgumentRole>
mlir::attnfuse::getResultRoles(func::FuncOp function) {
  std::vector<ArgumentRole> roles(function.getNumResults());
  auto returnOp =
      function.empty()
          ? nullptr
          : dyn_cast<func::ReturnOp>(function.front().getTerminator());
  if (returnOp)
    for (auto [role, operand] : llvm::zip(roles, returnOp.getOperands())) {
      Value value = skipCasts(operand);
      Operation *producer = value.getDefiningOp();
      auto attention = dyn_cast_or_null<AttentionOp>(producer);
      auto softmax = dyn_cast_or_null<SoftmaxOp>(producer);
      if (isa_and_nonnull<WeightedSumOp>(producer) ||
          (attention && value == attention.getOutput()))
        role.kind = RoleKind::Output;
      else if (attention || (softmax && value == softmax.getLse()))
        role.kind = RoleKind::LogSumExp;
    }
  // Manifests tell all tensors of a function apart by their names.
  NameTable names;
  for (const ArgumentRole &argument : getArgumentRoles(function))
    names.take(argument.name);
  assignNames(
      roles, "result",
      [&](unsigned index) { return function.getResultAttr(index, kNameAttr); },
      std::move(names));
  return roles;
}
