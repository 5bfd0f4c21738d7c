#include "client/ubctl/bench/samples.h"

#include <gtest/gtest.h>

#include "client/ubctl/json.h"

namespace ub::ctl {
namespace {

TEST(Samples, PercentilesAreNearestRank) {
  Samples samples;
  for (uint64_t i = 100; i >= 1; --i) samples.Add(i);
  EXPECT_EQ(samples.Percentile(50), 50U);
  EXPECT_EQ(samples.Percentile(99), 99U);
  Samples one;
  one.Add(7);
  EXPECT_EQ(one.Percentile(99), 7U);
}

TEST(Samples, FigureThatWasNotMeasuredIsNullNotZero) {
  EXPECT_EQ(Samples().Percentile(50), std::nullopt);
  std::string json = MessageToJson(NoFigure("lease_cold", "no memory"));
  EXPECT_NE(json.find("\"p50_ns\": null"), std::string::npos);
  EXPECT_NE(json.find("\"value\": null"), std::string::npos);
  EXPECT_NE(json.find("not measured: no memory"), std::string::npos);
  Ratio ratio = AtMost(P50Ratio("a/b", NoFigure("a", "x"), NoFigure("b", "x")), 3);
  EXPECT_FALSE(ratio.has_value());
  EXPECT_FALSE(ratio.has_met());
}

TEST(Samples, RatioSaysWhetherItIsMet) {
  Samples fast;
  fast.Add(10);
  Samples slow;
  slow.Add(30);
  Ratio ratio = P50Ratio("slow/fast", TimeFigure("slow", slow), TimeFigure("fast", fast));
  EXPECT_DOUBLE_EQ(ratio.value(), 3.0);
  EXPECT_TRUE(AtMost(ratio, 3).met());
  EXPECT_FALSE(AtLeast(ratio, 3.1).met());
}

}  // namespace
}  // namespace ub::ctl
