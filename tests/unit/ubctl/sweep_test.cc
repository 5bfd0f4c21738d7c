#include "client/ubctl/tune/sweep.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "client/ubctl/bench/segments.h"
#include "client/ubctl/bench/sides.h"
#include "client/ubctl/tune/channels.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

TunePoint Point(uint64_t setting, double direct, double staged) {
  TunePoint point;
  point.set_setting(setting);
  point.set_bytes_per_s(direct);
  if (staged > 0) point.set_staged_bytes_per_s(staged);
  return point;
}

TEST(DirectPaysFrom, IsWhereDirectStaysAhead) {
  EXPECT_EQ(DirectPaysFrom({Point(1, 10, 20), Point(2, 30, 20), Point(4, 40, 20)}), 2U);
  EXPECT_EQ(DirectPaysFrom({Point(1, 30, 20), Point(2, 10, 20), Point(4, 40, 20)}), 4U) << "one lead is no lead";
  EXPECT_EQ(DirectPaysFrom({Point(1, 10, 20), Point(2, 10, 20)}), std::nullopt);
  EXPECT_EQ(DirectPaysFrom({Point(1, 10, 0)}), std::nullopt) << "staged was not measured";
}

TEST(Channels, AreTheHardwareQueuesOfTheDiskUnderAPartition) {
  std::string pattern = "/tmp/ubctl-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  namespace fs = std::filesystem;
  for (const char* queue : {"0", "1", "2"}) fs::create_directories(pattern + "/disk/mq/" + queue);
  fs::create_directories(pattern + "/disk/part1");
  fs::create_directories(pattern + "/dev/block");
  fs::create_symlink(pattern + "/disk", pattern + "/dev/block/8:0");
  fs::create_symlink(pattern + "/disk/part1", pattern + "/dev/block/8:1");
  EXPECT_EQ(DeviceChannels(pattern, makedev(8, 0)), 3U);
  EXPECT_EQ(DeviceChannels(pattern, makedev(8, 1)), 3U);
  EXPECT_EQ(DeviceChannels(pattern, makedev(9, 9)), 1U) << "unknown";
  fs::remove_all(pattern);
}

TEST(AllDirect, StagedRunIsNoResultAndSaysWhy) {
  PathTally tally;
  Completion completion;
  completion.path = Path::kDirect;
  completion.bytes = Bytes(10);
  tally.Add(completion);
  EXPECT_TRUE(CheckAllDirect(tally).ok());
  completion.path = Path::kStaged;
  completion.reason = PathReason::kUnaligned;
  tally.Add(completion);
  absl::Status status = CheckAllDirect(tally);
  EXPECT_EQ(ReasonOf(status), Reason::kPathUnavailable);
  EXPECT_EQ(DetailOf(status, "path_reason"), "unaligned");
  EXPECT_FALSE(CheckAllDirect(PathTally()).ok()) << "nothing moved is not direct";
}

TEST(AllDirect, EveryReasonIsExplained) {
  for (uint8_t i = 1; i <= static_cast<uint8_t>(PathReason::kNoEngine); ++i) {
    std::string name = PathReasonName(static_cast<PathReason>(i));
    EXPECT_GT(ExplainReason(name).size(), name.size()) << name;
  }
  EXPECT_EQ(ExplainReason("of-another-release"), "of-another-release");
}

TEST(Segments, VerdictNamesWhatIsSlowAndMissingFiguresStayUnjudged) {
  Segment segment;
  JudgeAtLeast(segment, 0.9, "slow");
  EXPECT_EQ(segment.verdict(), "");
  segment.set_value(95);
  segment.set_expected(100);
  JudgeAtLeast(segment, 0.9, "slow");
  EXPECT_EQ(segment.verdict(), "as expected");
  segment.set_value(80);
  JudgeAtLeast(segment, 0.9, "slow");
  EXPECT_EQ(segment.verdict(), "slow");
  EXPECT_DOUBLE_EQ(segment.ratio(), 0.8);
  JudgeAtMost(segment, 0.9, "slow");
  EXPECT_EQ(segment.verdict(), "as expected");
}

}  // namespace
}  // namespace ub::ctl
