// A client killed at any point of a grant leaves nothing behind: no lease, every block free again, and its death
// counted.
#include <gtest/gtest.h>

#include "tests/crash/crash_fixture.h"

namespace ubd::testing {
namespace {

class KillSteps : public CrashTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(KillSteps, LeavesNoLeaseAndEveryBlockFree) {
  const std::string step = GetParam();
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/8, /*open_to_all=*/false));
  const int rounds = Rounds();
  for (int round = 0; round < rounds; ++round) {
    auto holder = Holder(step, 4 * kBlockBytes);
    ASSERT_NE(holder, nullptr);
    ASSERT_TRUE(Line(*holder).starts_with("session "));
    ASSERT_NO_FATAL_FAILURE(ExpectLine(*holder, "at " + step));
    holder->Kill();
    const uint64_t closed = static_cast<uint64_t>(round) + 1;
    absl::Status clean = watch_->WaitUntil(
        [&] { return watch_->Count(ub::v1::Event::SESSION_CLOSED) >= closed && watch_->AllFree(); }, kBound);
    ASSERT_TRUE(clean.ok()) << "round " << round << ": " << clean;
  }
  ub::v1::Status status = watch_->Status();
  const uint64_t kills = static_cast<uint64_t>(rounds);
  EXPECT_EQ(status.sessions(), 0u);
  EXPECT_EQ(status.leases(), 0u);
  EXPECT_EQ(status.waiters(), 0u);
  // Each grant ended once, and by a death, whether the daemon heard of it by the open call or by the lifeline.
  EXPECT_EQ(status.reclaimed_leases(), watch_->Count(ub::v1::Event::GRANTED));
  if (step != "request-sent") {
    EXPECT_EQ(watch_->Count(ub::v1::Event::GRANTED), kills);
  }
  if (step == "committed") {
    EXPECT_EQ(status.reclaimed_sessions(), kills);
  }
  EXPECT_EQ(watch_->broken_sums(), "");
  EXPECT_EQ(*daemon_->Stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachStep, KillSteps,
                         ::testing::Values("request-sent", "grant-written", "fds-sent", "mapped", "committed"),
                         ParamName);

}  // namespace
}  // namespace ubd::testing
