#include "client/ubctl/load/cpu_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "client/ubctl/monotonic.h"

namespace ub::ctl {
namespace {

TEST(ThreadStat, NamesMayHoldAnything) {
  std::string line =
      "12 (a) b (c) T 1 2 3 4 5 6 7 8 9 10 70 30 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 "
      "3 40";
  auto stat = ParseThreadStat(line);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'T');
  EXPECT_EQ(stat->ticks, 100U);
  EXPECT_EQ(stat->processor, 3);
  EXPECT_FALSE(ParseThreadStat("12 (ubd) R 1 2").has_value());
  EXPECT_FALSE(ParseThreadStat("").has_value());
}

TEST(ThreadStat, OwnOneIsUnderstood) {
  auto stat = ReadThreadStat("/proc/self/stat");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'R');
  EXPECT_GE(stat->processor, 0);
  EXPECT_LT(stat->processor, sysconf(_SC_NPROCESSORS_CONF));
}

TEST(CpuMeter, SpinningCostsAndAProcessThatIsNotUbdIsNotBelieved) {
  CpuMeter meter(getpid());
  EXPECT_NE(meter.why_not().find("is not ubd here"), std::string::npos);
  CpuTime before = meter.Now();
  for (uint64_t end = NowNs() + 20000000; NowNs() < end;) {
  }
  CpuTime spent = meter.Now() - before;
  EXPECT_GT(spent.client_ns, 1000000U);
  EXPECT_FALSE(spent.daemon_ns.has_value());
  EXPECT_FALSE(spent.total_ns().has_value()) << "half a sum is no sum";
}

TEST(CpuTime, UnknownStaysUnknownInASum) {
  CpuTime known = {.client_ns = 1, .daemon_ns = 2};
  EXPECT_EQ((known += CpuTime{.client_ns = 10, .daemon_ns = 20}).total_ns(), 33U);
  EXPECT_EQ((known += CpuTime{.client_ns = 1, .daemon_ns = std::nullopt}).total_ns(), std::nullopt);
}

TEST(BusiestThread, NobodyIsThereForAProcessThatIsNot) { EXPECT_EQ(BusiestThread(-1).Processor(), std::nullopt); }

}  // namespace
}  // namespace ub::ctl
