//===- ScheduleSpaceTest.cpp - The schedules that a kernel may have -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/KernelGen/ScheduleSpace.h"
#include "attnfuse/Dialect/AttnFuse/Transforms/Schedule.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
constexpr size_t kLimit = 400;

TargetInfo getTarget(llvm::StringRef name) {
  return llvm::cantFail(lookupTarget(name));
}

ScheduleSpace makeSpace(const ScheduleProblem &problem,
                        llvm::StringRef target) {
  return llvm::cantFail(
      ScheduleSpace::create(problem, getTarget(target), true));
}

/// Problems of every kind that the choice tells apart.
std::vector<std::pair<std::string, ScheduleProblem>> getProblems() {
  std::vector<std::pair<std::string, ScheduleProblem>> problems;
  auto add = [&](const std::string &name, int64_t headDim,
                 int64_t valueHeadDim) -> ScheduleProblem & {
    problems.emplace_back(name, ScheduleProblem(headDim, valueHeadDim));
    return problems.back().second;
  };
  for (int64_t headDim : {8, 64, 96, 128, 192, 256})
    add("dense " + std::to_string(headDim), headDim, headDim);
  add("long keys", 192, 128);
  add("causal", 128, 128).hasBand = true;
  ScheduleProblem &window = add("window", 64, 64);
  window.hasBand = true;
  window.windowWidth = 256;
  add("few queries", 64, 64).numQueries = 20;
  ScheduleProblem &blocks = add("blocks", 64, 64);
  blocks.queryBlock = 192;
  blocks.keyBlock = 96;
  ScheduleProblem &small = add("small blocks", 64, 64);
  small.queryBlock = small.keyBlock = 48;
  add("rotated keys", 128, 128).rotatesKeys = true;
  add("grouped heads", 128, 128).packableHeads = 4;
  ScheduleProblem &bias = add("bias", 64, 64);
  bias.numScoreOperands = 1;
  bias.staging.perQueryAndKey = 1;
  ScheduleProblem &gather = add("gather", 64, 64);
  gather.numScoreOperands = 1;
  gather.readsElements = true;
  add("constant", 64, 64).allowsTensorMaps = false;
  return problems;
}

/// Whether the two differ in one field of the attribute, or in two that go
/// together (tile_m and warps, row_order and product_wait).
bool differInOneKnob(const KernelTile &a, const KernelTile &b) {
  if (bool(a.pipeline) != bool(b.pipeline))
    return false;
  int count = (a.tileM != b.tileM || a.warps != b.warps) +
              (a.tileN != b.tileN) + (a.qInRegisters != b.qInRegisters) +
              (a.stages != b.stages);
  // Another tile may hold another number of heads.
  if (a.tileM == b.tileM)
    count += a.packedHeads != b.packedHeads;
  if (a.pipeline) {
    const KernelPipeline &p = *a.pipeline, &q = *b.pipeline;
    count += (p.stages != q.stages) + (p.pingPong != q.pingPong) +
             (p.rowOrder != q.rowOrder || p.productWait != q.productWait) +
             (p.partialSums != q.partialSums) +
             (p.partialMaxima != q.partialMaxima) +
             (p.skipRescale != q.skipRescale);
  }
  return count == 1;
}

bool areSame(const KernelTile &a, const KernelTile &b, MLIRContext &context) {
  return getScheduleAttr(&context, a) == getScheduleAttr(&context, b);
}
} // namespace

TEST(ScheduleSpace, EveryScheduleIsLegalAndNoneComesTwice) {
  MLIRContext context;
  context.loadDialect<AttnFuseDialect>();
  for (const TargetInfo &target : getKnownTargets())
    for (const auto &[name, problem] : getProblems()) {
      SCOPED_TRACE(target.name + ", " + name);
      ScheduleSpace space =
          llvm::cantFail(ScheduleSpace::create(problem, target, true));
      std::vector<KernelTile> schedules = space.enumerate(kLimit);
      EXPECT_LE(schedules.size(), kLimit);
      std::set<const void *> attributes;
      std::set<ScheduleKey> keys;
      for (const KernelTile &tile : schedules) {
        llvm::Error error = checkTile(problem, tile, target);
        EXPECT_FALSE(error) << llvm::toString(std::move(error));
        EXPECT_TRUE(space.isLegal(tile));
        EXPECT_TRUE(keys.insert(space.getKey(tile)).second);
        // The attribute's own rules, which its builder only asserts.
        PipelineAttr pipeline;
        auto emitError = [&] {
          return mlir::emitError(UnknownLoc::get(&context));
        };
        if (const std::optional<KernelPipeline> &p = tile.pipeline) {
          ASSERT_TRUE(succeeded(PipelineAttr::verify(
              emitError, p->stages, p->pingPong, p->rowOrder, p->partialSums,
              p->partialMaxima, p->skipRescale, p->productWait)));
          pipeline = getScheduleAttr(&context, tile).getPipeline();
        }
        ASSERT_TRUE(succeeded(ScheduleAttr::verify(
            emitError, tile.tileM, tile.tileN, tile.warps, tile.qInRegisters,
            tile.keySplits, tile.packedHeads, tile.stages, pipeline)));
        EXPECT_TRUE(
            attributes
                .insert(getScheduleAttr(&context, tile).getAsOpaquePointer())
                .second);
      }
    }
}

