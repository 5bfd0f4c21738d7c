// The kernel's answer to "does anybody else hold this memory?", for small and huge pages.
#include "daemon/memory/sole_holder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/wire/fd_message.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

class SoleHolder : public ::testing::TestWithParam<Bytes> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PAGES(GetParam());
    IgnoreLeaseSignals();
    absl::StatusOr<std::unique_ptr<MemfdBacking>> made =
        MemfdBacking::Create({.pool = "t", .bytes = kBlock, .page_size = GetParam()});
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE((*made)->Populate().ok());
    backing_ = std::move(*made);
  }
  bool Sole() { return IsSoleHolder(backing_->fd()); }
  ub::UniqueFd Holder(Access access) {
    absl::StatusOr<ub::UniqueFd> fd = ReopenMemfd(backing_->fd(), access);
    return fd.ok() ? std::move(*fd) : ub::UniqueFd();
  }
  std::unique_ptr<MemfdBacking> backing_;
};

TEST_P(SoleHolder, PassesAloneInSpiteOfTheWitnessMapping) {
  EXPECT_TRUE(Sole());
  EXPECT_TRUE(Sole()) << "the lease lock was left on";
}

TEST_P(SoleHolder, SeesASecondDescription) {
  for (Access access : {Access::kReadWrite, Access::kReadOnly}) {
    ub::UniqueFd holder = Holder(access);
    ASSERT_TRUE(holder.valid());
    EXPECT_FALSE(Sole());
    holder.reset();
    EXPECT_TRUE(Sole());
  }
}

TEST_P(SoleHolder, SeesABareMapping) {
  for (Access access : {Access::kReadWrite, Access::kReadOnly}) {
    ub::UniqueFd holder = Holder(access);
    Mapping mapping(holder.get(), kBlock, PROT_READ);
    ASSERT_TRUE(mapping.ok());
    holder.reset();
    EXPECT_FALSE(Sole());
    mapping.Unmap();
    EXPECT_TRUE(Sole());
  }
}

TEST_P(SoleHolder, SeesAForkedChildsMapping) {
  ub::UniqueFd holder = Holder(Access::kReadWrite);
  Mapping mapping(holder.get(), kBlock, PROT_READ | PROT_WRITE);
  ASSERT_TRUE(mapping.ok());
  int gate[2];
  ASSERT_EQ(::pipe2(gate, O_CLOEXEC), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(gate[1]);
    char byte;
    [[maybe_unused]] ssize_t got = ::read(gate[0], &byte, 1);
    ::_exit(0);
  }
  holder.reset();
  mapping.Unmap();
  EXPECT_FALSE(Sole());
  ::close(gate[0]);
  ::close(gate[1]);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(Sole());
}

TEST_P(SoleHolder, SeesADescriptorInFlight) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  {
    ub::UniqueFd holder = Holder(Access::kReadWrite);
    const std::byte byte{1};
    int fd = holder.get();
    ASSERT_TRUE(ub::wire::SendPacket(ends[0], {&byte, 1}, {&fd, 1}).ok());
  }
  EXPECT_FALSE(Sole());
  {
    absl::StatusOr<ub::wire::Packet> packet = ub::wire::ReceivePacket(ends[1]);
    ASSERT_TRUE(packet.ok());
    ASSERT_EQ(packet->fds.size(), 1U);
    EXPECT_FALSE(Sole());
  }
  EXPECT_TRUE(Sole());
  ::close(ends[0]);
  ::close(ends[1]);
}

// The fd store of a service manager holds such a dup.
TEST_P(SoleHolder, IsNotDisturbedByADupOfTheDaemonsOwnDescription) {
  ub::UniqueFd dup(::fcntl(backing_->fd(), F_DUPFD_CLOEXEC, 0));
  EXPECT_TRUE(Sole());
}

TEST_P(SoleHolder, ProbePasses) {
  absl::Status status = ProbeSoleHolderTest(backing_->fd(), kBlock.count());
  EXPECT_TRUE(status.ok()) << status;
}

// Stands for a kernel whose test never passes: somebody else holds the memory all the time.
TEST_P(SoleHolder, ProbeNoticesATestThatNeverPasses) {
  ub::UniqueFd other = Holder(Access::kReadWrite);
  EXPECT_FALSE(ProbeSoleHolderTest(backing_->fd(), kBlock.count()).ok());
}

TEST_P(SoleHolder, LeavesNoLockThatBlocksAHolder) {
  ASSERT_TRUE(Sole());
  EXPECT_EQ(::fcntl(backing_->fd(), F_GETLEASE), F_UNLCK);
  EXPECT_TRUE(Holder(Access::kReadWrite).valid());
}

INSTANTIATE_TEST_SUITE_P(Pages, SoleHolder, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
