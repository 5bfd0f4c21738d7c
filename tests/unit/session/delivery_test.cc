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
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;
using ub::wire::kMaxFdsPerFrame;

// In, and with nothing in flight: the Welcome's fd was counted as taken.
absl::StatusOr<RawClient> JoinSettled(TestDaemon& daemon) {
  auto client = Join(daemon.lifeline());
  if (client.ok() && !Eventually([&] { return daemon.Find(*client)->fds_in_flight() == 0; }))
    return absl::InternalError("fds in flight");
  return client;
}

// Reads the frames of one grant and checks that each fd is the right block's, in order. The number of frames.
size_t ReadGrant(TestDaemon& daemon, const RawClient& client, const Grant& grant) {
  size_t frames = 0, next = 0;
  while (next < grant.blocks.size()) {
    std::vector<UniqueFd> fds;
    auto frame = ReceiveFrame<ub::wire::Grant>(client.lifeline.get(), &fds);
    if (!frame.ok()) {
      ADD_FAILURE() << frame.status() << " after " << next;
      return frames;
    }
    ++frames;
    EXPECT_EQ(frame->lease, grant.lease.value());
    EXPECT_EQ(frame->generation, grant.generation.value());
    EXPECT_EQ(frame->total, grant.blocks.size());
    EXPECT_EQ(frame->first, next);
    EXPECT_EQ(frame->count, fds.size());
    for (const UniqueFd& fd : fds) {
      struct stat info = {};
      EXPECT_EQ(::fstat(fd.get(), &info), 0);
      EXPECT_EQ(info.st_ino, daemon.memory().InodeOf(grant.blocks.at(next++).block));
    }
  }
  return frames;
}

// Asks for leases until `pending` of them are not answered; counts those that were.
struct Flood {
  std::shared_ptr<std::atomic<int>> ok = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> failed = std::make_shared<std::atomic<int>>(0);
  void Ask(TestDaemon& daemon, SessionId session, int times, uint32_t blocks = 1) {
    for (int i = 0; i < times; ++i) {
      daemon.Acquire(session, blocks,
                     [ok = ok, failed = failed](absl::StatusOr<Grant> grant) { ++*(grant.ok() ? ok : failed); });
    }
  }
};

TEST(Delivery, SmallGrantIsLateOrWrong) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  auto grant = daemon.AcquireNow(client->id(), 3);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_TRUE(WaitReadable(client->lifeline.get(), absl::ZeroDuration())) << "in the socket before the answer";
  EXPECT_EQ(ReadGrant(daemon, *client, *grant), 1u);
  EXPECT_TRUE(Eventually([&] { return daemon.Find(*client)->fds_in_flight() == 0; }));
}

TEST(Delivery, GrantLargerThanAFrameArrivesTornOrOutOfOrder) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  auto grant = daemon.AcquireNow(client->id(), 1000);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_LE(daemon.Find(*client)->fds_in_flight(), kMaxFdsPerFrame);
  EXPECT_GE(ReadGrant(daemon, *client, *grant), 4u);
}

TEST(Delivery, ClientThatNeverReadsHoldsMoreThanItsCredits) {
  TestDaemon daemon;
  auto lazy = JoinSettled(daemon), busy = JoinSettled(daemon);
  ASSERT_TRUE(lazy.ok() && busy.ok());
  Flood flood;
  flood.Ask(daemon, lazy->id(), 400);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(daemon.Find(*lazy)->fds_in_flight(), kMaxFdsPerFrame);
  EXPECT_EQ(flood.ok->load(), static_cast<int>(kMaxFdsPerFrame));
  for (int i = 0; i < 20; ++i) {
    auto grant = daemon.AcquireNow(busy->id(), 10);
    ASSERT_TRUE(grant.ok()) << "another session's grant: " << grant.status();
    EXPECT_EQ(ReadGrant(daemon, *busy, *grant), 1u);
  }
  const absl::Duration cpu = daemon.LoopCpu();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(daemon.LoopCpu() - cpu, absl::Milliseconds(50)) << "throttled, not spinning";
  size_t blocks = 0;
  while (blocks < 400) {
    auto frame = ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get());
    ASSERT_TRUE(frame.ok()) << frame.status() << " after " << blocks;
    blocks += frame->count;
  }
  EXPECT_TRUE(Eventually([&] { return flood.ok->load() == 400; })) << "resumed when it read";
}

TEST(Delivery, StoppedClientBlocksOthers) {
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

TEST(Delivery, LeaseGivenUpByItsRpcKeepsItsBlocksInAQueue) {
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

TEST(Delivery, RetriesOfAWaitingRequestPileUp) {
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
  EXPECT_EQ(superseded.load(), 49);
  ASSERT_TRUE(ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get()).ok());
  auto frame = ReceiveFrame<ub::wire::Grant>(lazy->lifeline.get());
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->delivery, 51u) << "the newest";
  EXPECT_TRUE(Eventually([&] { return delivered.load() == 1; }));
  EXPECT_FALSE(WaitReadable(lazy->lifeline.get(), absl::Milliseconds(100)));
}

