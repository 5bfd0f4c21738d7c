// Files that the daemon may open itself.
#include "daemon/engine/file_target.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "daemon/engine/close_aside.h"
#include "proto/wire/error.h"
#include "tests/unit/engine/file_testing.h"

namespace ubd::testing {
namespace {

using ub::wire::PathReason;

class OwnFile : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_DIRECT(folder_);
    path_ = folder_.Write("data", Pattern(8192));
  }
  std::shared_ptr<FileTarget> Open(int flags, const FileRules& rules = {}) {
    auto target = FileTarget::Open(OpenFile(path_, flags), 0, rules);
    EXPECT_TRUE(target.ok()) << target.status();
    return target.ok() ? *std::move(target) : nullptr;
  }
  Folder folder_;
  std::string path_;
};

TEST_F(OwnFile, IsDirectAndStaged) {
  for (int flags : {O_RDWR, O_RDWR | O_DIRECT, O_RDWR | O_APPEND, O_RDWR | O_NONBLOCK}) {
    auto target = Open(flags);
    ASSERT_NE(target, nullptr);
    const FileFacts& facts = target->facts();
    EXPECT_TRUE(facts.trusted && facts.readable && facts.writable && facts.direct && facts.own_description);
    EXPECT_FALSE(facts.block_device);
    EXPECT_EQ(facts.why_not, PathReason::kNone);
    EXPECT_GT(facts.memory_align, 1U);
    EXPECT_GT(facts.offset_align, 1U);
    EXPECT_EQ(facts.bytes, 8192U);
    const int odd = O_APPEND | O_NONBLOCK;
    EXPECT_EQ(::fcntl(target->direct_fd(), F_GETFL) & (O_DIRECT | odd), O_DIRECT);
    EXPECT_EQ(::fcntl(target->staged_fd(), F_GETFL) & (O_DIRECT | odd), 0);
    for (int fd : {target->direct_fd(), target->staged_fd()}) EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
    EXPECT_FALSE(target->FlagsChanged());
  }
}

TEST_F(OwnFile, ReadsWhatIsThere) {
  auto target = Open(O_RDONLY);
  ASSERT_NE(target, nullptr);
  Memory4K memory(8192);
  for (int fd : {target->direct_fd(), target->staged_fd()}) {
    ASSERT_EQ(::pread(fd, memory.data(), 8192, 0), 8192);
    EXPECT_EQ(std::string(memory.data(), 8192), Pattern(8192));
  }
}

// The daemon may be root: what it opens must still allow no more than the client's own descriptor.
TEST_F(OwnFile, GivesNoMoreThanTheClientHas) {
  auto reader = Open(O_RDONLY);
  auto writer = Open(O_WRONLY);
  ASSERT_TRUE(reader != nullptr && writer != nullptr);
  EXPECT_TRUE(reader->facts().readable && !reader->facts().writable);
  EXPECT_TRUE(writer->facts().writable && !writer->facts().readable);
  Memory4K memory(4096);
  for (int fd : {reader->direct_fd(), reader->staged_fd()}) {
    EXPECT_EQ(::pwrite(fd, memory.data(), 4096, 0), -1);
    EXPECT_EQ(errno, EBADF);
  }
  for (int fd : {writer->direct_fd(), writer->staged_fd()}) {
    EXPECT_EQ(::pread(fd, memory.data(), 4096, 0), -1);
    EXPECT_EQ(errno, EBADF);
  }
}

TEST_F(OwnFile, KeepsTheDurabilityThatTheClientAskedFor) {
  auto target = Open(O_RDWR | O_SYNC);
  ASSERT_NE(target, nullptr);
  for (int fd : {target->direct_fd(), target->staged_fd()}) EXPECT_EQ(::fcntl(fd, F_GETFL) & O_SYNC, O_SYNC);
}

