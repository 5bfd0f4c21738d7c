// A client that misuses what it was given harms nobody: the next tenant, of another uid, finds zeros and keeps what it
// writes, whatever the first one still holds; and the daemon serves on.
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/crash/crash_fixture.h"

namespace ubd::testing {
namespace {

class Hostile : public CrashTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can run clients of two other uids";
  }
};

TEST_P(Hostile, NextTenantIsCleanAndStaysSo) {
  // What it hoards is charged to it: a quota keeps it within the reserve.
  ASSERT_NO_FATAL_FAILURE(
      StartDaemon(/*reserve=*/16, /*open_to_all=*/true, "quota { uid { user: \"65534\" limit: \"16MiB\" } }\n"));
  auto hostile = Holder(GetParam(), 8 * kBlockBytes, kNobody);
  ASSERT_NE(hostile, nullptr);
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*hostile, "done"));
  auto victim = Holder("victim", kPoolBytes, kSomebody);
  ASSERT_NE(victim, nullptr);
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*victim, absl::StrCat("clean ", kBlocks)));
  ASSERT_TRUE(hostile->WriteLine("again"));
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*hostile, "again"));
  ASSERT_TRUE(victim->WriteLine("look"));
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*victim, absl::StrCat("clean ", kBlocks)));
  ASSERT_TRUE(victim->WriteLine("release"));
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*victim, "released"));
  hostile->Kill();
  absl::Status clean = watch_->WaitUntilAllFree(kBound);
  EXPECT_TRUE(clean.ok()) << clean;
  EXPECT_TRUE(daemon_->alive());
  EXPECT_EQ(watch_->broken_sums(), "");
  EXPECT_EQ(*daemon_->Stop(), 0);
}

TEST_P(Hostile, SameUidGetsOnlyItsOwnBytesBack) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/16, /*open_to_all=*/true));
  // Whoever comes first leaves nothing for the victim, whatever the hostile client does in between.
  auto before = Holder("victim", kPoolBytes, kSomebody);
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*before, absl::StrCat("clean ", kBlocks)));
  ASSERT_TRUE(before->WriteLine("release"));
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*before, "released"));
  auto hostile = Holder(GetParam(), 8 * kBlockBytes, kNobody);
  ASSERT_NO_FATAL_FAILURE(ExpectLine(*hostile, "done"));
  hostile->Kill();
  auto after = Holder("victim", kPoolBytes, kNobody);
  std::string line = Line(*after);
  // 0xaa and 0xbb are the uid's own; 0x5c is the other's.
  EXPECT_EQ(line.find("byte 92"), std::string::npos) << line;
  EXPECT_TRUE(line.starts_with("clean ") || line.ends_with("byte 170") || line.ends_with("byte 187")) << line;
  EXPECT_TRUE(daemon_->alive());
}

INSTANTIATE_TEST_SUITE_P(EachKind, Hostile,
                         ::testing::Values("punch", "fork-keep", "exec", "hide-fd", "clear-flags", "truncate", "deaf",
                                           "flood", "hang-up"),
                         ParamName);

}  // namespace
}  // namespace ubd::testing
