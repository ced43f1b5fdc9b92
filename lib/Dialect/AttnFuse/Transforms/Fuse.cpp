//===- Fuse.cpp - Fuse a chain of building blocks into one op -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreRegionBuilder.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "attnfuse/Dialect/AttnFuse/IR/Normalizers.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Threading.h"

namespace mlir::attnfuse {
#define GEN_PASS_DEF_ATTNFUSEFUSEPASS
#define GEN_PASS_DEF_ATTNFUSEREPORTFUSIONPASS
#include "attnfuse/Dialect/AttnFuse/Transforms/Passes.h.inc"
} // namespace mlir::attnfuse

using namespace mlir;
using namespace mlir::attnfuse;

namespace {

/// The ops that become one attnfuse.attention. All but the rotations are in
/// one block, and each but the last is used by its successor alone.
struct Chain {
  WeightedSumOp sum;
  /// softmax or relu_attention.
  Operation *normalizer = nullptr;
  /// In the order of evaluation.
  SmallVector<Operation *> scoreOps;
  ScaledDotProductOp product;
  /// Null where there is no rotation, or none that can be fused.
  RopeOp qRope, kRope;
  /// Where the fused op is put: all its operands are defined before, and all
  /// uses of its results come after.
  Operation *insertionPoint = nullptr;

  /// The softmax's log-sum-exp, or null if it is absent or unused.
  Value getUsedLse() {
    auto softmax = dyn_cast<SoftmaxOp>(normalizer);
    Value lse = softmax ? softmax.getLse() : Value();
    return lse && !lse.use_empty() ? lse : Value();
  }
};

/// For optimization remarks, which can be filtered and written to a file.
remark::RemarkOpts getRemarkOptions(StringRef name, Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  return remark::RemarkOpts::name(name)
      .category("attnfuse-fuse")
      .function(function ? function.getName() : "");
}

void reportMiss(Operation *sum, const Twine &reason) {
  remark::missed(sum->getLoc(), getRemarkOptions("NotFused", sum))
      << reason.str();
}

class ChainMatcher {
public:
  ChainMatcher(WeightedSumOp sum, DominanceInfo &dominance)
      : dominance(dominance) {
    chain.sum = sum;
  }

  /// Follows the operands of the weighted sum up. On failure, a remark has
  /// been emitted at the op that is in the way.
  FailureOr<Chain> match() {
    if (failed(matchNormalizer()) || failed(matchScoreOps()) ||
        failed(matchElementTypes()) || failed(matchInsertionPoint()))
      return failure();
    chain.qRope = matchRope(chain.product.getQuery(), "q");
    chain.kRope = matchRope(chain.product.getKey(), "k");
    return std::move(chain);
  }

private:
  InFlightDiagnostic remarkAt(Operation *op, const Twine &reason) {
    reportMiss(chain.sum, reason);
    InFlightDiagnostic remark = op->emitRemark("not fused: ") << reason;
    if (op != chain.sum)
      remark.attachNote(chain.sum.getLoc()) << "the chain ends here";
    return remark;
  }

  /// The op that defines `value`, if it may be fused into `user`; else null,
  /// after a remark.
  Operation *getProducer(Value value, Operation *user, StringRef what) {
    Operation *producer = value.getDefiningOp();
    if (!producer) {
      remarkAt(user, what + " come from a block argument");
      return nullptr;
    }
    if (producer->getBlock() != chain.sum->getBlock()) {
      remarkAt(producer, "it is in another block than the end of its chain");
      return nullptr;
    }
    if (value.hasOneUse())
      return producer;
    InFlightDiagnostic remark =
        remarkAt(producer, what + " have more than one use");
    for (Operation *other : value.getUsers())
      if (other != user) {
        remark.attachNote(other->getLoc()) << "used here too";
        break;
      }
    return nullptr;
  }

  LogicalResult matchNormalizer() {
    chain.normalizer =
        getProducer(chain.sum.getProbs(), chain.sum, "the probabilities");
    if (!chain.normalizer)
      return failure();
    if (isa<SoftmaxOp, ReluAttentionOp>(chain.normalizer))
      return success();
    return remarkAt(chain.normalizer,
                    "expected softmax or relu_attention before weighted_sum, "
                    "got '" +
                        chain.normalizer->getName().getStringRef() + "'");
  }

  LogicalResult matchScoreOps() {
    Operation *user = chain.normalizer;
    Operation *blockSparse = nullptr;
    while (true) {
      Operation *producer =
          getProducer(user->getOperand(0), user, "the scores");
      if (!producer)
        return failure();
      if ((chain.product = dyn_cast<ScaledDotProductOp>(producer)))
        break;
      if (!isa<FullOp, CausalOp, SlidingWindowOp, BlockSparseOp, AlibiOp,
               AdditiveBiasOp>(producer))
        return remarkAt(producer, "expected a score op of attnfuse or "
                                  "scaled_dot_product, got '" +
                                      producer->getName().getStringRef() + "'");
      if (isa<BlockSparseOp>(producer)) {
        if (blockSparse) {
          InFlightDiagnostic remark = remarkAt(
              producer, "a chain may hold one block_sparse; merge the lists");
          remark.attachNote(blockSparse->getLoc()) << "the other one";
          return remark;
        }
        blockSparse = producer;
      }
      chain.scoreOps.push_back(producer);
      user = producer;
    }
    std::reverse(chain.scoreOps.begin(), chain.scoreOps.end());
    return success();
  }

