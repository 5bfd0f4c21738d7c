// What a client can do with the descriptor that it was given, and what it cannot.
#include "daemon/memory/memfd_backing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/memory/numa.h"
#include "daemon/memory/sole_holder.h"
#include "daemon/memory/witness.h"
#include "proto/wire/error.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

class Backing : public ::testing::TestWithParam<Bytes> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PAGES(GetParam());
    absl::StatusOr<std::unique_ptr<MemfdBacking>> made =
        MemfdBacking::Create({.pool = "t", .bytes = kBlock, .page_size = GetParam()});
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE((*made)->Populate().ok());
    backing_ = std::move(*made);
    client_ = Open(Access::kReadWrite);
    ASSERT_TRUE(client_.valid());
  }
  ub::UniqueFd Open(Access access) {
    absl::StatusOr<ub::UniqueFd> fd = ReopenMemfd(backing_->fd(), access);
    return fd.ok() ? std::move(*fd) : ub::UniqueFd();
  }
  WitnessScan Scan() {
    absl::StatusOr<Pagemap> pagemap = Pagemap::Open();
    EXPECT_TRUE(pagemap.ok()) << pagemap.status();
    absl::StatusOr<WitnessScan> scan = pagemap->Scan(backing_->witness(), kBlock.count(), GetParam().count());
    EXPECT_TRUE(scan.ok()) << scan.status();
    return *scan;
  }
  void Punch(Bytes offset, Bytes bytes) {
    ASSERT_EQ(::fallocate(client_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset.count()),
                          static_cast<off_t>(bytes.count())),
              0);
  }
  std::unique_ptr<MemfdBacking> backing_;
  ub::UniqueFd client_;
};

TEST_P(Backing, ClientCannotShrinkGrowOrSeal) {
  EXPECT_EQ(::ftruncate(client_.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(client_.get(), static_cast<off_t>(kBlock.count() * 2)), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fallocate(client_.get(), 0, static_cast<off_t>(kBlock.count()), static_cast<off_t>(kBlock.count())), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(client_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST_P(Backing, ClientsFlagsStayOnItsOwnDescription) {
  ASSERT_EQ(::fcntl(client_.get(), F_SETFL, O_APPEND), 0);
  int flags = ::fcntl(backing_->fd(), F_GETFL);
  EXPECT_NE(flags & O_NONBLOCK, 0);
  EXPECT_EQ(flags & O_APPEND, 0);
}

TEST_P(Backing, ModeKeepsOtherUidsFromReopening) {
  struct stat facts;
  ASSERT_EQ(::fstat(client_.get(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
}

TEST_P(Backing, AnotherUidCannotTurnReadOnlyIntoReadWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another uid than the owner of the memory";
  ub::UniqueFd read_only = Open(Access::kReadOnly);
  int fd = read_only.get();
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    // As a client that was started as this uid would be: owner of its own /proc entries.
    ::prctl(PR_SET_DUMPABLE, 1);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (::open(path, O_RDWR | O_CLOEXEC) >= 0) ::_exit(2);
    if (errno != EACCES) ::_exit(3);
    if (::mmap(nullptr, kBlock.count(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) ::_exit(4);
    if (::mmap(nullptr, kBlock.count(), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) ::_exit(5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
}

TEST_P(Backing, DescriptorsAreCloseOnExec) {
  ub::UniqueFd read_only = Open(Access::kReadOnly);
  for (int fd : {backing_->fd(), client_.get(), read_only.get()}) EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
}

TEST_P(Backing, EveryPageIsPresentAndZero) {
  EXPECT_TRUE(Scan().complete());
  EXPECT_EQ(Scan().pages, kBlock / GetParam());
  Mapping mapping(client_.get(), kBlock, PROT_READ);
  ASSERT_TRUE(mapping.ok());
  for (size_t i = 0; i < kBlock.count(); i += 512) ASSERT_EQ(mapping.data()[i], 0);
}

TEST_P(Backing, WitnessShowsAHoleForEver) {
  const Bytes at = kBlock - GetParam();
  Punch(at, GetParam());
  WitnessScan scan = Scan();
  EXPECT_EQ(scan.absent, 1U);
  EXPECT_EQ(scan.first_absent, at.count());
  // Filled again by the client: another page, which the witness does not have.
  Mapping mapping(client_.get(), kBlock, PROT_READ | PROT_WRITE);
  ASSERT_TRUE(mapping.ok());
  mapping.data()[at.count()] = 1;
  EXPECT_EQ(Scan().absent, 1U);
}

TEST_P(Backing, WholeBlockPunchedIsSeen) {
  Punch(Bytes(0), kBlock);
  EXPECT_EQ(Scan().absent, kBlock / GetParam());
}

TEST_P(Backing, ClientsWritesLeaveTheWitnessComplete) {
  Mapping mapping(client_.get(), kBlock, PROT_READ | PROT_WRITE);
  ASSERT_TRUE(mapping.ok());
  for (size_t i = 0; i < kBlock.count(); i += 4096) mapping.data()[i] = 1;
  mapping.Unmap();
  EXPECT_TRUE(Scan().complete());
}

TEST_P(Backing, NodeThatExistsIsBoundAndAnotherIsAnError) {
  BackingSpec spec{.pool = "t", .bytes = kBlock, .page_size = GetParam(), .numa_node = MemoryNodes(SystemFiles())[0]};
  absl::StatusOr<std::unique_ptr<MemfdBacking>> bound = MemfdBacking::Create(spec);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE((*bound)->Populate().ok());
  spec.numa_node = 1000;
  EXPECT_FALSE(MemfdBacking::Create(spec).ok());
}

TEST_P(Backing, LockedPagesAreLockedOrRefusedByName) {
  if (GetParam() != ub::KiB(4)) return;  // huge pages need no locking
  BackingSpec spec{.pool = "t", .bytes = kBlock, .page_size = GetParam(), .lock = true, .lock_must_work = true};
  absl::StatusOr<std::unique_ptr<MemfdBacking>> locked = MemfdBacking::Create(spec);
  ASSERT_TRUE(locked.ok()) << locked.status();
  ASSERT_TRUE((*locked)->Populate().ok());
  EXPECT_TRUE((*locked)->pages_stay());
  EXPECT_FALSE(backing_->pages_stay());
  EXPECT_GE(FindNumber(*SystemFiles().Read("/proc/self/status"), "VmLck"), kBlock.count());
}

TEST(WitnessProbe, PassesHere) {
  absl::StatusOr<Pagemap> pagemap = Pagemap::Open();
  ASSERT_TRUE(pagemap.ok());
  EXPECT_TRUE(ProbeWitness(*pagemap).ok());
}

INSTANTIATE_TEST_SUITE_P(Pages, Backing, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
