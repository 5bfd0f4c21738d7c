// What is no target, and what the daemon must not even ask.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "daemon/engine/close_aside.h"
#include "daemon/engine/file_target.h"
#include "proto/wire/error.h"
#include "tests/support/silent_fuse.h"
#include "tests/unit/engine/file_testing.h"

namespace ubd::testing {
namespace {

using ub::wire::PathReason;

void ExpectBad(ub::UniqueFd fd, const std::string& word) {
  ASSERT_TRUE(fd.valid()) << word;
  auto target = FileTarget::Open(std::move(fd), 0, FileRules());
  ASSERT_FALSE(target.ok()) << word;
  EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ub::ReasonOf(target.status()), ub::Reason::kBadFile);
  EXPECT_NE(std::string(target.status().message()).find(word), std::string::npos) << target.status();
}

void ExpectUntrusted(ub::UniqueFd fd, const std::string& file_system) {
  ASSERT_TRUE(fd.valid()) << file_system;
  auto target = FileTarget::Open(std::move(fd), 0, FileRules());
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_FALSE((*target)->facts().trusted);
  EXPECT_EQ((*target)->facts().file_system, file_system);
  EXPECT_EQ((*target)->facts().why_not, PathReason::kFsNotTrusted);
  EXPECT_EQ((*target)->direct_fd(), -1);
  EXPECT_EQ((*target)->staged_fd(), -1);
  EXPECT_FALSE((*target)->FlagsChanged());
}

TEST(NoTarget, WhatIsNoFile) {
  int pipe_ends[2], sockets[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  for (int fd : pipe_ends) ExpectBad(ub::UniqueFd(fd), "pipe");
  for (int fd : sockets) ExpectBad(ub::UniqueFd(fd), "socket");
  ExpectBad(ub::UniqueFd(::eventfd(0, EFD_CLOEXEC)), "eventfd");
  ExpectBad(OpenFile("/proc/self/ns/mnt", O_RDONLY), "mnt:");
}

TEST(NoTarget, NothingAtAll) {
  auto target = FileTarget::Open(ub::UniqueFd(), 0, FileRules());
  EXPECT_EQ(ub::ReasonOf(target.status()), ub::Reason::kBadFile);
}

TEST(NoTarget, NodesOfOtherKinds) {
  Folder folder;
  ExpectBad(OpenFile(folder.path(), O_RDONLY), "directory");
  ExpectBad(OpenFile("/dev", O_RDONLY), "directory");
  ExpectBad(OpenFile("/dev/null", O_RDWR), "character device");
  ExpectBad(OpenFile("/dev/zero", O_RDONLY), "character device");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  ExpectBad(OpenFile(folder / "fifo", O_RDWR), "pipe");
}

TEST(NoTarget, OpenedForNoTransfer) {
  Folder folder;
  std::string path = folder.Write("data", "x");
  ExpectBad(OpenFile(path, O_PATH), "O_PATH");
  ExpectBad(OpenFile(path, O_ACCMODE), "neither reading nor writing");
}

TEST(Untrusted, FileSystemsOffTheList) {
  ub::UniqueFd shared = OpenFile("/dev/shm/ubd-file-target-test", O_RDWR | O_CREAT);
  if (!shared.valid()) GTEST_SKIP() << "no /dev/shm";
  ::unlink("/dev/shm/ubd-file-target-test");
  ExpectUntrusted(std::move(shared), "tmpfs");
  ExpectUntrusted(OpenFile("/proc/self/stat", O_RDONLY), "proc");
  ExpectUntrusted(OpenFile("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY), "sysfs");
  ExpectUntrusted(ub::UniqueFd(::memfd_create("data", MFD_CLOEXEC)), "unknown");
}

class SilentServer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = SilentFuse::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    auto mounted = SilentFuse::Mount(folder_.path());
    ASSERT_TRUE(mounted.ok()) << mounted.status();
    fuse_ = *std::move(mounted);
  }
  Folder folder_;
  std::unique_ptr<SilentFuse> fuse_;
};

// Whoever asks such a server anything waits beyond SIGKILL; close() asks too.
TEST_F(SilentServer, IsNotAsked) {
  for (int flags : {O_RDONLY, O_RDWR, O_RDWR | O_DIRECT, O_RDONLY | O_APPEND}) {
    ub::UniqueFd fd = OpenFile(fuse_->file(), flags);
    ASSERT_TRUE(fd.valid()) << flags;
    ExpectUntrusted(std::move(fd), "fuse");
  }
  EXPECT_GT(ClosesUnderWay(), 0U) << "the server answered; this shows nothing";
}

TEST_F(SilentServer, IsNotAskedAboutAMountThatIsGone) {
  ub::UniqueFd fd = OpenFile(fuse_->file(), O_RDONLY);
  ASSERT_EQ(::umount2(folder_.path().c_str(), MNT_DETACH), 0);
  ExpectUntrusted(std::move(fd), "unknown");
}

// The client lives in a mount namespace of its own, as in a container: only its own table knows the mount.
TEST(OtherNamespace, MountsAreFoundInTheClientsTable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount";
  Folder folder;
  SKIP_WITHOUT_DIRECT(folder);
  folder.Write("data", Pattern(4096));
  int ready[2], done[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(done, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    bool bound = ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 ::mount(folder.path().c_str(), folder.path().c_str(), nullptr, MS_BIND, nullptr) == 0;
    char byte = bound ? '1' : '0';
    if (::write(ready[1], &byte, 1) == 1) [[maybe_unused]]
      ssize_t end = ::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char bound = 0;
  ASSERT_EQ(::read(ready[0], &bound, 1), 1);
  ASSERT_EQ(bound, '1');
  std::string theirs = absl::StrCat("/proc/", child, "/root", folder / "data");
  auto unknown = FileTarget::Open(OpenFile(theirs, O_RDWR), 0, FileRules());
  auto known = FileTarget::Open(OpenFile(theirs, O_RDWR), child, FileRules());
  for (int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(unknown.ok() && known.ok());
  EXPECT_FALSE((*unknown)->facts().trusted);
  EXPECT_TRUE((*known)->facts().trusted && (*known)->facts().direct && (*known)->facts().own_description);
}

}  // namespace
}  // namespace ubd::testing
