#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "absl/time/clock.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "tests/unit/session/delivery_rig.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;
using ub::wire::kMaxFdsPerFrame;

TEST(Throttle, ClientThatNeverReadsHoldsMoreThanItsCredits) {
  TestDaemon daemon;
  auto lazy = JoinSettled(daemon), busy = JoinSettled(daemon);
  ASSERT_TRUE(lazy.ok() && busy.ok());
  Flood flood;
  flood.Ask(daemon, lazy->id(), 400);
  EXPECT_TRUE(Eventually([&] { return flood.ok->load() == static_cast<int>(kMaxFdsPerFrame); }));
  for (int i = 0; i < 20; ++i) {
    auto grant = daemon.AcquireNow(busy->id(), 10);
    ASSERT_TRUE(grant.ok()) << "another session's grant: " << grant.status();
    EXPECT_EQ(ReadGrant(daemon, *busy, *grant), 1u);
  }
  const absl::Duration cpu = daemon.LoopCpu();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(daemon.LoopCpu() - cpu, absl::Milliseconds(50)) << "throttled, not spinning";
  EXPECT_EQ(daemon.Find(*lazy)->fds_in_flight(), kMaxFdsPerFrame);
  EXPECT_EQ(flood.ok->load(), static_cast<int>(kMaxFdsPerFrame)) << "and no more than that";
  size_t blocks = 0;
  while (blocks < 400) {
    auto frame = ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get());
    ASSERT_TRUE(frame.ok()) << frame.status() << " after " << blocks;
    blocks += frame->count;
  }
  EXPECT_TRUE(Eventually([&] { return flood.ok->load() == 400; })) << "resumed when it read";
}

TEST(Throttle, StoppedClientBlocksOthers) {
  TestDaemon daemon;
  std::string path = daemon.lifeline();
  Child child([path](const Child::Channel& channel) {
    auto client = Join(path);
    channel.Say('j');
    size_t blocks = 0;
    while (blocks < 700) {
      auto frame = ReceiveFrame<ub::wire::Grant>(client->lifeline.get());
      if (!frame.ok()) return 1;
      blocks += frame->count;
    }
    return 0;
  });
  ASSERT_EQ(child.channel().Hear(), 'j');
  const SessionId stopped = daemon.broker().Sessions(Viewer{.admin = true}).at(0).facts.id;
  child.Signal(SIGSTOP);
  Flood flood;
  flood.Ask(daemon, stopped, 1, 700);
  auto other = JoinSettled(daemon);
  ASSERT_TRUE(other.ok());
  auto grant = daemon.AcquireNow(other->id(), 300);
  ASSERT_TRUE(grant.ok());
  ReadGrant(daemon, *other, *grant);
  EXPECT_EQ(flood.ok->load(), 1) << "first batch answered";
  child.Signal(SIGCONT);
  EXPECT_EQ(child.Wait(), 0) << "got all 700 after it was continued";
}

TEST(Throttle, LeaseGivenUpByItsRpcKeepsItsBlocksInAQueue) {
  TestDaemon daemon;
  auto lazy = JoinSettled(daemon);
  ASSERT_TRUE(lazy.ok());
  Flood flood;
  flood.Ask(daemon, lazy->id(), 1, 253);
  for (int round = 0; round < 500; ++round) {
    AcquireRequest request;
    request.session = lazy->id();
    request.bytes = ub::MiB(2) * 8;
    request.request = RequestId(100000 + round);
    daemon.broker().Acquire(request, [&](absl::StatusOr<Grant> grant) {
      ASSERT_TRUE(grant.ok()) << round << grant.status();
      auto pin = daemon.broker().Pin(lazy->id(), grant->lease, grant->access);
      daemon.Find(*lazy)->Deliver(*grant, *std::move(pin), [](absl::Status) {});
    });
    EXPECT_TRUE(daemon.broker().Abandon(lazy->id(), request.request));
    ASSERT_TRUE(Eventually([&] { return daemon.broker().Pools()[0].free == 2048 - 253; })) << round;
  }
  auto frame = ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get());
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->count, 253u);
  EXPECT_FALSE(WaitReadable(lazy->lifeline.get(), absl::Milliseconds(100))) << "leases that ended are not sent";
  EXPECT_TRUE(daemon.AcquireNow(lazy->id(), 2).ok());
}

