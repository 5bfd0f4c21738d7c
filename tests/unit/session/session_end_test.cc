#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/time/clock.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;

// A client process in a session; says 'j' when it is in, then does `next`.
std::unique_ptr<Child> ClientProcess(const TestDaemon& daemon,
                                     std::function<int(RawClient&, const Child::Channel&)> next) {
  std::string path = daemon.lifeline();
  auto child = std::make_unique<Child>([path, next](const Child::Channel& channel) {
    auto client = Join(path);
    if (!client.ok()) return 90;
    channel.Say('j');
    return next(*client, channel);
  });
  EXPECT_EQ(child->channel().Hear(), 'j');
  return child;
}

int Idle(RawClient&, const Child::Channel& channel) {
  channel.Hear(absl::Seconds(100));
  return 0;
}

SessionListing OnlySession(TestDaemon& daemon) {
  auto all = daemon.broker().Sessions(Viewer{.admin = true});
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

TEST(SessionEnd, KilledClientKeepsItsSession) {
  TestDaemon daemon;
  auto child = ClientProcess(daemon, Idle);
  const SessionListing listing = OnlySession(daemon);
  EXPECT_EQ(listing.facts.pid, child->pid());
  auto grant = daemon.AcquireNow(listing.facts.id, 4);
  ASSERT_TRUE(grant.ok()) << grant.status();
  child->Signal(SIGKILL);
  EXPECT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, listing.facts.id));
  EXPECT_TRUE(Eventually([&] { return daemon.broker().Pools()[0].free == 2048; }));
  EXPECT_EQ(daemon.server().registry().Find(listing.facts.id), nullptr);
  EXPECT_EQ(daemon.events().Count(EventKind::kSessionClosed), 1u) << "ended once";
}

TEST(SessionEnd, ForkedChildKeepsADeadParentsSession) {
  TestDaemon daemon;
  auto child = ClientProcess(daemon, [](RawClient& client, const Child::Channel& channel) {
    pid_t grandchild = ::fork();
    if (grandchild == 0) {
      // Holds the lifeline long after the parent has gone.
      for (;;) channel.Hear(absl::Seconds(100));
    }
    (void)client;
    std::string text = std::to_string(grandchild);
    for (char c : text) channel.Say(c);
    channel.Say('\n');
    channel.Hear(absl::Seconds(100));
    return 0;
  });
  std::string text;
  for (char c = child->channel().Hear(); c != '\n' && c != 0; c = child->channel().Hear()) text.push_back(c);
  const pid_t grandchild = std::stoi(text);
  const SessionId id = OnlySession(daemon).facts.id;
  child->Signal(SIGKILL);
  EXPECT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, id))
      << "the lifeline never hung up: only the pidfd tells";
  EXPECT_EQ(::kill(grandchild, 0), 0) << "the child was alive all along";
  ::kill(grandchild, SIGKILL);
}

TEST(SessionEnd, ChildsExitEndsTheParentsSession) {
  TestDaemon daemon;
  auto child = ClientProcess(daemon, [](RawClient&, const Child::Channel& channel) {
    pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(0);
    ::waitpid(grandchild, nullptr, 0);
    channel.Say('w');
    channel.Hear(absl::Seconds(100));
    return 0;
  });
  ASSERT_EQ(child->channel().Hear(), 'w');
  EXPECT_FALSE(
      daemon.events().WaitFor(EventKind::kSessionClosed, OnlySession(daemon).facts.id, absl::Milliseconds(100)));
}

TEST(SessionEnd, ExecKeepsTheSession) {
  TestDaemon daemon;
  auto child = ClientProcess(daemon, [](RawClient&, const Child::Channel& channel) {
    channel.Hear();
    ::execl("/bin/sleep", "sleep", "100", nullptr);
    return 91;
  });
  const SessionId id = OnlySession(daemon).facts.id;
  child->channel().Say('g');
  EXPECT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, id));
  EXPECT_EQ(::kill(child->pid(), 0), 0);
}

TEST(SessionEnd, StoppedClientLosesItsSession) {
  TestDaemon daemon;
  auto child = ClientProcess(daemon, Idle);
  const SessionId id = OnlySession(daemon).facts.id;
  child->Signal(SIGSTOP);
  EXPECT_FALSE(daemon.events().WaitFor(EventKind::kSessionClosed, id, absl::Milliseconds(300)));
  auto grant = daemon.AcquireNow(id, 2);
  EXPECT_TRUE(grant.ok()) << "its socket has room";
  child->Signal(SIGCONT);
  EXPECT_NE(daemon.server().registry().Find(id), nullptr);
}

