#include "client/ubctl/load/result.h"

#include <gtest/gtest.h>

namespace ub::ctl {
namespace {

Completion Moved(Path path, PathReason reason, uint64_t bytes, bool registered = true) {
  Completion completion;
  completion.path = path;
  completion.reason = reason;
  completion.bytes = Bytes(bytes);
  completion.registered = registered;
  return completion;
}

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(PathTally, SumsByPathAndReasonWithTheLargestFirst) {
  PathTally tally;
  EXPECT_EQ(tally.path(), "none");
  tally.Add(Moved(Path::kStaged, PathReason::kUnaligned, 10));
  EXPECT_EQ(tally.path(), "staged");
  tally.Add(Moved(Path::kDirect, PathReason::kNone, 100));
  tally.Add(Moved(Path::kStaged, PathReason::kBelowMinDirect, 5));
  tally.Add(Moved(Path::kDirect, PathReason::kNone, 100));
  ASSERT_EQ(tally.shares().size(), 3U);
  EXPECT_EQ(tally.shares()[0].bytes(), 200U);
  EXPECT_EQ(tally.shares()[0].transfers(), 2U);
  EXPECT_EQ(tally.bytes(Path::kStaged), 15U);
  EXPECT_EQ(tally.transfers(Path::kStaged), 2U);
  EXPECT_EQ(tally.path(), "direct and staged");
  EXPECT_EQ(tally.reason(), "unaligned");
  EXPECT_TRUE(tally.registered());
  tally.Add(Moved(Path::kDirect, PathReason::kNone, 1, /*registered=*/false));
  EXPECT_FALSE(tally.registered());
}

LoadResult Round(uint64_t bytes, uint64_t ns, uint64_t client, std::optional<uint64_t> daemon) {
  LoadResult round;
  round.bytes = bytes;
  round.transfers = 1;
  round.ns = ns;
  round.latency.Add(ns);
  round.cpu = {.client_ns = client, .daemon_ns = daemon};
  round.paths.Add(Moved(Path::kDirect, PathReason::kNone, bytes));
  return round;
}

TEST(SideSummary, RateIsTheMedianAndCpuIsOfAllRounds) {
  SideSummary sum;
  EXPECT_FALSE(sum.Side().has_bytes_per_s());
  sum.Add(Round(1000000000, 1000000000, 100000000, 50000000));
  sum.Add(Round(1000000000, 500000000, 100000000, 50000000));
  sum.Add(Round(1000000000, 4000000000, 100000000, 200000000));
  TransferSide side = sum.Side();
  EXPECT_DOUBLE_EQ(side.bytes_per_s(), 1e9);
  EXPECT_DOUBLE_EQ(side.slowest_bytes_per_s(), 0.25e9);
  EXPECT_DOUBLE_EQ(side.fastest_bytes_per_s(), 2e9);
  EXPECT_DOUBLE_EQ(side.cpu_s_per_gb(), 0.2);
  EXPECT_DOUBLE_EQ(side.client_cpu_s_per_gb(), 0.1);
  EXPECT_EQ(side.p50_ns(), 1000000000U);
  EXPECT_EQ(side.path(), "direct");
  EXPECT_TRUE(side.registered());
}

TEST(SideSummary, UnknownDaemonTimeIsNullNotClientTimeAlone) {
  SideSummary sum;
  sum.Add(Round(1000, 1000, 10, 10));
  sum.Add(Round(1000, 1000, 10, std::nullopt));
  TransferSide side = sum.Side("read and copy");
  EXPECT_FALSE(side.has_cpu_s_per_gb());
  EXPECT_FALSE(side.has_daemon_cpu_s_per_gb());
  EXPECT_TRUE(side.has_client_cpu_s_per_gb());
  EXPECT_EQ(side.path(), "read and copy");
}

}  // namespace
}  // namespace ub::ctl
