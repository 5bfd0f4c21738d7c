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

TEST(Delivery, BlockThatCannotBeOpenedLeavesALeaseBehind) {
  TestDaemon daemon;
  auto client = JoinSettled(daemon);
  ASSERT_TRUE(client.ok());
  daemon.memory().FailOpen([] { return absl::InternalError("broken"); });
  auto grant = daemon.AcquireNow(client->id(), 3);
  EXPECT_EQ(grant.status().code(), absl::StatusCode::kInternal);
  auto failed = ReceiveFrame<ub::wire::GrantFailed>(client->lifeline.get());
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(ub::wire::GetText(failed->text), "broken");
  EXPECT_TRUE(Eventually([&] { return daemon.broker().Pools()[0].free == 2048; }));
  daemon.memory().FailOpen(nullptr);
  auto next = daemon.AcquireNow(client->id(), 3);
  ASSERT_TRUE(next.ok()) << "the session lives";
  ReadGrant(daemon, *client, *next);
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
  // Every other lease is given back once all of it has come.
  std::thread reader([&] {
    size_t blocks = 0;
    while (blocks < kThreads * kEach * 3) {
      auto frame = ReceiveFrame<ub::wire::Grant>(client->lifeline.get());
      if (!frame.ok()) {
        ADD_FAILURE() << frame.status() << " after " << blocks;
        break;
      }
      EXPECT_EQ(frame->count, 3u) << "never torn";
      blocks += frame->count;
      if (frame->lease % 2 == 0) (void)daemon.broker().Release(client->id(), LeaseId(frame->lease));
    }
    stop = blocks == kThreads * kEach * 3;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        if (!daemon.AcquireNow(client->id(), 3).ok()) ++failed;
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
