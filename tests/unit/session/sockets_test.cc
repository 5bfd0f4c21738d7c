#include "daemon/session/sockets.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "tests/unit/session/harness.h"

namespace ubd {
namespace {

using ub::Reason;
using ub::ReasonOf;
using ub::UniqueFd;
using ::ubd::testing::Child;
using ::ubd::testing::ConnectTo;
using ::ubd::testing::TempDir;

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class ListeningSocketTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<ListeningSocket>> Bind(SocketOptions options = {}) {
    return ListeningSocket::Bind(path, SOCK_STREAM, options);
  }
  size_t Entries() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++count;
    return count;
  }
  TempDir dir;
  std::string path = dir / "ubd.sock";
};

TEST_F(ListeningSocketTest, UmaskDecidesTheMode) {
  for (mode_t mask : {mode_t{0}, mode_t{077}, mode_t{0777}}) {
    const mode_t old = ::umask(mask);
    auto socket = Bind({.mode = 0660});
    ::umask(old);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(ModeOf(path), 0660u) << mask;
  }
}

TEST_F(ListeningSocketTest, UnknownGroupStarts) {
  auto socket = Bind({.group = "no-such-group-here"});
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.status().message().find("no-such-group-here"), absl::string_view::npos);
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(ListeningSocketTest, GroupIsNotSet) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file to any group";
  auto socket = Bind({.mode = 0660, .group = "nogroup"});
  ASSERT_TRUE(socket.ok()) << socket.status();
  struct stat info = {};
  ASSERT_EQ(::lstat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, ::getgrnam("nogroup")->gr_gid);
}

TEST_F(ListeningSocketTest, WrongPeopleConnect) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  auto socket = Bind({.mode = 0660, .group = "nogroup"});
  ASSERT_TRUE(socket.ok());
  const gid_t group = ::getgrnam("nogroup")->gr_gid;
  auto connect_as = [&](gid_t supplementary) {
    Child child([&](const Child::Channel&) {
      if (!ubd::testing::BecomeUser(20001, 20001, supplementary)) return 99;
      int error = 0;
      ConnectTo(path, SOCK_STREAM, &error);
      return error;
    });
    return child.Wait();
  };
  EXPECT_EQ(connect_as(group), 0) << "a member";
  EXPECT_EQ(connect_as(20001), EACCES) << "not a member";
  EXPECT_TRUE(ConnectTo(path, SOCK_STREAM).valid()) << "root";
}

TEST_F(ListeningSocketTest, DeadDaemonsSocketBlocksTheStart) {
  {
    // As after SIGKILL: the file stays, nobody listens.
    UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  auto socket = Bind();
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(ConnectTo(path, SOCK_STREAM).valid());
}

TEST_F(ListeningSocketTest, ServedSocketIsTakenOver) {
  auto first = Bind();
  ASSERT_TRUE(first.ok());
  struct stat before = {}, after = {};
  ASSERT_EQ(::lstat(path.c_str(), &before), 0);
  auto second = Bind();
  EXPECT_EQ(ReasonOf(second.status()), Reason::kAlreadyRunning);
  ASSERT_EQ(::lstat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ListeningSocketTest, ForeignFileIsRemoved) {
  const std::string target = dir / "target";
  std::ofstream(target) << "precious";
  auto expect_left_alone = [&](const char* what) {
    auto socket = Bind();
    EXPECT_EQ(ReasonOf(socket.status()), Reason::kForeignFile) << what;
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(path))) << what;
    std::filesystem::remove(path);
  };
  std::ofstream(path) << "precious";
  expect_left_alone("file");
  std::filesystem::create_symlink(target, path);
  expect_left_alone("link");
  std::filesystem::create_directory(path);
  expect_left_alone("directory");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_left_alone("fifo");
  EXPECT_TRUE(std::filesystem::exists(target));
  auto seqpacket = ListeningSocket::Bind(path, SOCK_SEQPACKET, {});
  ASSERT_TRUE(seqpacket.ok());
  EXPECT_EQ(ReasonOf(Bind().status()), Reason::kForeignFile) << "a socket of another kind that somebody serves";
}

TEST_F(ListeningSocketTest, LateUnlinkKillsTheSuccessorsPath) {
  auto first = Bind();
  ASSERT_TRUE(first.ok());
  std::filesystem::remove(path);
  auto second = Bind();
  ASSERT_TRUE(second.ok());
  first->reset();
  EXPECT_TRUE(ConnectTo(path, SOCK_STREAM).valid());
  second->reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ListeningSocketTest, LongPathIsCutShort) {
  std::string longest = dir / std::string(107 - dir.path().size() - 1, 'x');
  ASSERT_EQ(longest.size(), 107u);
  auto fits = ListeningSocket::Bind(longest, SOCK_STREAM, {});
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_TRUE(ConnectTo(longest, SOCK_STREAM).valid());
  auto too_long = ListeningSocket::Bind(longest + "x", SOCK_STREAM, {});
  EXPECT_EQ(too_long.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ListeningSocketTest, TwoOfTenAtOnceServe) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 10; ++i) {
      children.push_back(std::make_unique<Child>([&](const Child::Channel& channel) {
        channel.Hear();
        // As the daemon does it: the lock first, so that nobody else probes and removes a stale socket meanwhile.
        auto lock = RuntimeDirLock::Take(dir.path());
        auto socket = lock.ok() ? Bind() : lock.status();
        channel.Say(socket.ok() ? 'y' : ReasonOf(socket.status()) == Reason::kAlreadyRunning ? 'n' : '?');
        channel.Hear();
        return 0;
      }));
    }
    for (auto& child : children) child->channel().Say('g');
    std::string answers;
    for (auto& child : children) answers.push_back(child->channel().Hear());
    EXPECT_EQ(std::count(answers.begin(), answers.end(), 'y'), 1) << answers;
    EXPECT_EQ(std::count(answers.begin(), answers.end(), 'n'), 9) << answers;
    EXPECT_TRUE(ConnectTo(path, SOCK_STREAM).valid());
    children.clear();  // killed: the path stays, stale, for the next round
  }
}

