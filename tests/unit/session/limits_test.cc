// What happens when descriptors run short. Each case runs in a process of its own with a low limit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "absl/time/clock.h"
#include "daemon/session/fd_credits.h"
#include "daemon/session/fd_room.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;
using Wait = FdCredits::Wait;

struct Pair {
  Pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    daemon.reset(fds[0]);
    client.reset(fds[1]);
  }
  void Send(size_t count) const {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::byte byte{};
    if (!ub::wire::SendPacket(daemon.get(), {&byte, 1}, std::vector<int>(count, null.get())).ok()) std::abort();
  }
  UniqueFd daemon, client;
};

TEST(FdCredits, SessionOverdrawsOrStaysIndebted) {
  FdCredits credits([] { return uint64_t{100000}; });
  Pair pair;
  credits.Open(SessionId(1), Uid(7), pair.daemon.get());
  EXPECT_EQ(credits.Take(SessionId(1), 200), Wait::kNone);
  pair.Send(200);
  credits.Sent(SessionId(1), 200);
  EXPECT_EQ(credits.Take(SessionId(1), 54), Wait::kOwn) << "not torn";
  EXPECT_EQ(credits.Take(SessionId(1), 53), Wait::kNone);
  credits.Unsent(SessionId(1), 53);
  EXPECT_EQ(credits.InFlight(SessionId(1)), 200u);
  ASSERT_TRUE(Receive(pair.client.get()).ok());
  EXPECT_EQ(credits.Take(SessionId(1), 253), Wait::kNone);
  EXPECT_EQ(credits.Take(SessionId(1), 1), Wait::kOwn);
}

TEST(FdCredits, UidTakesMoreThanItsShare) {
  FdCredits credits([] { return uint64_t{1000}; });
  Pair pairs[5];
  for (uint64_t i = 0; i < 4; ++i) credits.Open(SessionId(i), Uid(7), pairs[i].daemon.get());
  credits.Open(SessionId(4), Uid(8), pairs[4].daemon.get());  // two uids: 500 each
  EXPECT_EQ(credits.Take(SessionId(0), 253), Wait::kNone);
  pairs[0].Send(253);
  credits.Sent(SessionId(0), 253);
  EXPECT_EQ(credits.Take(SessionId(1), 253), Wait::kUid);
  EXPECT_EQ(credits.Take(SessionId(1), 247), Wait::kNone);
  EXPECT_EQ(credits.Take(SessionId(2), 10), Wait::kUid);
  EXPECT_EQ(credits.Take(SessionId(4), 253), Wait::kNone) << "the other uid is not concerned";
  EXPECT_EQ(credits.Debtors(SessionId(2)), std::vector<SessionId>{SessionId(0)});
  ASSERT_TRUE(Receive(pairs[0].client.get()).ok());
  EXPECT_TRUE(credits.Refresh(SessionId(0)));
  EXPECT_EQ(credits.Waiters(SessionId(0)), (std::vector<SessionId>{SessionId(1), SessionId(2)}));
  EXPECT_FALSE(credits.HasWaiters(SessionId(0)));
  EXPECT_EQ(credits.Take(SessionId(2), 10), Wait::kNone);
}

TEST(FdCredits, ClosedSessionOwesStill) {
  FdCredits credits([] { return uint64_t{253}; });
  Pair one, two;
  credits.Open(SessionId(1), Uid(7), one.daemon.get());
  credits.Open(SessionId(2), Uid(7), two.daemon.get());
  EXPECT_EQ(credits.Take(SessionId(1), 253), Wait::kNone);
  EXPECT_EQ(credits.Take(SessionId(2), 1), Wait::kUid);
  credits.Close(SessionId(1));
  credits.Sent(SessionId(1), 253);  // late
  EXPECT_EQ(credits.InFlight(SessionId(1)), 0u);
  EXPECT_EQ(credits.Take(SessionId(2), 253), Wait::kNone);
}

TEST(FdCredits, TinyLimitStopsEverybody) {
  FdCredits credits([] { return uint64_t{10}; });
  Pair pair;
  credits.Open(SessionId(1), Uid(7), pair.daemon.get());
  EXPECT_EQ(credits.Take(SessionId(1), 253), Wait::kNone);
}

TEST(FdRoom, RangesOverlapOrVanish) {
  for (rlim_t limit : {rlim_t{64}, rlim_t{1024}, rlim_t{20000}}) {
    Child child([limit](const Child::Channel&) {
      rlimit set = {limit, limit};
      ::setrlimit(RLIMIT_NOFILE, &set);
      const FdRoom room = CurrentFdRoom();
      const bool sound = room.limit == limit && room.rpc_first > 0 && room.rpc_first < room.rpc_last &&
                         room.rpc_last <= room.admit_below && static_cast<rlim_t>(room.admit_below) < limit;
      return sound ? 0 : 1;
    });
    EXPECT_EQ(child.Wait(), 0) << limit;
  }
}

// Runs in a fresh process with room for `limit` descriptors.
int WithFdLimit(rlim_t limit, const std::function<int()>& body) {
  Child child([&](const Child::Channel&) {
    rlimit set = {limit, limit};
    if (::setrlimit(RLIMIT_NOFILE, &set) != 0) return 99;
    return body();
  });
  return child.Wait();
}

