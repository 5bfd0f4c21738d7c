#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "daemon/session/peer_identity.h"
#include "daemon/session/proc_stat.h"
#include "proto/wire/error.h"
#include "tests/unit/session/harness.h"

namespace ubd {
namespace {

using ub::UniqueFd;
using ::ubd::testing::Child;

TEST(ProcStat, NameWithParenthesesShiftsTheFields) {
  std::string fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
  auto stat = ParseProcStat("42 (a) R 1 (b) " + fields + "\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->name, "a) R 1 (b");
  EXPECT_EQ(stat->start_time, 777u);
}

TEST(ProcStat, GarbageIsRead) {
  for (const char* text : {"", "(", ")", "1 (x", ")x(", "1 (x)", "1 (x) ", "1 (x) S 1 2",
                           "1 () S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"}) {
    EXPECT_FALSE(ParseProcStat(text).has_value()) << text;
  }
}

TEST(ProcStat, RealProcessWithAHostileNameIsMisread) {
  const auto before = ReadProcStat(::getpid());
  char old[16] = {};
  ::prctl(PR_GET_NAME, old);
  ::prctl(PR_SET_NAME, "a) R 1 (b");
  const auto after = ReadProcStat(::getpid());
  ::prctl(PR_SET_NAME, old);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->name, "a) R 1 (b");
  EXPECT_EQ(after->start_time, before->start_time);
  EXPECT_GT(after->start_time, 0u);
}

TEST(ProcStat, PidZeroIsUsed) {
  EXPECT_FALSE(ReadProcStat(0).has_value());
  EXPECT_FALSE(ReadProcStat(-1).has_value());
}

TEST(PrintableName, HostileTextReachesAListing) {
  EXPECT_EQ(PrintableName("loader-1"), "loader-1");
  EXPECT_EQ(PrintableName("a\nb\x1b[31m\x7f"), "a?b?[31m?");
  EXPECT_EQ(PrintableName("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(PrintableName("\xe2\x82\xac\xf0\x9f\x98\x80"), "\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(PrintableName("\xc3"), "?");
  EXPECT_EQ(PrintableName("\xff\xc0\xaf\xed\xa0\x80"), "??????") << "overlong and surrogate";
  EXPECT_EQ(PrintableName("\xc2\x9b"), "??") << "C1 control";
}

TEST(Pidfd, OtherDescriptorsPassForOne) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  ASSERT_TRUE(pidfd.valid());
  EXPECT_EQ(PidOfPidfd(pidfd.get()), ::getpid());
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(PidOfPidfd(null.get()).has_value());
  EXPECT_FALSE(PidOfPidfd(-1).has_value());
  // A file whose content looks like it is not one either.
  UniqueFd stat(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(PidOfPidfd(stat.get()).has_value());
}

// A connected pair whose far end lives in a child.
struct Peer {
  explicit Peer(std::function<void()> in_child = [] {})
      : listener(MakeListener(dir / "s")), child([this, in_child](const Child::Channel& channel) {
          in_child();
          UniqueFd fd = ubd::testing::ConnectTo(dir / "s", SOCK_SEQPACKET);
          channel.Say('c');
          channel.Hear();
          return 0;
        }) {
    if (child.channel().Hear() == 'c') accepted.reset(::accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  static std::unique_ptr<ListeningSocket> MakeListener(const std::string& path) {
    return *ListeningSocket::Bind(path, SOCK_SEQPACKET, {.mode = 0666});
  }
  ubd::testing::TempDir dir;
  std::unique_ptr<ListeningSocket> listener;
  Child child;
  UniqueFd accepted;
};

TEST(IdentifyPeer, KernelsWordIsNotTaken) {
  Peer peer;
  ASSERT_TRUE(peer.accepted.valid());
  auto identity = IdentifyPeer(peer.accepted.get());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->pid, peer.child.pid());
  EXPECT_EQ(identity->uid, Uid(::getuid()));
  EXPECT_EQ(identity->start_time, ReadProcStat(peer.child.pid())->start_time);
  EXPECT_EQ(PidOfPidfd(identity->pidfd.get()), peer.child.pid());
}

TEST(IdentifyPeer, OldKernelGivesNoPidfd) {
  Peer peer;
  auto identity = IdentifyPeer(peer.accepted.get(), {.use_peer_pidfd = false});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->source, "pidfd");
  EXPECT_EQ(PidOfPidfd(identity->pidfd.get()), peer.child.pid());
  EXPECT_FALSE(ubd::testing::WaitReadable(identity->pidfd.get(), absl::ZeroDuration()));
}

TEST(IdentifyPeer, DeadPeerIsIdentifiedByItsNumber) {
  for (bool new_kernel : {true, false}) {
    Peer peer;
    peer.child.Signal(SIGKILL);
    ASSERT_EQ(peer.child.Wait(), 256 + SIGKILL);
    auto identity = IdentifyPeer(peer.accepted.get(), {.use_peer_pidfd = new_kernel});
    // A kernel that keeps dead peers' pidfds may hand one out: it says "ended" at once.
    if (identity.ok()) {
      EXPECT_TRUE(ubd::testing::WaitReadable(identity->pidfd.get(), absl::ZeroDuration()));
      EXPECT_TRUE(new_kernel);
    } else {
      EXPECT_EQ(ub::ReasonOf(identity.status()), ub::Reason::kSessionEnded);
    }
  }
}

TEST(ClientPidfd, AnythingIsTakenForOne) {
  PeerIdentity identity;
  EXPECT_FALSE(AddClientPidfd(identity, UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))).ok());
  EXPECT_FALSE(identity.pidfd.valid());
  EXPECT_TRUE(AddClientPidfd(identity, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)))).ok());
  EXPECT_EQ(identity.source, "client-pidfd");
}

TEST(ClientPidfd, ReplacesTheKernelsOwn) {
  Peer peer;
  auto identity = IdentifyPeer(peer.accepted.get());
  ASSERT_TRUE(identity.ok());
  EXPECT_TRUE(AddClientPidfd(*identity, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)))).ok());
  EXPECT_EQ(PidOfPidfd(identity->pidfd.get()), peer.child.pid());
}

// The daemon in a PID namespace of its own, the client outside: the kernel has no number for it.
int IdentifyFromInsideNamespace(int accepted) {
  if (::unshare(CLONE_NEWPID) != 0) return 77;
  pid_t inner = ::fork();
  if (inner == 0) {
    auto identity = IdentifyPeer(accepted);
    if (!identity.ok()) ::_exit(10);
    if (identity->pid != 0) ::_exit(11);
    auto old = IdentifyPeer(accepted, {.use_peer_pidfd = false});
    if (!old.ok() || old->pid != 0 || old->pidfd.valid() || old->source != "none") ::_exit(12);
    ::_exit(identity->source == "peer-pidfd" && !identity->pidfd.valid() ? 13 : 0);
  }
  int status = 0;
  ::waitpid(inner, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 14;
}

TEST(IdentifyPeer, PeerOutOfSightGetsNumberZeroUsed) {
  ubd::testing::TempDir dir;
  auto listener = Peer::MakeListener(dir / "s");
  UniqueFd client = ubd::testing::ConnectTo(dir / "s", SOCK_SEQPACKET);
  UniqueFd accepted(::accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC));
  pid_t outer = ::fork();
  if (outer == 0) ::_exit(IdentifyFromInsideNamespace(accepted.get()));
  int status = 0;
  ASSERT_EQ(::waitpid(outer, &status, 0), outer);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "may not make a PID namespace here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ubd