TEST(Delivery, BlockThatCannotBeOpenedLeavesALeaseBehind) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  daemon.memory().FailOpen(absl::InternalError("broken"));
  auto grant = daemon.AcquireNow(client->id(), 3);
  EXPECT_EQ(grant.status().code(), absl::StatusCode::kInternal);
  auto failed = ReceiveFrame<ub::wire::GrantFailed>(client->lifeline.get());
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(ub::wire::GetText(failed->text), "broken");
  EXPECT_TRUE(Eventually([&] { return daemon.broker().Pools()[0].free == 2048; }));
  daemon.memory().FailOpen(absl::OkStatus());
  auto next = daemon.AcquireNow(client->id(), 3);
  ASSERT_TRUE(next.ok()) << "the session lives";
  ReadGrant(daemon, *client, *next);
}

TEST(Delivery, ShortageOfDescriptorsEndsALease) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  daemon.memory().FailOpen(ub::ErrnoError(EMFILE, "opening a block"));
  Flood flood;
  flood.Ask(daemon, client->id(), 1, 5);
  const absl::Duration cpu = daemon.LoopCpu();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(daemon.LoopCpu() - cpu, absl::Milliseconds(50));
  EXPECT_EQ(flood.ok->load() + flood.failed->load(), 0) << "it waits";
  daemon.memory().FailOpen(absl::OkStatus());
  EXPECT_TRUE(Eventually([&] { return flood.ok->load() == 1; }));
}

TEST(Delivery, EndOfAThrottledSessionLosesItsAnswers) {
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

// A client that breaks the rules to be rid of its session, not of its fds in flight, does not get new credits each
// time.
TEST(Delivery, EndedSessionsFdsInFlightAreForgotten) {
  DaemonOptions options;
  options.limits.max_sessions_per_uid = 3;
  TestDaemon daemon(options);
  std::vector<RawClient> hoard;
  for (int i = 0; i < 3; ++i) {
    hoard.push_back(*JoinSettled(daemon));
    ASSERT_TRUE(daemon.AcquireNow(hoard.back().id(), 253).ok());
    (void)SendHello(hoard.back().lifeline.get());  // misuse: the session ends
    ASSERT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, hoard.back().id()));
  }
  EXPECT_FALSE(JoinSettled(daemon).ok()) << "the fds of the three still lie in their sockets";
  hoard.erase(hoard.begin());
  EXPECT_TRUE(Eventually([&] { return JoinSettled(daemon).ok(); })) << "closed: taken back by the kernel";
  while (ReceiveFrame<ub::wire::Grant>(hoard[0].lifeline.get()).ok()) {
  }
  EXPECT_TRUE(Eventually([&] { return JoinSettled(daemon).ok(); })) << "read: taken";
}

TEST(Delivery, ClientWithoutRoomForFdsHarmsTheDaemon) {
  TestDaemon daemon;
  std::string path = daemon.lifeline();
  Child child([path](const Child::Channel& channel) {
    auto client = Join(path);
    rlimit small = {16, 16};
    ::setrlimit(RLIMIT_NOFILE, &small);
    channel.Say('j');
    auto packet = Receive(client->lifeline.get());
    if (!packet.ok() || !packet->fds_truncated) return 1;
    channel.Say('t');
    return channel.Hear() == 'q' ? 0 : 2;
  });
  ASSERT_EQ(child.channel().Hear(), 'j');
  const SessionId id = daemon.broker().Sessions(Viewer{.admin = true}).at(0).facts.id;
  ASSERT_TRUE(daemon.AcquireNow(id, 100).ok());
  ASSERT_EQ(child.channel().Hear(), 't');
  EXPECT_EQ(daemon.server().registry().Find(id)->fds_in_flight(), 0u) << "what did not fit was taken all the same";
  EXPECT_TRUE(JoinSettled(daemon).ok());
  child.channel().Say('q');
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Delivery, ThreadsOfOneSessionGetEachOthersGrants) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  constexpr int kThreads = 4, kEach = 100;
  std::atomic<int> failed{0};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    size_t blocks = 0;
    while (blocks < kThreads * kEach * 3) {
      auto frame = ReceiveFrame<ub::wire::Grant>(client->lifeline.get());
      if (!frame.ok()) break;
      blocks += frame->count;
    }
    stop = blocks == kThreads * kEach * 3;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        auto grant = daemon.AcquireNow(client->id(), 3);
        if (!grant.ok()) ++failed;
        if (grant.ok() && i % 2 == 0) (void)daemon.broker().Release(client->id(), grant->lease);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  reader.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_TRUE(stop.load());
}

}  // namespace
}  // namespace ubd::testing