TEST(SessionEnd, TalkingClientIsListenedTo) {
  TestDaemon daemon;
  const size_t before = OpenFdCount();
  {
    auto client = Join(daemon.lifeline());
    ASSERT_TRUE(client.ok());
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(SendHello(client->lifeline.get(), "again", {null.get(), null.get()}).ok());
    EXPECT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, client->id()));
    EXPECT_TRUE(HungUp(client->lifeline.get()));
    EXPECT_EQ(daemon.server().registry().Find(client->token_hex(), Uid(::getuid())), nullptr) << "its token is void";
  }
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() == before; }));
}

TEST(SessionEnd, LateDeliveryReachesAnEndedSession) {
  TestDaemon daemon;
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  auto session = daemon.Find(*client);
  Grant grant;
  grant.lease = LeaseId(77);
  grant.blocks.resize(3);
  client->lifeline.reset();
  ASSERT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, client->id()));
  ASSERT_TRUE(Eventually([&] { return daemon.Find(*client) == nullptr; }));
  absl::Status first;
  session->Deliver(grant, LeasePin(), [&](absl::Status status) { first = status; });
  EXPECT_EQ(ub::ReasonOf(first), ub::Reason::kSessionEnded);
  EXPECT_EQ(session->fds_in_flight(), 0u);
}

TEST(SessionEnd, SessionOutlivesItsServer) {
  std::shared_ptr<Session> session;
  Grant grant;
  grant.blocks.resize(1);
  TestDaemon daemon;
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  session = daemon.Find(*client);
  daemon.StopAndJoin(absl::ZeroDuration());
  int calls = 0;
  session->Deliver(grant, LeasePin(), [&](absl::Status status) { calls += status.ok() ? 100 : 1; });
  EXPECT_EQ(calls, 1);
}

TEST(SessionEnd, ManyDyingAtOnceAreLost) {
  TestDaemon daemon;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 64; ++i) children.push_back(ClientProcess(daemon, Idle));
  for (const auto& listing : daemon.broker().Sessions(Viewer{.admin = true}))
    ASSERT_TRUE(daemon.AcquireNow(listing.facts.id, 3).ok());
  for (auto& child : children) child->Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return daemon.sessions() == 0 && daemon.broker().Pools()[0].free == 2048; }));
  EXPECT_EQ(daemon.events().Count(EventKind::kSessionClosed), 64u);
  EXPECT_TRUE(daemon.broker().CheckInvariants().ok());
}

// Two clients, each number 1 of a PID namespace of its own.
TEST(SessionEnd, EqualPidsInTwoNamespacesAreMixedUp) {
  TestDaemon daemon;
  std::string path = daemon.lifeline();
  auto make = [&] {
    auto child = std::make_unique<Child>([path](const Child::Channel& channel) {
      if (::unshare(CLONE_NEWPID) != 0) {
        channel.Say('s');
        return 77;
      }
      pid_t inner = ::fork();
      if (inner == 0) {
        auto client = Join(path);
        channel.Say(client.ok() && ::getpid() == 1 ? 'j' : '?');
        channel.Hear(absl::Seconds(100));
        ::_exit(0);
      }
      ::waitpid(inner, nullptr, 0);
      return 0;
    });
    return std::make_pair(child->channel().Hear(), std::move(child));
  };
  auto [one_said, one] = make();
  if (one_said == 's') GTEST_SKIP() << "may not make a PID namespace here";
  auto [two_said, two] = make();
  ASSERT_EQ(one_said, 'j');
  ASSERT_EQ(two_said, 'j');
  auto sessions = daemon.broker().Sessions(Viewer{.admin = true});
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_NE(sessions[0].facts.pid, sessions[1].facts.pid) << "seen from here";
  one->channel().Say('q');
  EXPECT_TRUE(Eventually([&] { return daemon.sessions() == 1; }));
  two->channel().Say('q');
  EXPECT_TRUE(Eventually([&] { return daemon.sessions() == 0; }));
}

}  // namespace
}  // namespace ubd::testing