TEST(Throttle, RetriesOfAWaitingRequestPileUp) {
  TestDaemon daemon;
  auto lazy = JoinSettled(daemon);
  ASSERT_TRUE(lazy.ok());
  Flood flood;
  flood.Ask(daemon, lazy->id(), 1, 253);
  std::atomic<int> superseded{0}, delivered{0};
  AcquireRequest request;
  request.session = lazy->id();
  request.bytes = ub::MiB(2);
  request.request = RequestId(100000);
  for (int i = 0; i < 50; ++i) {
    daemon.broker().Acquire(request, [&](absl::StatusOr<Grant> grant) {
      auto pin = daemon.broker().Pin(lazy->id(), grant->lease, grant->access);
      daemon.Find(*lazy)->Deliver(*grant, *std::move(pin), [&](absl::Status first) {
        if (first.ok()) ++delivered;
        if (ub::ReasonOf(first) == ub::Reason::kSuperseded) ++superseded;
      });
    });
  }
  // One may be under way on the loop's thread just when the next comes.
  EXPECT_GE(superseded.load(), 40);
  ASSERT_TRUE(ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get()).ok());
  uint64_t newest = 0;
  while (newest < 51) {
    auto frame = ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get());
    ASSERT_TRUE(frame.ok()) << frame.status() << " after " << newest;
    EXPECT_GT(frame->delivery, newest);
    newest = frame->delivery;
  }
  EXPECT_TRUE(Eventually([&] { return delivered.load() + superseded.load() == 50; }));
  EXPECT_FALSE(WaitReadable(lazy->lifeline.get(), absl::Milliseconds(100)));
}

// One full frame in flight leaves the socket writable all the time.
TEST(Throttle, WritableSocketOfAThrottledSessionSpinsTheLoop) {
  TestDaemon daemon;
  auto lazy = JoinSettled(daemon);
  ASSERT_TRUE(lazy.ok());
  ASSERT_TRUE(daemon.AcquireNow(lazy->id(), 253).ok());
  Flood flood;
  flood.Ask(daemon, lazy->id(), 3);
  absl::SleepFor(absl::Milliseconds(50));
  const absl::Duration cpu = daemon.LoopCpu();
  const uint64_t sleeps = daemon.LoopSleeps();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(daemon.LoopCpu() - cpu, absl::Milliseconds(20));
  EXPECT_LE(daemon.LoopSleeps() - sleeps, 3u);
  EXPECT_EQ(flood.ok->load(), 0);
  ASSERT_TRUE(ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get()).ok());
  EXPECT_TRUE(Eventually([&] { return flood.ok->load() == 3; }));
}

TEST(Throttle, ShortageOfDescriptorsEndsALease) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  daemon.memory().FailOpen([] { return ub::ErrnoError(EMFILE, "opening a block"); });
  Flood flood;
  flood.Ask(daemon, client->id(), 1, 5);
  const absl::Duration cpu = daemon.LoopCpu();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(daemon.LoopCpu() - cpu, absl::Milliseconds(50));
  EXPECT_EQ(flood.ok->load() + flood.failed->load(), 0) << "it waits";
  daemon.memory().FailOpen(nullptr);
  EXPECT_TRUE(Eventually([&] { return flood.ok->load() == 1; }));
}

TEST(Throttle, EndOfAThrottledSessionLosesItsAnswers) {
  TestDaemon daemon;
  const size_t fds_before = OpenFdCount();
  {
    auto lazy = JoinSettled(daemon);
    ASSERT_TRUE(lazy.ok());
    Flood flood;
    flood.Ask(daemon, lazy->id(), 100, 5);
    lazy->lifeline.reset();
    EXPECT_TRUE(Eventually([&] { return flood.ok->load() + flood.failed->load() == 100; }));
    EXPECT_GE(flood.failed->load(), 40);
    EXPECT_TRUE(Eventually([&] { return daemon.broker().Pools()[0].free == 2048; }));
  }
  // Only the fake's backings of blocks that were not reclaimed may stay: none.
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() == fds_before; })) << OpenFdCount() << " of " << fds_before;
}

}  // namespace
}  // namespace ubd::testing