  LogicalResult matchElementTypes() {
    Type q = chain.product.getQuery().getType().getElementType();
    Type k = chain.product.getKey().getType().getElementType();
    Type v = chain.sum.getValue().getType().getElementType();
    if (q == k && q == v)
      return success();
    std::string types;
    llvm::raw_string_ostream(types)
        << "'" << q << "', '" << k << "' and '" << v << "'";
    return remarkAt(chain.sum,
                    "expected q, k and v of one element type, got " + types);
  }

  LogicalResult matchInsertionPoint() {
    chain.insertionPoint = chain.sum;
    Value lse = chain.getUsedLse();
    if (!lse || llvm::all_of(lse.getUsers(), [&](Operation *user) {
          return dominance.properlyDominates(chain.sum.getOperation(), user);
        }))
      return success();
    // The log-sum-exp is used before the weighted sum: compute all of it
    // where the normaliser was, if v is already there.
    chain.insertionPoint = chain.normalizer;
    if (dominance.properlyDominates(chain.sum.getValue(), chain.normalizer))
      return success();
    return remarkAt(chain.normalizer,
                    "its log-sum-exp is used before v is defined");
  }

  /// The rotation of `value`, or null. A rotation that cannot be fused stays
  /// an op of its own in front of the fused one.
  RopeOp matchRope(Value value, StringRef name) {
    auto rope = value.getDefiningOp<RopeOp>();
    if (!rope)
      return {};
    if (rope->getBlock() != chain.sum->getBlock()) {
      remarkAt(rope, "the rotation of " + name +
                         " is in another block than the end of its chain");
      return {};
    }
    for (Operation *user : value.getUsers())
      if (user != chain.product) {
        InFlightDiagnostic remark =
            remarkAt(rope, "the rotated " + name + " has another use");
        remark.attachNote(user->getLoc()) << "used here too";
        return {};
      }
    if (auto inner = rope.getInput().getDefiningOp<RopeOp>())
      remarkAt(inner, name + " is rotated twice and only the last rotation "
                             "can be fused");
    return rope;
  }

  DominanceInfo &dominance;
  Chain chain;
};

Normalizer getNormalizer(Operation *op) {
  if (isa<SoftmaxOp>(op))
    return Normalizer::Softmax;
  return attnfuse::getNormalizer(cast<ReluAttentionOp>(op).getNorm());
}

/// What a rope contributes to the fused op; nothing where there is no rope.
struct Rotation {
  Value input, cos, sin, offset, positions;
  RotationAttr attr;

  Rotation(RopeOp rope, Value unrotated) : input(unrotated) {
    if (!rope)
      return;
    input = rope.getInput();
    cos = rope.getCos();
    sin = rope.getSin();
    offset = rope.getOffset();
    positions = rope.getPositions();
    attr = RotationAttr::get(rope.getContext(), rope.getPairing(),
                             rope.getStaticOffset());
  }
};

/// Creates the fused op, with the chain still in place.
AttentionOp buildFused(RewriterBase &rewriter, Chain &chain) {
  SmallVector<Location> locs{chain.sum.getLoc(), chain.normalizer->getLoc()};
  SmallVector<Attribute> bands;
  BlockSparseOp blockSparse;
  ScoreRegionBuilder score(rewriter.getContext(), chain.sum.getLoc());
  auto addBand = [&](Alignment align, std::optional<int64_t> left,
                     std::optional<int64_t> right) {
    bands.push_back(BandAttr::get(rewriter.getContext(), align, left, right));
  };
  for (Operation *op : chain.scoreOps) {
    locs.push_back(op->getLoc());
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](CausalOp op) { addBand(op.getAlign(), std::nullopt, 0); })
        .Case([&](SlidingWindowOp op) {
          if (op.getLeft() || op.getRight())
            addBand(op.getAlign(), op.getLeft(), op.getRight());
        })
        .Case([&](BlockSparseOp op) { blockSparse = op; })
        .Case<AlibiOp, AdditiveBiasOp>([&](auto op) { score.add(op); });
  }
  locs.push_back(chain.product.getLoc());

  Rotation q(chain.qRope, chain.product.getQuery());
  Rotation k(chain.kRope, chain.product.getKey());
  BlocksAttr blocks;
  if (blockSparse)
    blocks = BlocksAttr::get(rewriter.getContext(), blockSparse.getQueryBlock(),
                             blockSparse.getKeyBlock());
  Value lse = chain.getUsedLse();

  rewriter.setInsertionPoint(chain.insertionPoint);
  auto fused = AttentionOp::create(
      rewriter, rewriter.getFusedLoc(locs), chain.sum.getType(),
      lse ? lse.getType() : Type(), q.input, k.input, chain.sum.getValue(),
      q.cos, q.sin, q.offset, q.positions, k.cos, k.sin, k.offset, k.positions,
      blockSparse ? blockSparse.getRowOffsets() : Value(),
      blockSparse ? blockSparse.getColIndices() : Value(), score.getOperands(),
      rewriter.getF64FloatAttr(chain.product.getScaleOrDefault()), q.attr,
      k.attr, RotationPlanAttr(), rewriter.getArrayAttr(bands), blocks,
      NormalizerAttr::get(rewriter.getContext(),
                          getNormalizer(chain.normalizer)),
      ScheduleAttr());
  score.finish(fused.getScore());

  // Attributes of the user's: the last op of the chain that has one wins.
  auto keepAttributes = [&](Operation *op) {
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      fused->setDiscardableAttr(attribute.getName(), attribute.getValue());
  };
  for (RopeOp rope : {chain.qRope, chain.kRope})
    if (rope)
      keepAttributes(rope);
  keepAttributes(chain.product);
  llvm::for_each(chain.scoreOps, keepAttributes);
  keepAttributes(chain.normalizer);
  keepAttributes(chain.sum);
  return fused;
}

