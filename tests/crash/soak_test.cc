// Clients that come, take, drop and are killed, over and over: the daemon's memory, descriptors, mappings and threads
// are at the end what they were after the first rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/crash/crash_fixture.h"

namespace ubd::testing {
namespace {

constexpr int kClients = 8;
// AddressSanitizer keeps up to 256 MiB of what was freed.
#if defined(__has_feature)
constexpr uint64_t kMostGrowth = uint64_t{__has_feature(address_sanitizer) ? 320 : 16} << 20;
#else
constexpr uint64_t kMostGrowth = uint64_t{16} << 20;
#endif

class Soak : public CrashTest {
 protected:
  // Half of the clients die in the middle of their work, the others when told to.
  void Round() {
    const uint64_t granted = watch_->Count(ub::v1::Event::GRANTED);
    std::vector<std::unique_ptr<Process>> holders;
    for (int i = 0; i < kClients; ++i) holders.push_back(Holder("loop", 2 * kBlockBytes));
    for (auto& holder : holders) ASSERT_NO_FATAL_FAILURE(ExpectLine(*holder, "looping"));
    absl::Status busy =
        watch_->WaitUntil([&] { return watch_->Count(ub::v1::Event::GRANTED) >= granted + 10 * kClients; }, kBound);
    for (size_t i = 0; i < holders.size(); ++i) holders[i]->Signal(i % 2 == 0 ? SIGKILL : SIGTERM);
    for (auto& holder : holders) ASSERT_TRUE(holder->Wait(kBound).ok());
    ASSERT_TRUE(busy.ok()) << busy;
    absl::Status clean = watch_->WaitUntilAllFree(kBound);
    ASSERT_TRUE(clean.ok()) << clean;
  }
};

TEST_F(Soak, NothingGrows) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/8, /*open_to_all=*/false));
  const int rounds = std::max(8, Rounds() / 4);
  ProcFacts before;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(Round()) << "round " << round;
    if (round == 3) before = daemon_->facts();
  }
  ProcFacts after = daemon_->facts();
  const absl::Time end = absl::Now() + kBound;
  // What the last round left is put away on the daemon's own threads. Each look is a round trip through it.
  while (after.fds > before.fds + 4 && absl::Now() < end) {
    watch_->Pools();
    after = daemon_->facts();
  }
  EXPECT_LE(after.fds, before.fds + 4);
  EXPECT_LE(after.maps, before.maps + 32);
  EXPECT_LE(after.threads, before.threads + 2);
  EXPECT_LE(after.rss_anon_bytes, before.rss_anon_bytes + kMostGrowth);
  EXPECT_EQ(watch_->broken_sums(), "");
  EXPECT_EQ(*daemon_->Stop(), 0);
}

}  // namespace
}  // namespace ubd::testing
