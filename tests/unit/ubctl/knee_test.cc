#include "client/ubctl/tune/knee.h"

#include <gtest/gtest.h>

namespace ub::ctl {
namespace {

// Throughput rises with the setting up to `top` at `knee`, and latency rises for ever.
std::vector<CurvePoint> Saturating(uint64_t knee) {
  std::vector<CurvePoint> curve;
  for (uint64_t depth = 1; depth <= kDeepestQueue; depth *= 2) {
    double share = std::min(1.0, static_cast<double>(depth) / static_cast<double>(knee));
    curve.push_back({.setting = depth, .bytes_per_s = 1e9 * share, .p50_ns = depth * 1000});
  }
  return curve;
}

TEST(Knee, IsTheSmallestSettingNearTheTop) {
  EXPECT_EQ(Knee(Saturating(16)), 16U);
  EXPECT_EQ(Knee({}), std::nullopt);
  EXPECT_EQ(Knee({{1, 96, 0}, {2, 100, 0}}), 1U) << "within noise of the top";
  EXPECT_EQ(Knee({{1, 94, 0}, {2, 100, 0}}), 2U);
  EXPECT_EQ(Knee({{1, 0, 0}}), std::nullopt) << "nothing measured is no knee";
}

TEST(Depth, DefaultStaysWhereDeeperGainsNothing) {
  Advice advice = AdviseDepth(Saturating(16), kDefaultDepth);
  EXPECT_EQ(advice.recommended, kDefaultDepth);
  EXPECT_TRUE(advice.nothing_gained);
  EXPECT_NE(advice.text.find("16 in flight reach"), std::string::npos) << advice.text;
  EXPECT_NE(advice.text.find("16 us at 16"), std::string::npos) << advice.text;
}

TEST(Depth, DeeperIsAdvisedOnlyWhereItPays) {
  Advice pays = AdviseDepth(Saturating(512), kDefaultDepth);
  EXPECT_EQ(pays.recommended, 512U);
  EXPECT_FALSE(pays.nothing_gained);
  EXPECT_DOUBLE_EQ(*pays.gain_over_default, 3.0);
  std::vector<CurvePoint> slightly = {{64, 80, 1}, {128, 80, 2}, {256, 100, 4}};
  Advice little = AdviseDepth(slightly, kDefaultDepth);
  EXPECT_EQ(little.recommended, kDefaultDepth) << little.text;
  EXPECT_TRUE(little.nothing_gained);
}

TEST(Depth, NothingMeasuredChangesNothing) {
  EXPECT_EQ(AdviseDepth({}, kDefaultDepth).recommended, kDefaultDepth);
  EXPECT_TRUE(AdviseChunk({}, 4096).nothing_gained);
}

TEST(Chunk, AnotherSizeIsAdvisedOnlyWhereItPays) {
  Advice larger = AdviseChunk({{4096, 10, 0}, {262144, 50, 0}, {1048576, 100, 0}, {4194304, 101, 0}}, 262144);
  EXPECT_EQ(larger.recommended, 1048576U);
  EXPECT_FALSE(larger.nothing_gained);
  Advice same = AdviseChunk({{4096, 10, 0}, {262144, 95, 0}, {1048576, 101, 0}}, 262144);
  EXPECT_EQ(same.recommended, 262144U);
  EXPECT_TRUE(same.nothing_gained);
  EXPECT_FALSE(AdviseChunk({{4096, 10, 0}, {65536, 20, 0}}, 262144).gain_over_default.has_value())
      << "the default was not on the curve";
}

TEST(Start, FormulaIsBoundedAndNeverOverflows) {
  EXPECT_EQ(StartingDepth(4, 8, 2), 32U);
  EXPECT_EQ(StartingDepth(1, 1, 64), 1U);
  EXPECT_EQ(StartingDepth(1, 8, 0), 16U) << "no channel is known: as one";
  EXPECT_EQ(StartingDepth(UINT64_MAX, UINT64_MAX, 1), kDeepestQueue);
}

TEST(Start, StepsHoldTheStartInItsPlace) {
  EXPECT_EQ(DepthSteps(8, 6), (std::vector<uint64_t>{1, 2, 4, 6, 8}));
  EXPECT_EQ(DepthSteps(8, 4), (std::vector<uint64_t>{1, 2, 4, 8}));
  EXPECT_EQ(DepthSteps(8, 9), (std::vector<uint64_t>{1, 2, 4, 8}));
}

}  // namespace
}  // namespace ub::ctl
