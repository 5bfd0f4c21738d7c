// Descriptors that nobody can close: the doorman keeps them out of the daemon, and others are served all along.
#include "daemon/session/doorman.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "tests/support/silent_fuse.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;

// Memory may come in; whatever else it is, it is not touched.
Verdict MemoryOnly(int fd, int32_t) {
  if (::fcntl(fd, F_GET_SEALS) >= 0) return {Verdict::Kind::kHarmless, ""};
  return {Verdict::Kind::kUntrusted, "somefs"};
}

UniqueFd Memfd() { return UniqueFd(::memfd_create("offered", MFD_CLOEXEC)); }
UniqueFd File(const TempDir& dir) {
  return UniqueFd(::open((dir / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

DaemonOptions WithDoorman() {
  DaemonOptions options;
  options.doorman = [] { return *Doorman::Start(MemoryOnly); };
  return options;
}

struct Answer {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  ub::Reason reason = ub::Reason::kNone;
  std::string file_system;
};

// Offers `fd` and takes it.
Answer OfferAndTake(TestDaemon& daemon, const RawClient& client, uint64_t number, int fd) {
  EXPECT_TRUE(SendOffer(client.lifeline.get(), number, {fd}).ok());
  struct State {
    ub::Mutex mu;
    bool done ABSL_GUARDED_BY(mu) = false;
    Answer answer ABSL_GUARDED_BY(mu);
  };
  auto state = std::make_shared<State>();
  daemon.Find(client)->TakeOffer(number, absl::Seconds(20), [state](absl::StatusOr<UniqueFd> taken) {
    ub::MutexLock lock(&state->mu);
    state->done = true;
    state->answer = {taken.status().code(), ub::ReasonOf(taken.status()),
                     ub::DetailOf(taken.status(), "file_system").value_or("")};
  });
  EXPECT_TRUE(Eventually([&] {
    ub::MutexLock lock(&state->mu);
    return state->done;
  }));
  ub::MutexLock lock(&state->mu);
  return state->answer;
}

TEST(Doorman, UntrustedFilesAreNamedAndStayOutside) {
  TempDir dir;
  TestDaemon daemon(WithDoorman());
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  UniqueFd file = File(dir), memory = Memfd();
  const size_t before = OpenFdCount();
  for (uint64_t number = 1; number < 40; number += 2) {
    Answer answer = OfferAndTake(daemon, *client, number, file.get());
    EXPECT_EQ(answer.reason, ub::Reason::kBadFile);
    EXPECT_EQ(answer.file_system, "somefs");
    EXPECT_EQ(OfferAndTake(daemon, *client, number + 1, memory.get()).code, absl::StatusCode::kOk)
        << "the next receiver serves";
  }
  EXPECT_EQ(OpenFdCount(), before);
}

TEST(Doorman, ASilentFileServerHoldsUpNobody) {
  if (std::string why = SilentFuse::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  TestDaemon daemon(WithDoorman());  // before the file server: it must not be inherited
  TempDir dir;
  auto fuse = SilentFuse::Mount(dir.path());
  ASSERT_TRUE(fuse.ok()) << fuse.status();
  // A process of its own, for its end closes the file and waits.
  Child child([path = daemon.lifeline(), file = (*fuse)->file()](const Child::Channel& channel) {
    auto client = Join(path);
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (!client.ok() || fd < 0) return 90;
    for (uint64_t number = 1; number <= 100; ++number) {
      if (!SendOffer(client->lifeline.get(), number, {fd}).ok()) --number;
    }
    channel.Say('o');
    channel.Hear(absl::Seconds(100));
    return 0;
  });
  ASSERT_EQ(child.channel().Hear(), 'o');
  for (int i = 0; i < 20; ++i) {
    auto other = Join(daemon.lifeline());
    ASSERT_TRUE(other.ok()) << other.status();
    ASSERT_TRUE(daemon.AcquireNow(other->id(), 1).ok());
    UniqueFd memory = Memfd();
    EXPECT_EQ(OfferAndTake(daemon, *other, 1, memory.get()).code, absl::StatusCode::kOk);
  }
  daemon.StopAndJoin(absl::ZeroDuration());
  fuse->reset();  // the child can end
}

TEST(Doorman, DescriptorsWithHelloAreNotTaken) {
  if (std::string why = SilentFuse::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  TestDaemon daemon(WithDoorman());
  TempDir dir;
  auto fuse = SilentFuse::Mount(dir.path());
  ASSERT_TRUE(fuse.ok()) << fuse.status();
  Child child([path = daemon.lifeline(), file = (*fuse)->file()](const Child::Channel& channel) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    UniqueFd lifeline = ConnectTo(path, SOCK_SEQPACKET);
    (void)SendHello(lifeline.get(), "stubborn", {fd});
    channel.Say('h');
    channel.Hear(absl::Seconds(100));
    return 0;
  });
  ASSERT_EQ(child.channel().Hear(), 'h');
  EXPECT_TRUE(Join(daemon.lifeline()).ok());
  daemon.StopAndJoin(absl::ZeroDuration());
  fuse->reset();
}

// The child processes of this one.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::ifstream list(absl::StrCat("/proc/self/task/", ::getpid(), "/children"));
  for (pid_t pid; list >> pid;) children.push_back(pid);
  return children;
}

TEST(Doorman, ItsProcessEndsWithIt) {
  const size_t before = Children().size();
  {
    auto doorman = Doorman::Start(MemoryOnly);
    ASSERT_TRUE(doorman.ok());
    EXPECT_EQ(Children().size(), before + 1);
  }
  EXPECT_EQ(Children().size(), before);
}

TEST(Doorman, KilledOneTakesOffersWithItButNoSession) {
  TestDaemon daemon(WithDoorman());
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  UniqueFd memory = Memfd();
  EXPECT_EQ(OfferAndTake(daemon, *client, 1, memory.get()).code, absl::StatusCode::kOk);
  ASSERT_EQ(Children().size(), 1u);
  ::kill(Children()[0], SIGKILL);
  EXPECT_TRUE(
      Eventually([&] { return OfferAndTake(daemon, *client, 2, memory.get()).reason == ub::Reason::kDaemonFdLimit; }));
  EXPECT_NE(daemon.Find(*client), nullptr);
  EXPECT_TRUE(daemon.AcquireNow(client->id(), 1).ok());
}

}  // namespace
}  // namespace ubd::testing