TEST_F(OwnFile, ThatIsDeletedOrTruncatedIsFine) {
  ub::UniqueFd fd = OpenFile(path_, O_RDWR);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ub::UniqueFd other(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  auto target = FileTarget::Open(std::move(fd), 0, FileRules());
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_TRUE((*target)->facts().direct && (*target)->facts().own_description);
  ASSERT_EQ(::ftruncate(other.get(), 100), 0);
  EXPECT_EQ((*target)->facts().bytes, 8192U);
  Memory4K memory(4096);
  EXPECT_EQ(::pread((*target)->direct_fd(), memory.data(), 4096, 0), 100);
}

TEST_F(OwnFile, FlagsOfTheClientsDescriptorAreNobodysBusiness) {
  ub::UniqueFd fd = OpenFile(path_, O_RDWR);
  ub::UniqueFd other(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  auto target = FileTarget::Open(std::move(fd), 0, FileRules());
  ASSERT_TRUE(target.ok()) << target.status();
  ASSERT_EQ(::fcntl(other.get(), F_SETFL, O_APPEND | O_DIRECT), 0);
  EXPECT_FALSE((*target)->FlagsChanged());
  EXPECT_EQ(::fcntl((*target)->staged_fd(), F_GETFL) & (O_APPEND | O_DIRECT), 0);
}

TEST_F(OwnFile, LeaksNoDescriptor) {
  auto count = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = count();
  for (int i = 0; i < 10; ++i) Open(O_RDWR);
  EXPECT_EQ(count(), before);
}

// A lease of the client on its own file would make a second open() wait for the client to give it up.
TEST_F(OwnFile, ThatTheClientHasLeasedIsUsedThroughItsDescription) {
  std::signal(SIGIO, SIG_IGN);
  ub::UniqueFd fd = OpenFile(path_, O_RDWR | O_DIRECT);
  ub::UniqueFd other(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (::fcntl(fd.get(), F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases on this file system";
  auto target = FileTarget::Open(std::move(fd), 0, FileRules());
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_FALSE((*target)->facts().own_description);
  EXPECT_TRUE((*target)->facts().direct);
  ASSERT_EQ(::fcntl(other.get(), F_SETFL, 0), 0);
  EXPECT_TRUE((*target)->FlagsChanged());
}

TEST_F(OwnFile, IsNotTrustedWhereTheRulesDoNotListItsFileSystem) {
  auto target = Open(O_RDWR, {.file_systems = {"zfs"}});
  ASSERT_NE(target, nullptr);
  EXPECT_FALSE(target->facts().trusted);
  EXPECT_EQ(target->facts().why_not, PathReason::kFsNotTrusted);
  EXPECT_NE(target->facts().file_system, "");
  EXPECT_EQ(target->direct_fd(), -1);
  EXPECT_EQ(target->staged_fd(), -1);
}

TEST_F(OwnFile, IsSlowWhereTheRulesSaySo) {
  auto target = Open(O_RDWR);
  ASSERT_NE(target, nullptr);
  // The prefix "" is in every disk's name.
  FileRules all;
  all.slow_devices = {""};
  struct stat stat;
  ASSERT_EQ(::stat(path_.c_str(), &stat), 0);
  if (major(stat.st_dev) == 0) return;  // no disk of its own
  EXPECT_TRUE(Open(O_RDWR, all)->facts().slow);
  all.slow_devices = {};
  EXPECT_FALSE(Open(O_RDWR, all)->facts().slow);
}

TEST(BlockDevice, IsATarget) {
  for (const char* path : {"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"}) {
    ub::UniqueFd fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
    if (!fd.valid()) continue;
    auto target = FileTarget::Open(std::move(fd), 0, FileRules());
    ASSERT_TRUE(target.ok()) << target.status();
    const FileFacts& facts = (*target)->facts();
    EXPECT_TRUE(facts.trusted && facts.block_device && facts.readable && !facts.writable) << path;
    EXPECT_TRUE(facts.direct) << path;
    EXPECT_GE(facts.offset_align, 1U);
    EXPECT_EQ(facts.slow, std::string_view(path) == "/dev/loop0");
    if (facts.bytes == 0) return;  // no medium
    Memory4K memory(4096);
    EXPECT_EQ(::pread((*target)->direct_fd(), memory.data(), 4096, 0), 4096);
    return;
  }
  GTEST_SKIP() << "no block device that this user may open";
}

}  // namespace
}  // namespace ubd::testing