TEST_F(ListeningSocketTest, AdoptedSocketIsRemoved) {
  auto socket = Bind();
  ASSERT_TRUE(socket.ok());
  ListeningSocket::Adopt(UniqueFd(::fcntl((*socket)->fd(), F_DUPFD, 0))).reset();
  EXPECT_TRUE(std::filesystem::exists(path));
}

class RuntimeDirLockTest : public ::testing::Test {
 protected:
  TempDir parent;
  std::string dir = parent / "ubd";
};

TEST_F(RuntimeDirLockTest, SecondOwnerGetsIn) {
  Child owner([&](const Child::Channel& channel) {
    auto lock = RuntimeDirLock::Take(dir);
    channel.Say(lock.ok() ? 'y' : 'n');
    channel.Hear();
    return 0;
  });
  ASSERT_EQ(owner.channel().Hear(), 'y');
  auto second = RuntimeDirLock::Take(dir);
  EXPECT_EQ(ReasonOf(second.status()), Reason::kAlreadyRunning);
  EXPECT_EQ(ub::DetailOf(second.status(), "pid"), absl::StrCat(owner.pid()));
  EXPECT_NE(second.status().message().find(absl::StrCat(owner.pid())), absl::string_view::npos);
  owner.Signal(SIGKILL);
  owner.Wait();
  EXPECT_TRUE(RuntimeDirLock::Take(dir).ok()) << "after the owner was killed";
}

TEST_F(RuntimeDirLockTest, TenAtOnceHaveTwoOwnersOrAWrongPid) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Child>> children;
    std::string results = parent / "results";
    for (int i = 0; i < 10; ++i) {
      children.push_back(std::make_unique<Child>([&](const Child::Channel& channel) {
        channel.Hear();
        auto lock = RuntimeDirLock::Take(dir);
        std::string line = lock.ok() ? absl::StrCat("own ", ::getpid(), "\n")
                                     : absl::StrCat("see ", ub::DetailOf(lock.status(), "pid").value_or("?"), "\n");
        UniqueFd out(::open(results.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
        (void)!::write(out.get(), line.data(), line.size());
        channel.Say('d');
        channel.Hear();
        return 0;
      }));
    }
    for (auto& child : children) child->channel().Say('g');
    for (auto& child : children) ASSERT_EQ(child->channel().Hear(), 'd');
    std::ifstream in(results);
    std::string verb, pid, owner;
    std::vector<std::string> seen;
    while (in >> verb >> pid) {
      if (verb == "own") {
        EXPECT_TRUE(owner.empty());
        owner = pid;
      } else {
        seen.push_back(pid);
      }
    }
    EXPECT_EQ(seen, std::vector<std::string>(9, owner));
    std::filesystem::remove(results);
  }
}

TEST_F(RuntimeDirLockTest, UmaskDecidesTheDirectorysMode) {
  const mode_t old = ::umask(0777);
  auto lock = RuntimeDirLock::Take(dir);
  ::umask(old);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(ModeOf(dir), ::geteuid() == 0 ? 0755u : 0700u);
  EXPECT_EQ(ModeOf(dir + "/ubd.lock"), 0644u);
}

TEST_F(RuntimeDirLockTest, TrapsAreFollowed) {
  std::filesystem::create_directory(parent / "elsewhere");
  std::filesystem::create_directory_symlink(parent / "elsewhere", dir);
  EXPECT_EQ(ReasonOf(RuntimeDirLock::Take(dir).status()), Reason::kForeignFile) << "a link";
  EXPECT_TRUE(std::filesystem::is_empty(parent / "elsewhere"));
  std::filesystem::remove(dir);
  std::filesystem::create_directory(dir);
  ASSERT_EQ(::chmod(dir.c_str(), 0777), 0);
  EXPECT_EQ(RuntimeDirLock::Take(dir).status().code(), absl::StatusCode::kPermissionDenied) << "writable by all";
  ASSERT_EQ(::chmod(dir.c_str(), 0755), 0);
  std::ofstream(parent / "precious") << "x";
  std::filesystem::create_symlink(parent / "precious", dir + "/ubd.lock");
  EXPECT_EQ(ReasonOf(RuntimeDirLock::Take(dir).status()), Reason::kForeignFile) << "lock file is a link";
  EXPECT_EQ(std::filesystem::file_size(parent / "precious"), 1u);
}

TEST_F(RuntimeDirLockTest, AnotherUsersDirectoryIsUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  ASSERT_EQ(::chmod(parent.path().c_str(), 0777), 0);
  Child squatter([&](const Child::Channel&) {
    return ubd::testing::BecomeUser(20001, 20001, 20001) && ::mkdir(dir.c_str(), 0755) == 0 ? 0 : 1;
  });
  ASSERT_EQ(squatter.Wait(), 0);
  EXPECT_EQ(RuntimeDirLock::Take(dir).status().code(), absl::StatusCode::kPermissionDenied)
      << "root in another's directory";
  Child other([&](const Child::Channel&) {
    if (!ubd::testing::BecomeUser(20002, 20002, 20002)) return 99;
    return RuntimeDirLock::Take(dir).status().code() == absl::StatusCode::kPermissionDenied ? 0 : 1;
  });
  EXPECT_EQ(other.Wait(), 0);
}

}  // namespace
}  // namespace ubd