// Clients in a process of their own, as they have a table of their own.
int ExhaustAndRecover() {
  TestDaemon daemon;
  auto first = Join(daemon.lifeline());
  if (!first.ok()) return 1;
  std::string path = daemon.lifeline();
  Child crowd([path](const Child::Channel& channel) {
    std::vector<UniqueFd> lifelines;
    size_t refused = 0;
    for (int i = 0; i < 50; ++i) {
      UniqueFd fd = ConnectTo(path, SOCK_SEQPACKET);
      if (!fd.valid()) return 2;
      (void)SendHello(fd.get());
      auto packet = Receive(fd.get());
      if (!packet.ok() || packet->bytes.empty()) return 3;  // an answer, always
      auto frame = ub::wire::ParseFrame(packet->bytes);
      const auto* refuse = frame.ok() ? std::get_if<ub::wire::Refuse>(&*frame) : nullptr;
      if (refuse != nullptr && ub::wire::GetText(refuse->reason) != "DAEMON_FD_LIMIT") return 4;
      refused += refuse != nullptr ? 1 : 0;
      lifelines.push_back(std::move(fd));
    }
    channel.Say(refused > 0 && refused < 50 ? 'r' : 'n');
    channel.Hear();
    return 0;
  });
  if (crowd.channel().Hear() != 'r') return 100 + crowd.Wait(absl::Seconds(1));
  const absl::Duration cpu = daemon.LoopCpu();
  absl::SleepFor(absl::Milliseconds(300));
  if (daemon.LoopCpu() - cpu > absl::Milliseconds(50)) return 5;  // no busy loop at the limit
  if (!daemon.AcquireNow(first->id(), 2).ok()) return 6;          // who is in is served
  crowd.channel().Say('q');
  if (crowd.Wait() != 0) return 7;
  if (!Eventually([&] { return Join(daemon.lifeline()).ok(); })) return 8;  // and it recovers
  return 0;
}

TEST(FdLimit, ExhaustionSpinsOrKillsOrStays) { EXPECT_EQ(WithFdLimit(64, ExhaustAndRecover), 0); }

// Something else of this process takes every last descriptor: then not even the headroom is left.
int NothingLeft() {
  TestDaemon daemon;
  std::string path = daemon.lifeline();
  Child client([path](const Child::Channel& channel) {
    if (channel.Hear() != 'g') return 1;
    UniqueFd fd = ConnectTo(path, SOCK_SEQPACKET);
    auto refuse = ReceiveFrame<ub::wire::Refuse>(fd.get());
    return refuse.ok() && ub::wire::GetText(refuse->reason) == "DAEMON_FD_LIMIT" ? 0 : 2;
  });
  std::vector<UniqueFd> greedy;
  for (UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); fd.valid();
       fd.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC))) {
    greedy.push_back(std::move(fd));
  }
  client.channel().Say('g');
  const int code = client.Wait(absl::Seconds(20));
  if (code != 0) return 10 + (code & 0xf);
  greedy.clear();
  return Join(daemon.lifeline()).ok() ? 0 : 3;
}

TEST(FdLimit, LastDescriptorGoneLeavesClientsUnanswered) {
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
  return;  // the sanitizer needs a descriptor of its own to look at an object, and reports the object without
#endif
#endif
  EXPECT_EQ(WithFdLimit(64, NothingLeft), 0);
}

// As an ordinary user, whom the kernel stops with ETOOMANYREFS; two hoarders of other users must not stop a third.
int HoardersAndAThird() {
  TestDaemon daemon;
  daemon.memory().ShareOneBacking();
  // The directory goes to the user, too, who could not remove it else.
  const std::string dir = std::filesystem::path(daemon.lifeline()).parent_path();
  if (::chmod(daemon.lifeline().c_str(), 0666) != 0 || ::chown(dir.c_str(), 20009, 20009) != 0 ||
      !BecomeUser(20009, 20009, 20009)) {
    return 99;
  }
  std::vector<RawClient> lazy;
  for (int i = 0; i < 8; ++i) {
    lazy.push_back(*Join(daemon.lifeline()));
    daemon.Acquire(lazy.back().id(), 250, [](absl::StatusOr<Grant>) {});
  }
  auto in_flight = [&] {
    size_t sum = 0;
    for (auto& client : lazy) sum += daemon.Find(client)->fds_in_flight();
    return sum;
  };
  if (!Eventually([&] { return in_flight() >= 253; })) return 2;
  absl::SleepFor(absl::Milliseconds(100));   // for whatever wrongly follows
  if (in_flight() > 1024 / 2 + 8) return 1;  // half the limit, for the one uid there is
  // One reads: the next one's turn.
  size_t frames = 0;
  for (size_t rounds = 0; frames < 8 && rounds < 200; ++rounds) {
    for (auto& client : lazy) {
      if (WaitReadable(client.lifeline.get(), absl::Milliseconds(20)))
        frames += ReceiveFrame<ub::wire::Grant>(client.lifeline.get()).ok() ? 1 : 0;
    }
  }
  return frames >= 8 ? 0 : 3;
}

TEST(FdLimit, UidHoardsTheDaemonsFdsInFlight) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  EXPECT_EQ(WithFdLimit(1024, HoardersAndAThird), 0);
}

}  // namespace
}  // namespace ubd::testing