TEST(ScheduleSpace, TheModelsChoiceComesFirst) {
  MLIRContext context;
  context.loadDialect<AttnFuseDialect>();
  for (const TargetInfo &target : getKnownTargets())
    for (const auto &[name, problem] : getProblems()) {
      SCOPED_TRACE(target.name + ", " + name);
      ScheduleSpace space =
          llvm::cantFail(ScheduleSpace::create(problem, target, true));
      KernelTile choice = llvm::cantFail(chooseTile(problem, target));
      EXPECT_TRUE(areSame(space.getChoice(), choice, context));
      EXPECT_TRUE(areSame(space.enumerate(1).front(), choice, context));
      // Kernels of the other kind are tried where there are any.
      bool hasPlain = false;
      for (const KernelTile &tile : space.getStarts())
        hasPlain |= !tile.pipeline;
      EXPECT_TRUE(hasPlain);
    }
}

TEST(ScheduleSpace, TheOrderIsTheSameInEachRun) {
  for (const auto &[name, problem] : getProblems()) {
    SCOPED_TRACE(name);
    ScheduleSpace space = makeSpace(problem, "sm_90a"),
                  again = makeSpace(problem, "sm_90a");
    auto getKeys = [](const ScheduleSpace &space, size_t limit) {
      std::vector<ScheduleKey> keys;
      for (const KernelTile &tile : space.enumerate(limit))
        keys.push_back(space.getKey(tile));
      return keys;
    };
    std::vector<ScheduleKey> keys = getKeys(space, 100);
    EXPECT_EQ(keys, getKeys(again, 100));
    // A smaller limit cuts off the end.
    keys.resize(std::min<size_t>(keys.size(), 30));
    EXPECT_EQ(keys, getKeys(space, 30));
  }
}

TEST(ScheduleSpace, NeighborsDifferInOneKnob) {
  for (const auto &[name, problem] : getProblems()) {
    SCOPED_TRACE(name);
    ScheduleSpace space = makeSpace(problem, "sm_90a");
    for (const KernelTile &tile : space.enumerate(50))
      for (const KernelTile &neighbor : space.getNeighbors(tile)) {
        KernelTile unshrunk = neighbor;
        unshrunk.tileN = tile.tileN;
        EXPECT_TRUE(differInOneKnob(tile, neighbor) ||
                    (neighbor.tileN < tile.tileN && !space.isLegal(unshrunk) &&
                     differInOneKnob(tile, unshrunk)));
      }
  }
}

TEST(ScheduleSpace, EveryKnobIsTurned) {
  ScheduleProblem problem(64, 64);
  problem.packableHeads = 3;
  ScheduleSpace space = makeSpace(problem, "sm_90a");
  const KernelTile &choice = space.getChoice();
  ASSERT_TRUE(choice.pipeline);
  size_t numKnobs = 13;
  ASSERT_EQ(space.getKey(choice).size(), numKnobs);
  std::set<size_t> turned;
  for (const KernelTile &neighbor : space.getNeighbors(choice))
    for (size_t knob = 0; knob < numKnobs; ++knob)
      if (space.getKey(neighbor)[knob] != space.getKey(choice)[knob])
        turned.insert(knob);
  // How blocks share keys stays.
  EXPECT_EQ(turned.size(), numKnobs - 1);
  EXPECT_FALSE(turned.count(4));
  // What the tables of docs/performance.md compare with each other.
  std::set<ScheduleKey> keys;
  for (const KernelTile &tile : space.enumerate(kLimit))
    keys.insert(space.getKey(tile));
  KernelTile two{128, 128, 8, true,
                 KernelPipeline{2, false, RowOrder::Rows, 2, 1, true,
                                ProductWait::BetweenRows}};
  EXPECT_TRUE(keys.count(space.getKey(two)));
}

