//===- TargetInfoTest.cpp - The table of machines and its attribute -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Target/TargetInfo.h"
#include "attnfuse/Dialect/AttnFuse/IR/AttnFuse.h"
#include "mlir/AsmParser/AsmParser.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
class TargetInfoTest : public ::testing::Test {
protected:
  TargetInfoTest() { context.loadDialect<AttnFuseDialect>(); }

  llvm::Expected<TargetInfo> get(StringRef text) {
    auto target = dyn_cast_or_null<TargetAttr>(parseAttribute(text, &context));
    if (!target)
      return llvm::createStringError("does not parse");
    return getTargetInfo(target);
  }

  std::string getError(StringRef text) {
    llvm::Expected<TargetInfo> info = get(text);
    return info ? "no error" : llvm::toString(info.takeError());
  }

  MLIRContext context;
};
} // namespace

TEST_F(TargetInfoTest, EveryRowIsCompleteAndUnique) {
  std::set<std::string> names;
  for (const TargetInfo &row : getKnownTargets()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(row.chip.compare(0, 3, "sm_"), 0);
    EXPECT_GE(row.ptxVersion, 80);
    EXPECT_GT(row.smCount, 0);
    EXPECT_GT(row.clockGhz, 0.5);
    EXPECT_LT(row.clockGhz, 3.0);
    EXPECT_GT(row.dramGbPerSecond, 100);
    EXPECT_LT(row.maxSharedPerBlock, row.maxSharedPerSm);
    EXPECT_GT(row.l2Bytes, row.maxSharedPerSm);
    EXPECT_GE(row.maxThreadsPerSm, row.maxThreadsPerBlock);
    // The chip of every machine is a row too.
    llvm::Expected<TargetInfo> chip = lookupTarget(row.chip);
    ASSERT_TRUE(bool(chip));
    EXPECT_EQ(chip->chip, row.chip);
    EXPECT_EQ(chip->maxSharedPerBlock, row.maxSharedPerBlock);
  }
}

TEST_F(TargetInfoTest, TensorPeaksMatchTheDataSheets) {
  auto getTeraflops = [](StringRef name) {
    TargetInfo info = llvm::cantFail(lookupTarget(name));
    return info.smCount * info.clockGhz * info.tensorFlopsPerClock / 1000;
  };
  EXPECT_NEAR(getTeraflops("a100"), 312, 1);
  EXPECT_NEAR(getTeraflops("rtx3090"), 71, 1);
  EXPECT_NEAR(getTeraflops("rtx4090"), 165, 1);
  EXPECT_NEAR(getTeraflops("l4"), 121, 1);
  EXPECT_NEAR(getTeraflops("l40s"), 362, 1);
  EXPECT_NEAR(getTeraflops("h100-sxm"), 989, 1);
  EXPECT_NEAR(getTeraflops("h100-pcie"), 756, 1);
  EXPECT_NEAR(getTeraflops("h100-nvl"), 835, 1);
  EXPECT_NEAR(getTeraflops("b200"), 2250, 3);
  EXPECT_NEAR(getTeraflops("rtx5090"), 209.5, 1);
}

TEST_F(TargetInfoTest, NamesAreFoundInAnyCase) {
  llvm::Expected<TargetInfo> info = lookupTarget("H200");
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->chip, "sm_90a");
}

TEST_F(TargetInfoTest, StatedFactsOverrideTheRow) {
  llvm::Expected<TargetInfo> info = get(
      "#attnfuse.target<\"h200\", {sm_count = 114 : i64, clock_ghz = 1.2}>");
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->smCount, 114);
  EXPECT_EQ(info->clockGhz, 1.2);
  EXPECT_EQ(info->l2Bytes, 60 * 1024 * 1024);
}

TEST_F(TargetInfoTest, AMachineOfTheUsersOwnStartsFromItsChip) {
  llvm::Expected<TargetInfo> info = get(
      "#attnfuse.target<\"mine\", {chip = \"sm_89\", sm_count = 24 : i64}>");
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->name, "mine");
  EXPECT_EQ(info->chip, "sm_89");
  EXPECT_EQ(info->smCount, 24);
  EXPECT_EQ(info->maxSharedPerBlock, 99 * 1024);
}

TEST_F(TargetInfoTest, AttributesRoundTrip) {
  for (StringRef text :
       {"#attnfuse.target<\"h200\">",
        "#attnfuse.target<\"l4\", {dram_gb_per_second = 2.500000e+02 : f64, "
        "sm_count = 12 : i64}>"}) {
    llvm::Expected<TargetInfo> info = get(text);
    ASSERT_TRUE(bool(info));
    EXPECT_EQ(Attribute(getTargetAttr(&context, *info)),
              parseAttribute(text, &context));
  }
  llvm::Expected<TargetInfo> mine = get(
      "#attnfuse.target<\"mine\", {chip = \"sm_89\", sm_count = 24 : i64}>");
  ASSERT_TRUE(bool(mine));
  llvm::Expected<TargetInfo> again =
      getTargetInfo(getTargetAttr(&context, *mine));
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(again->smCount, 24);
  EXPECT_EQ(again->maxThreadsPerSm, mine->maxThreadsPerSm);
}

TEST_F(TargetInfoTest, UnknownNamesListTheKnownOnes) {
  std::string error = getError("#attnfuse.target<\"sm_75\">");
  EXPECT_EQ(error.find("unknown chip or machine 'sm_75'; known are a100, "), 0u)
      << error;
  EXPECT_NE(error.find("sm_120"), std::string::npos) << error;
  EXPECT_NE(error.find("must state its 'chip'"), std::string::npos) << error;
}

TEST_F(TargetInfoTest, UnknownFactsListTheKnownOnes) {
  std::string error = getError("#attnfuse.target<\"h200\", {sms = 114 : i64}>");
  EXPECT_EQ(error.find("unknown fact 'sms' of the target; known are chip, "),
            0u)
      << error;
  EXPECT_NE(error.find("sm_count"), std::string::npos) << error;
}

TEST_F(TargetInfoTest, FactsOfTheWrongKindAreRefused) {
  EXPECT_EQ(getError("#attnfuse.target<\"h200\", {sm_count = 1.0}>"),
            "expected fact 'sm_count' of the target to be an i64");
  EXPECT_EQ(getError("#attnfuse.target<\"h200\", {clock_ghz = 2 : i64}>"),
            "expected fact 'clock_ghz' of the target to be an f64");
  EXPECT_EQ(getError("#attnfuse.target<\"h200\", {sm_count = 0 : i64}>"),
            "expected fact 'sm_count' of the target to be in 1 to 2^40, got 0");
  EXPECT_NE(getError("#attnfuse.target<\"h200\", {clock_ghz = -1.0}>")
                .find("to be positive"),
            std::string::npos);
  EXPECT_EQ(getError("#attnfuse.target<\"h200\", {chip = 90 : i64}>"),
            "expected fact 'chip' of the target to be a string");
  EXPECT_EQ(getError("#attnfuse.target<\"mine\", {chip = \"h200\"}>"),
            "expected fact 'chip' of the target to name a chip, got the "
            "machine 'h200', whose chip is 'sm_90a'");
}

TEST_F(TargetInfoTest, PtxVersionsThatTheChipLacksAreRefused) {
  EXPECT_EQ(getError("#attnfuse.target<\"sm_120\", {ptx_version = 86 : i64}>"),
            "expected fact 'ptx_version' of the target to be in 87 to 90 for "
            "sm_120, got 86");
  EXPECT_TRUE(
      bool(get("#attnfuse.target<\"sm_80\", {ptx_version = 83 : i64}>")));
}