/// Why `op` is not valid, or nothing. Dimensions that are `?` between the ops
/// of a chain may hide a contradiction that shows only in the fused op.
std::optional<std::string> findError(Operation *op) {
  std::optional<std::string> error;
  uint64_t thread = llvm::get_threadid();
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diag) {
    if (llvm::get_threadid() != thread)
      return failure();
    if (!error)
      error = diag.str();
    return success();
  });
  if (succeeded(verify(op)))
    return std::nullopt;
  return error.value_or("the fused op is not valid");
}

void replaceChain(RewriterBase &rewriter, Chain &chain, AttentionOp fused) {
  if (Value lse = chain.getUsedLse())
    rewriter.replaceAllUsesWith(lse, fused.getLse());
  rewriter.replaceOp(chain.sum, fused.getOutput());
  rewriter.eraseOp(chain.normalizer);
  for (Operation *op : llvm::reverse(chain.scoreOps))
    rewriter.eraseOp(op);
  rewriter.eraseOp(chain.product);
  if (chain.qRope)
    rewriter.eraseOp(chain.qRope);
  if (chain.kRope && chain.kRope != chain.qRope)
    rewriter.eraseOp(chain.kRope);
}

/// What one kernel computes, in one line.
void reportHit(AttentionOp op) {
  std::string parts;
  llvm::raw_string_ostream os(parts);
  if (op.getQRotationAttr() || op.getKRotationAttr())
    os << "rotation of "
       << (op.getQRotationAttr() && op.getKRotationAttr() ? "q and k"
           : op.getQRotationAttr()                        ? "q"
                                                          : "k")
       << ", ";
  if (op.hasScoreChain())
    os << "score chain, ";
  if (!op.getBands().empty())
    os << op.getBands().size() << " bands, ";
  if (op.getBlocksAttr())
    os << "blocks, ";
  os << stringifyNormalizer(op.getNormalizer());
  remark::passed(op.getLoc(), getRemarkOptions("Fused", op))
      << "fused into one attention: " + parts;
}

struct FusePass : attnfuse::impl::AttnFuseFusePassBase<FusePass> {
  void runOnOperation() override {
    SmallVector<WeightedSumOp> sums;
    getOperation().walk([&](WeightedSumOp sum) { sums.push_back(sum); });
    IRRewriter rewriter(&getContext());
    for (WeightedSumOp sum : sums) {
      FailureOr<Chain> chain =
          ChainMatcher(sum, getAnalysis<DominanceInfo>()).match();
      if (failed(chain)) {
        ++numMissed;
        continue;
      }
      AttentionOp fused = buildFused(rewriter, *chain);
      if (std::optional<std::string> error = findError(fused)) {
        rewriter.eraseOp(fused);
        sum.emitRemark("not fused: ") << *error;
        reportMiss(sum, *error);
        ++numMissed;
        continue;
      }
      replaceChain(rewriter, *chain, fused);
      reportHit(fused);
      ++numFused;
    }
  }
};

struct ReportFusionPass
    : attnfuse::impl::AttnFuseReportFusionPassBase<ReportFusionPass> {
  void runOnOperation() override {
    unsigned hits = 0, misses = 0;
    getOperation().walk([&](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        reportHit(attention);
        ++hits;
      } else if (auto sum = dyn_cast<WeightedSumOp>(op)) {
        // The reason is a remark; without one the chain only waits for the
        // pass that fuses.
        if (succeeded(
                ChainMatcher(sum, getAnalysis<DominanceInfo>()).match())) {
          sum.emitRemark("not fused: attnfuse-fuse has not run");
          reportMiss(sum, "attnfuse-fuse has not run");
        }
        ++misses;
      }
    });
    if (hits + misses > 0)
      getOperation().emitRemark()
          << "'" << getOperation().getName() << "': " << hits << " of "
          << hits + misses << " attentions fused";
    numHits += hits;
    numMisses += misses;
    markAllAnalysesPreserved();
  }
};
} // namespace