TEST(ScheduleSpace, EveryKnobIsTurnedWithoutAPipeline) {
  ScheduleSpace space = makeSpace(ScheduleProblem(64, 64), "sm_80");
  const KernelTile &choice = space.getChoice();
  size_t numKnobs = 7;
  ASSERT_EQ(space.getKey(choice).size(), numKnobs);
  std::set<size_t> turned;
  std::set<int64_t> stages;
  for (const KernelTile &neighbor : space.getNeighbors(choice)) {
    for (size_t knob = 0; knob < numKnobs; ++knob)
      if (space.getKey(neighbor)[knob] != space.getKey(choice)[knob])
        turned.insert(knob);
    stages.insert(neighbor.stages);
  }
  // How blocks share keys stays, and heads are not packed.
  EXPECT_EQ(turned, (std::set<size_t>{0, 1, 2, 3, 6}));
  EXPECT_EQ(stages, (std::set<int64_t>{1, 2, 3}));
}

TEST(ScheduleSpace, WhatGivesTheSameKernelIsOneSchedule) {
  ScheduleProblem problem(64, 64);
  ScheduleSpace softmax = makeSpace(problem, "sm_90a");
  ScheduleSpace relu = llvm::cantFail(
      ScheduleSpace::create(problem, getTarget("sm_90a"), false));
  KernelTile tile =
      llvm::cantFail(chooseUnpipelinedTile(problem, getTarget("sm_90a")));
  tile = {64, 64, 4, false, KernelPipeline()};
  KernelTile turns = tile, skips = tile;
  turns.pipeline->pingPong = !tile.pipeline->pingPong;
  skips.pipeline->skipRescale = !tile.pipeline->skipRescale;
  // One warpgroup takes no turns with another; ReLU never rescales by a step.
  EXPECT_EQ(softmax.getKey(tile), softmax.getKey(turns));
  EXPECT_NE(softmax.getKey(tile), softmax.getKey(skips));
  EXPECT_EQ(relu.getKey(tile), relu.getKey(skips));
  for (KernelTile *two : {&tile, &turns}) {
    two->tileM = 128;
    two->warps = 8;
  }
  EXPECT_NE(softmax.getKey(tile), softmax.getKey(turns));
}

TEST(ScheduleSpace, ChangesCombine) {
  ScheduleSpace space = makeSpace(ScheduleProblem(64, 64), "sm_90a");
  KernelTile base{128, 128, 8, false,
                  KernelPipeline{2, true, RowOrder::Rows, 1, 1, true,
                                 ProductWait::WithNextKey}};
  KernelTile a = base, b = base;
  a.pipeline->partialSums = 2;
  a.pipeline->rowOrder = RowOrder::Joint;
  a.pipeline->productWait = ProductWait::End;
  b.qInRegisters = true;
  b.pipeline->partialSums = 4;
  b.pipeline->productWait = ProductWait::BetweenRows;
  b.pipeline->pingPong = false;
  std::optional<KernelTile> both = space.combine(base, a, b);
  ASSERT_TRUE(both);
  KernelTile expected = a;
  expected.qInRegisters = true;
  expected.pipeline->pingPong = false;
  EXPECT_EQ(space.getKey(*both), space.getKey(expected));

  // Three warpgroups with q in registers have fewer keys a step.
  a = b = base;
  a.tileM = 192;
  a.warps = 12;
  b.qInRegisters = true;
  both = space.combine(base, a, b);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->tileM, 192);
  EXPECT_EQ(both->warps, 12);
  EXPECT_TRUE(both->qInRegisters);
  EXPECT_LT(both->tileN, 128);
  EXPECT_TRUE(space.isLegal(*both));
  // Kernels of two kinds have nothing to share.
  EXPECT_FALSE(space.combine(base, a, {64, 64, 4, false, std::nullopt}));
  ScheduleProblem grouped(64, 64);
  grouped.packableHeads = 2;
  a = b = base;
  base.packedHeads = b.packedHeads = 2;
  b.tileN = 112;
  both = makeSpace(grouped, "sm_90a").combine(base, a, b);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->packedHeads, 1);
  EXPECT_EQ(both->tileN, 112);
}

TEST(ScheduleSpace, NoScheduleIsAnError) {
  TargetInfo target = getTarget("sm_80");
  target.maxSharedPerBlock = 4 * 1024;
  auto space = ScheduleSpace::create(ScheduleProblem(64, 64), target, true);
  ASSERT_FALSE(bool(space));
  EXPECT_NE(llvm::toString(space.takeError()).find("no tile fits on sm_80"),
            std::string::npos);
}
