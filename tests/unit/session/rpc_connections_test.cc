#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/session/fd_room.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;

// Stands where gRPC does: owns the served descriptors.
class Served {
 public:
  std::function<void(int)> Taker() {
    return [this](int fd) {
      ub::MutexLock lock(&mu_);
      fds_.emplace_back(fd);
      changed_.SignalAll();
    };
  }
  // The number of the n-th; -1 if it does not come.
  int Number(size_t n) {
    ub::MutexLock lock(&mu_);
    while (fds_.size() <= n) {
      if (changed_.WaitWithTimeout(&mu_, absl::Seconds(10))) return -1;
    }
    return fds_[n].get();
  }
  void Close(size_t n) {
    ub::MutexLock lock(&mu_);
    fds_[n].reset();
  }
  size_t count() {
    ub::MutexLock lock(&mu_);
    return fds_.size();
  }

 private:
  ub::Mutex mu_;
  ub::CondVar changed_;
  std::vector<UniqueFd> fds_ ABSL_GUARDED_BY(mu_);
};

class RpcConnectionsTest : public ::testing::Test {
 protected:
  void Start(SessionLimits limits = {}) {
    DaemonOptions options;
    options.limits = limits;
    options.serve_rpc = served.Taker();
    daemon = std::make_unique<TestDaemon>(options);
  }
  std::optional<RpcPeer> Lookup(int number) {
    return daemon->server().connections().Lookup(absl::StrCat("fd:", number));
  }
  UniqueFd Connect() { return ConnectTo(daemon->rpc(), SOCK_STREAM); }

  Served served;
  std::unique_ptr<TestDaemon> daemon;
};

TEST_F(RpcConnectionsTest, CallerIsWhoItSays) {
  Start();
  Child child([path = daemon->rpc()](const Child::Channel& channel) {
    if (::geteuid() == 0 && !BecomeUser(20001, 20002, 20001)) return 99;
    UniqueFd fd = ConnectTo(path, SOCK_STREAM);
    channel.Say('c');
    channel.Hear();
    return 0;
  });
  ASSERT_EQ(child.channel().Hear(), 'c');
  auto peer = Lookup(served.Number(0));
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->pid, child.pid());
  if (::geteuid() == 0) {
    EXPECT_EQ(peer->uid, Uid(20001));
    EXPECT_EQ(peer->gid, Gid(20002));
  }
}

TEST_F(RpcConnectionsTest, PeerStringsThatAreNotOursMatch) {
  Start();
  UniqueFd client = Connect();
  const int number = served.Number(0);
  ASSERT_TRUE(Lookup(number).has_value());
  auto& table = daemon->server().connections();
  for (std::string bad : {std::string(), std::string("fd:"), absl::StrCat("fd:", number, " "),
                          absl::StrCat("fd:+", number), absl::StrCat("fd:", number + 1), absl::StrCat("unix:", number),
                          absl::StrCat(number), std::string("fd:-1"), std::string("fd:99999999999999999999")}) {
    EXPECT_FALSE(table.Lookup(bad).has_value()) << bad;
  }
}

TEST_F(RpcConnectionsTest, NumberIsReusedAtOnce) {
  Start();
  const FdRoom room = CurrentFdRoom();
  int last = -1;
  for (size_t i = 0; i < 50; ++i) {
    UniqueFd client = Connect();
    const int number = served.Number(i);
    EXPECT_GE(number, room.rpc_first);
    EXPECT_LT(number, room.rpc_last);
    EXPECT_GT(number, last);
    last = number;
    client.reset();
    ASSERT_TRUE(Eventually([&] { return !Lookup(number).has_value(); })) << "forgotten after the hang-up";
    served.Close(i);
  }
}

TEST_F(RpcConnectionsTest, ServersOwnCloseKeepsTheConnectionOpen) {
  Start();
  UniqueFd client = Connect();
  const int number = served.Number(0);
  ::shutdown(number, SHUT_RDWR);  // what gRPC does before it closes
  served.Close(0);
  EXPECT_TRUE(HungUp(client.get()));
  EXPECT_TRUE(Eventually([&] { return !Lookup(number).has_value(); }));
}

TEST_F(RpcConnectionsTest, SilentConnectionStaysAndSpeakingOneGoes) {
  Start({.handshake_timeout = absl::Milliseconds(300)});
  UniqueFd silent = Connect(), speaking = Connect();
  const int silent_number = served.Number(0);
  ASSERT_TRUE(Lookup(served.Number(1)).has_value());
  EXPECT_TRUE(HungUp(silent.get(), absl::Seconds(5)));
  EXPECT_TRUE(Eventually([&] { return !Lookup(silent_number).has_value(); }));
  EXPECT_FALSE(HungUp(speaking.get(), absl::Milliseconds(500)));
  EXPECT_TRUE(Lookup(served.Number(1)).has_value());
}

TEST_F(RpcConnectionsTest, FirstCallBehindAFloodOfOthersIsNotSilence) {
  Start({.handshake_timeout = absl::Milliseconds(100)});
  UniqueFd flood = Connect(), waiting = Connect();
  const int flood_number = served.Number(0);
  ASSERT_GE(served.Number(1), 0);
  // Calls come in all the time: several times the timeout passes, and the one that has had no turn is kept.
  const absl::Time end = absl::Now() + absl::Milliseconds(400);
  while (absl::Now() < end) {
    ASSERT_TRUE(Lookup(flood_number).has_value());
    ASSERT_FALSE(HungUp(waiting.get(), absl::Milliseconds(10)));
  }
  // Not for ever: whoever never speaks goes.
  EXPECT_TRUE(HungUp(waiting.get(), absl::Seconds(10)));
}

TEST_F(RpcConnectionsTest, OneUserTakesAllConnections) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  Start({.max_connections_per_uid = 3});
  std::vector<UniqueFd> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(Connect());
  ASSERT_GE(served.Number(2), 0);
  UniqueFd fourth = Connect();
  EXPECT_TRUE(HungUp(fourth.get()));
  Child other([path = daemon->rpc()](const Child::Channel&) {
    if (!BecomeUser(20001, 20001, 20001)) return 99;
    UniqueFd fd = ConnectTo(path, SOCK_STREAM);
    return HungUp(fd.get(), absl::Milliseconds(200)) ? 1 : 0;
  });
  EXPECT_EQ(other.Wait(), 0) << "another user is served";
  mine.pop_back();
  EXPECT_TRUE(Eventually([&] { return !HungUp(Connect().get(), absl::Milliseconds(50)); })) << "room again";
}

TEST_F(RpcConnectionsTest, FloodLeaks) {
  Start();
  const size_t before = OpenFdCount();
  for (size_t i = 0; i < 2000; ++i) {
    UniqueFd client = Connect();
    ASSERT_TRUE(client.valid());
  }
  EXPECT_TRUE(Eventually([&] { return served.count() == 2000; }));
  for (size_t i = 0; i < 2000; ++i) served.Close(i);
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() == before; })) << OpenFdCount() << " of " << before;
}

}  // namespace
}  // namespace ubd::testing
