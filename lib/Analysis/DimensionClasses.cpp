//===- DimensionClasses.cpp - Which dimensions are the same ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Analysis/DimensionClasses.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Support/MakeError.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attnfuse;

//===----------------------------------------------------------------------===//
// Building the classes
//===----------------------------------------------------------------------===//

namespace {
int64_t getRank(Value value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : nullptr;
  return type ? type.getRank() : 0;
}

bool isStaticOne(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim) == 1;
}
} // namespace

namespace mlir::attnfuse {
class DimensionClassBuilder {
public:
  explicit DimensionClassBuilder(func::FuncOp function) {
    result.function = function;
    result.arguments = getArgumentRoles(function);
    result.results = getResultRoles(function);
  }

  llvm::Expected<DimensionClasses> build() {
    if (!result.function.getBody().hasOneBlock())
      return makeError("function '" + result.function.getName() +
                       "' needs a body of one block");
    Block &body = result.function.front();
    for (Value argument : body.getArguments())
      addNodes(argument);
    for (Operation &op : body)
      for (Value value : op.getResults())
        addNodes(value);
    for (Operation &op : body)
      tieDimensionsOf(&op);
    numberClasses();
    for (Operation &op : body)
      nameDimensionsOf(&op);
    nameTables(body);
    nameTheRest(body);
    if (llvm::Error error = checkStaticSizes(body))
      return std::move(error);
    return std::move(result);
  }

private:
  using Dim = std::pair<Value, unsigned>;

  //===--- Union-find over dimensions ------------------------------------===//

  void addNodes(Value value) {
    for (int64_t dim = 0, rank = getRank(value); dim < rank; ++dim) {
      nodeOf[{value, unsigned(dim)}] = nodes.size();
      nodes.push_back({value, unsigned(dim)});
      parent.push_back(parent.size());
    }
  }

  unsigned find(unsigned node) {
    while (parent[node] != node)
      node = parent[node] = parent[parent[node]];
    return node;
  }

  /// The smaller number stays the root, so that classes are in the order of
  /// their first appearance.
  void tie(Dim a, Dim b) {
    unsigned rootA = find(nodeOf.lookup(a)), rootB = find(nodeOf.lookup(b));
    parent[std::max(rootA, rootB)] = std::min(rootA, rootB);
  }

  void tieAll(Value a, Value b) {
    if (getRank(a) == getRank(b))
      for (int64_t dim = 0, rank = getRank(a); dim < rank; ++dim)
        tie({a, dim}, {b, dim});
  }

  /// Ties the last dimensions of `operand` to `targets` from the right.
  void tieTrailing(Value operand, ArrayRef<Dim> targets) {
    int64_t rank = getRank(operand);
    for (int64_t back = 1; back <= std::min<int64_t>(rank, targets.size());
         ++back)
      tie({operand, rank - back}, targets[targets.size() - back]);
  }

  /// The same, but a static 1 is broadcast and stays by itself.
  void tieBroadcast(Value operand, ArrayRef<Dim> targets) {
    int64_t rank = getRank(operand);
    for (int64_t back = 1; back <= std::min<int64_t>(rank, targets.size());
         ++back)
      if (!isStaticOne(operand, rank - back))
        tie({operand, rank - back}, targets[targets.size() - back]);
  }

  //===--- What each op demands -------------------------------------------===//

