// The service protocol against a service manager made of one real datagram socket.
#include "daemon/service/notify.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ubd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::MatchesRegex;

class FakeClock : public Clock {
 public:
  MonoTime Now() const override { return now; }
  MonoTime now = MonoTime(absl::Seconds(1000));
};

class Manager {
 public:
  // `name` starting with '@' is an abstract address.
  explicit Manager(const std::string& name) : name_(name), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    if (name_[0] != '@') unlink(name_.c_str());
  }
  // "" when nothing came.
  std::string Received() {
    char buffer[4096];
    ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    return std::string(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }

 private:
  std::string name_;
  ub::UniqueFd fd_;
};

std::string PathName() { return absl::StrCat("/tmp/ubd-notify-", getpid()); }

TEST(Notify, EachStateArrivesAsSystemdReadsIt) {
  for (const std::string& name : {PathName(), absl::StrCat("@ubd-notify-", getpid())}) {
    Manager manager(name);
    NotifyStatus("making pools");
    EXPECT_EQ(manager.Received(), "STATUS=making pools");
    NotifyReady("serving");
    EXPECT_EQ(manager.Received(), "READY=1\nSTATUS=serving");
    NotifyReloading();
    EXPECT_THAT(manager.Received(), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
    NotifyWatchdog();
    EXPECT_EQ(manager.Received(), "WATCHDOG=1");
    NotifyStopping("bye");
    EXPECT_EQ(manager.Received(), "STOPPING=1\nSTATUS=bye");
    EXPECT_EQ(manager.Received(), "");
  }
}

TEST(Notify, AStatusCannotSmuggleInAnotherMessage) {
  Manager manager(PathName());
  NotifyStatus("x\nREADY=1");
  EXPECT_EQ(manager.Received(), "STATUS=x READY=1");
}

TEST(Notify, WithoutAManagerNothingHappens) {
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  unsetenv("LISTEN_FDS");
  NotifyReady("x");
  NotifyWatchdog();
  FakeClock clock;
  BootNotifier(absl::Minutes(1), clock).Progress("pools", 1, 2);
  EXPECT_EQ(WatchdogPeriod(), std::nullopt);
  EXPECT_TRUE(PassedSockets().empty());
  setenv("NOTIFY_SOCKET", "/tmp/ubd-nobody-listens-here", 1);
  NotifyReady("x");
  unsetenv("NOTIFY_SOCKET");
}

TEST(Notify, StartTimeGrowsOnlyWithProgressAndOnlyUpToTheCap) {
  Manager manager(PathName());
  FakeClock clock;
  BootNotifier boot(absl::Seconds(75), clock);
  boot.Progress("pools", 0, 100);
  EXPECT_EQ(manager.Received(), "STATUS=pools 0/100");
  clock.now = clock.now + absl::Seconds(10);
  boot.Progress("pools", 0, 100);  // a stuck boot buys no time
  EXPECT_EQ(manager.Received(), "");
  boot.Progress("pools", 1, 100);
  EXPECT_EQ(manager.Received(), "STATUS=pools 1/100\nEXTEND_TIMEOUT_USEC=30000000");
  clock.now = clock.now + absl::Seconds(40);
  boot.Progress("pools", 1, 100);
  EXPECT_EQ(manager.Received(), "");
  boot.Progress("pools", 2, 100);  // 50 s are gone, 25 are left
  EXPECT_EQ(manager.Received(), "STATUS=pools 2/100\nEXTEND_TIMEOUT_USEC=25000000");
  clock.now = clock.now + absl::Seconds(25);
  boot.Progress("pools", 3, 100);  // at the cap: status only
  EXPECT_EQ(manager.Received(), "STATUS=pools 3/100");
}

TEST(Notify, AFastBootDoesNotFloodTheManager) {
  Manager manager(PathName());
  FakeClock clock;
  BootNotifier boot(absl::Minutes(10), clock);
  int messages = 0;
  std::string last;
  for (uint64_t done = 1; done <= 4096; ++done) {
    clock.now = clock.now + absl::Microseconds(100);
    boot.Progress("pools", done, 4096);
    std::string got = manager.Received();
    if (got.empty()) continue;
    ++messages;
    EXPECT_THAT(got, HasSubstr(absl::StrCat(done, "/4096")));
    last = got;
  }
  EXPECT_THAT(last, HasSubstr("4096/4096"));
  EXPECT_GE(messages, 2);
  EXPECT_LE(messages, 5);
}

TEST(Notify, WatchdogIsOnlyForTheProcessItNames) {
  setenv("WATCHDOG_USEC", "2000000", 1);
  unsetenv("WATCHDOG_PID");
  EXPECT_EQ(WatchdogPeriod(), absl::Seconds(2));
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  EXPECT_EQ(WatchdogPeriod(), absl::Seconds(2));
  setenv("WATCHDOG_PID", absl::StrCat(getpid() + 1).c_str(), 1);
  EXPECT_EQ(WatchdogPeriod(), std::nullopt);
  unsetenv("WATCHDOG_PID");
  for (const char* bad : {"0", "", "x"}) {
    setenv("WATCHDOG_USEC", bad, 1);
    EXPECT_EQ(WatchdogPeriod(), std::nullopt) << bad;
  }
  unsetenv("WATCHDOG_USEC");
}

// Puts `count` sockets where systemd puts them, and the variables; for a child.
void PassSockets(int count, const char* names, pid_t pid) {
  for (int i = 0; i < count; ++i) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);  // inheritable, as systemd passes them
    if (fd != 3 + i) {
      dup2(fd, 3 + i);
      close(fd);
    }
  }
  setenv("LISTEN_FDS", absl::StrCat(count).c_str(), 1);
  setenv("LISTEN_PID", absl::StrCat(pid).c_str(), 1);
  setenv("LISTEN_FDNAMES", names, 1);
}

void InChild(void (*body)()) {
  pid_t child = fork();
  if (child == 0) {
    // As systemd starts a service: nothing open but stdin, stdout and stderr.
    close_range(3, ~0U, 0);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(PassedSockets, AreFoundByNameAndNotInheritedFurther) {
  InChild([] {
    PassSockets(2, "ubd.sock:lifeline.sock", getpid());
    auto sockets = PassedSockets();
    EXPECT_THAT(sockets, ElementsAre(Key("lifeline.sock"), Key("ubd.sock")));
    EXPECT_EQ(sockets["ubd.sock"].get(), 3);
    EXPECT_EQ(sockets["lifeline.sock"].get(), 4);
    EXPECT_TRUE(fcntl(3, F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(fcntl(4, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(getenv("LISTEN_FDS"), nullptr);
    EXPECT_TRUE(PassedSockets().empty());
  });
}

TEST(PassedSockets, OfAnotherProcessAreNotTaken) {
  InChild([] {
    PassSockets(1, "ubd.sock", getppid());
    EXPECT_TRUE(PassedSockets().empty());
    EXPECT_GE(fcntl(3, F_GETFD), 0) << "somebody else's descriptor was closed";
  });
}

TEST(PassedSockets, TwoOfOneNameDoNotLeak) {
  InChild([] {
    PassSockets(2, "ubd.sock:ubd.sock", getpid());
    auto sockets = PassedSockets();
    EXPECT_THAT(sockets, ElementsAre(Key("ubd.sock")));
    EXPECT_EQ(sockets["ubd.sock"].get(), 3);
    EXPECT_EQ(fcntl(4, F_GETFD), -1);
  });
}

}  // namespace
}  // namespace ubd