  void tieDimensionsOf(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](RopeOp op) {
          tieAll(op.getInput(), op.getResult());
          tieRotation(op.getInput(), op.getCos(), op.getSin(),
                      op.getPositions());
        })
        .Case([&](ScaledDotProductOp op) {
          Value q = op.getQuery(), k = op.getKey(), s = op.getScores();
          tieProduct(q, k);
          tie({q, 0}, {s, 0});
          tie({q, 1}, {s, 1});
          tie({q, 2}, {s, 2});
          tie({k, 2}, {s, 3});
        })
        .Case([&](BlockSparseOp op) {
          tieAll(op.getScores(), op.getResult());
          tieBlocks(op.getRowOffsets(), op.getScores(), op.getScores());
        })
        .Case([&](AlibiOp op) {
          tieAll(op.getScores(), op.getResult());
          if (op.getSlopes())
            tieTrailing(op.getSlopes(),
                        {{op.getScores(), 0}, {op.getScores(), 1}});
        })
        .Case([&](AdditiveBiasOp op) {
          Value s = op.getScores();
          tieAll(s, op.getResult());
          tieBroadcast(op.getBias(), {{s, 0}, {s, 1}, {s, 2}, {s, 3}});
        })
        .Case<FullOp, CausalOp, SlidingWindowOp>(
            [&](auto op) { tieAll(op.getScores(), op.getResult()); })
        .Case(
            [&](ReluAttentionOp op) { tieAll(op.getScores(), op.getProbs()); })
        .Case([&](SoftmaxOp op) {
          tieAll(op.getScores(), op.getProbs());
          if (op.getLse())
            tieLse(op.getLse(), op.getScores());
        })
        .Case([&](WeightedSumOp op) {
          Value p = op.getProbs(), v = op.getValue(), o = op.getOutput();
          tie({p, 0}, {v, 0});
          tie({p, 3}, {v, 2});
          tieOutput(o, p, v);
          result.groups.push_back(
              {nodeOf.lookup({p, 1}), nodeOf.lookup({v, 1})});
          tieHeadsOfKeyAndValue(op);
        })
        .Case([&](AttentionOp op) {
          Value q = op.getQuery(), k = op.getKey(), v = op.getValue();
          tieProduct(q, k);
          tie({k, 0}, {v, 0});
          tie({k, 1}, {v, 1});
          tie({k, 2}, {v, 2});
          tieOutput(op.getOutput(), q, v);
          if (op.getLse())
            tieLse(op.getLse(), q);
          tieRotation(q, op.getQCos(), op.getQSin(), op.getQPositions());
          tieRotation(k, op.getKCos(), op.getKSin(), op.getKPositions());
          if (op.getRowOffsets())
            tieBlocks(op.getRowOffsets(), q, q);
          tieScoreOperands(op);
        })
        .Case([&](tensor::CastOp op) { tieAll(op.getSource(), op.getDest()); })
        .Default([&](Operation *op) {
          if (op->hasTrait<OpTrait::Elementwise>())
            for (Value operand : op->getOperands())
              tieAll(operand, op->getResult(0));
        });
  }

  void tieProduct(Value q, Value k) {
    tie({q, 0}, {k, 0});
    tie({q, 3}, {k, 3});
    result.groups.push_back({nodeOf.lookup({q, 1}), nodeOf.lookup({k, 1})});
  }

  void tieOutput(Value o, Value rows, Value v) {
    tie({o, 0}, {rows, 0});
    tie({o, 1}, {rows, 1});
    tie({o, 2}, {rows, 2});
    tie({o, 3}, {v, 3});
  }

  void tieLse(Value lse, Value rows) {
    for (unsigned dim = 0; dim < 3; ++dim)
      tie({lse, dim}, {rows, dim});
  }

  void tieRotation(Value x, Value cos, Value sin, Value positions) {
    if (!cos)
      return;
    tieAll(cos, sin);
    if (positions)
      tieTrailing(positions, {{x, 0}, {x, 2}});
  }

  /// The batch entries and heads of a pattern per head.
  void tieBlocks(Value rowOffsets, Value batch, Value heads) {
    if (getRank(rowOffsets) != 3)
      return;
    if (!isStaticOne(rowOffsets, 0))
      tie({rowOffsets, 0}, {batch, 0});
    if (!isStaticOne(rowOffsets, 1))
      tie({rowOffsets, 1}, {heads, 1});
  }

  /// A score operand is as large as the indices that read it.
  void tieScoreOperands(AttentionOp op) {
    if (op.getScore().empty())
      return;
    Block &block = op.getScore().front();
    Dim sizeOf[] = {{op.getQuery(), 0},
                    {op.getQuery(), 1},
                    {op.getQuery(), 2},
                    {op.getKey(), 2}};
    for (auto [operand, argument] : llvm::zip(
             op.getScoreOperands(),
             block.getArguments().drop_front(AttentionOp::NumFixedScoreArgs)))
      for (Operation *user : argument.getUsers())
        if (auto extract = dyn_cast<tensor::ExtractOp>(user))
          for (auto [dim, index] : llvm::enumerate(extract.getIndices()))
            for (unsigned arg = AttentionOp::B; arg <= AttentionOp::J; ++arg)
              if (index == block.getArgument(arg))
                tie({operand, unsigned(dim)}, sizeOf[arg - AttentionOp::B]);
  }

  /// k and v of one attention have the same heads.
  void tieHeadsOfKeyAndValue(WeightedSumOp op) {
    Operation *producer = op.getProbs().getDefiningOp();
    while (producer && !isa<ScaledDotProductOp>(producer) &&
           producer->getNumOperands())
      producer = producer->getOperand(0).getDefiningOp();
    if (auto product = dyn_cast_or_null<ScaledDotProductOp>(producer))
      tie({op.getValue(), 1}, {product.getKey(), 1});
  }

  //===--- Numbers, names, sizes ------------------------------------------===//

  void numberClasses() {
    llvm::DenseMap<unsigned, unsigned> classOfRoot;
    auto getClassOfNode = [&](unsigned node) {
      auto [it, isNew] =
          classOfRoot.try_emplace(find(node), result.classes.size());
      if (isNew)
        result.classes.emplace_back();
      return it->second;
    };
    for (unsigned node = 0; node < nodes.size(); ++node)
      result.classOf[nodes[node]] = getClassOfNode(node);
    for (auto &[queryHeads, keyHeads] : result.groups) {
      queryHeads = getClassOfNode(queryHeads);
      keyHeads = getClassOfNode(keyHeads);
    }
  }

  void addName(unsigned dimClass, StringRef wanted) {
    DimensionClass &entry = result.classes[dimClass];
    if (llvm::is_contained(entry.names, wanted))
      return;
    std::string name = wanted.str();
    for (unsigned suffix = 1;
         !result.classByKey.try_emplace(name, dimClass).second; ++suffix) {
      if (result.classByKey.lookup(name) == dimClass)
        return;
      name = (wanted + "_" + Twine(suffix)).str();
    }
    entry.names.push_back(name);
  }

  void name(Value value, ArrayRef<StringRef> names) {
    for (auto [dim, name] : llvm::enumerate(names))
      if (!name.empty())
        addName(result.getClass(value, dim), name);
  }

  void nameBlocks(Value rowOffsets, Value colIndices, Value rows,
                  int64_t queryBlock) {
    name(colIndices, {"nnz"});
    unsigned last = getRank(rowOffsets) - 1;
    unsigned dimClass = result.getClass(rowOffsets, last);
    result.classes[dimClass].derived = {result.getClass(rows, 2),
                                        std::max<int64_t>(queryBlock, 1)};
    addName(dimClass, "R");
  }

  void nameDimensionsOf(Operation *op) {
    if (auto product = dyn_cast<ScaledDotProductOp>(op)) {
      name(product.getQuery(), {"B", "Hq", "Nq", "D"});
      name(product.getKey(), {"B", "Hkv", "Nkv"});
    } else if (auto sum = dyn_cast<WeightedSumOp>(op)) {
      name(sum.getProbs(), {"B", "Hq", "Nq", "Nkv"});
      name(sum.getValue(), {"B", "Hkv", "Nkv", "Dv"});
    } else if (auto blocks = dyn_cast<BlockSparseOp>(op)) {
      nameBlocks(blocks.getRowOffsets(), blocks.getColIndices(),
                 blocks.getScores(), blocks.getQueryBlock());
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      name(attention.getQuery(), {"B", "Hq", "Nq", "D"});
      name(attention.getKey(), {"B", "Hkv", "Nkv"});
      name(attention.getValue(), {"", "", "", "Dv"});
      if (attention.getRowOffsets() && attention.getBlocks())
        nameBlocks(attention.getRowOffsets(), attention.getColIndices(),
                   attention.getQuery(),
                   attention.getBlocksAttr().getQueryBlock());
    }
  }

  /// Scores and rotations that are not part of a whole attention.
  void nameLooseEnds(Operation *op) {
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type || type.getRank() != 4)
        continue;
      if (isa<RopeOp>(op) && operand == op->getOperand(0))
        nameIfUnnamed(operand, {"B", "H", "N", "D"});
      else if (operand == op->getOperand(0) &&
               isa<FullOp, CausalOp, SlidingWindowOp, BlockSparseOp, AlibiOp,
                   AdditiveBiasOp, SoftmaxOp, ReluAttentionOp>(op))
        nameIfUnnamed(operand, {"B", "Hq", "Nq", "Nkv"});
    }
  }

  void nameIfUnnamed(Value value, ArrayRef<StringRef> names) {
    for (auto [dim, name] : llvm::enumerate(names))
      if (result.classes[result.getClass(value, dim)].names.empty())
        addName(result.getClass(value, dim), name);
  }

  /// P if there is one length of tables, else P_q and P_k.
  void nameTables(Block &body) {
    SmallVector<std::pair<unsigned, StringRef>> tables;
    for (auto [role, argument] :
         llvm::zip(result.arguments, body.getArguments()))
      if (role.kind == RoleKind::Cos && getRank(argument) == 2)
        tables.push_back(
            {result.getClass(argument, 0), role.ofQuery == role.ofKey ? "P"
                                           : role.ofQuery             ? "P_q"
                                                                      : "P_k"});
    bool isOne = llvm::all_of(tables, [&](const auto &table) {
      return table.first == tables.front().first;
    });
    for (auto [dimClass, name] : tables)
      addName(dimClass, isOne ? "P" : name);
  }

  void nameTheRest(Block &body) {
    for (Operation &op : body)
      nameLooseEnds(&op);
    auto addKeys = [&](StringRef name, Value value) {
      for (int64_t dim = 0, rank = getRank(value); dim < rank; ++dim) {
        unsigned dimClass = result.getClass(value, dim);
        std::string key = (name + "." + Twine(dim)).str();
        if (result.classes[dimClass].names.empty())
          addName(dimClass, key);
        else
          result.classByKey.try_emplace(key, dimClass);
      }
    };
    for (auto [role, argument] :
         llvm::zip(result.arguments, body.getArguments()))
      addKeys(role.name, argument);
    if (auto returnOp = dyn_cast<func::ReturnOp>(body.getTerminator()))
      for (auto [role, value] :
           llvm::zip(result.results, returnOp.getOperands()))
        addKeys(role.name, value);
    for (auto [number, entry] : llvm::enumerate(result.classes))
      if (entry.names.empty())
        entry.names.push_back("dimension " + std::to_string(number));
  }

  llvm::Error checkStaticSizes(Block &body) {
    for (auto [node, dim] : llvm::enumerate(nodes)) {
      DimensionClass &entry = result.classes[result.classOf.lookup(dim)];
      int64_t size =
          cast<RankedTensorType>(dim.first.getType()).getDimSize(dim.second);
      if (ShapedType::isDynamic(size))
        entry.isDynamic = true;
      else if (!entry.staticSize)
        entry.staticSize = size;
      else if (*entry.staticSize != size)
        return makeError("function '" + result.function.getName() + "' has " +
                         entry.names.front() + " = " +
                         Twine(*entry.staticSize) + " in one place and " +
                         Twine(size) + " in another");
    }
    return llvm::Error::success();
  }

  DimensionClasses result;
  llvm::DenseMap<Dim, unsigned> nodeOf;
  SmallVector<Dim> nodes;
  SmallVector<unsigned> parent;
};
} // namespace mlir::attnfuse

llvm::Expected<DimensionClasses>
DimensionClasses::analyze(func::FuncOp function) {
  return DimensionClassBuilder(function).build();
}

unsigned DimensionClasses::getClass(Value value, unsigned dim) const {
  return classOf.lookup({value, dim});
}

std::optional<unsigned> DimensionClasses::lookup(StringRef key) const {
  auto it = classByKey.find(key);
  if (it == classByKey.end())
    return std::nullopt;
  return it->second;
}

SmallVector<unsigned> DimensionClasses::lookupAlias(StringRef key) const {
  SmallVector<unsigned> found;
  SmallVector<StringRef, 2> names;
  if (key == "H")
    names = {"Hq", "Hkv"};
  else if (key == "N")
    names = {"Nq", "Nkv"};
  for (StringRef name : names)
    if (std::optional<unsigned> dimClass = lookup(name))
      if (!llvm::is_contained(found, *dimClass))
        found.push_back(*dimClass);
  return found;
}
