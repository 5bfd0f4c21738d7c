// A queue's descriptors on their way through the inbox, and a client's own on their way out.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <thread>

#include "client/src/grant_inbox.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "tests/unit/client/test_memory.h"

namespace ub {
namespace {

int OpenFds() {
  int count = 0;
  DIR* dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

class QueueGrantTest : public testing::Test {
 protected:
  QueueGrantTest() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) ::abort();
    client_.reset(ends[0]);
    daemon_.reset(ends[1]);
    inbox_ = std::make_unique<GrantInbox>(client_.get());
  }
  void Send(uint32_t queue, size_t fds) {
    auto grant = wire::NewFrame<wire::QueueGrant>();
    grant.queue = queue;
    grant.sq_entries = 8;
    std::vector<int> numbers(fds, memfd_.get());
    ASSERT_TRUE(wire::SendPacket(daemon_.get(), wire::AsBytes(grant), numbers).ok());
  }
  absl::StatusOr<QueueFds> Receive(uint32_t queue, absl::Duration wait = absl::Seconds(10)) {
    return inbox_->ReceiveQueue(queue, Deadline::After(wait));
  }

  UniqueFd memfd_ = MakeMemfd(4096);
  UniqueFd client_;
  UniqueFd daemon_;
  std::unique_ptr<GrantInbox> inbox_;
};

TEST_F(QueueGrantTest, QueueGivenToAnother) {
  int before = OpenFds();
  {
    GrantInbox::Expectation expectation(*inbox_);
    Send(2, 2);
    Send(1, 2);
    auto first = Receive(1);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(first->frame.queue, 1u);
    EXPECT_TRUE(first->memory.valid());
    EXPECT_TRUE(first->event.valid());
    auto second = Receive(2);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(second->frame.queue, 2u);
    EXPECT_EQ(ReasonOf(Receive(2, absl::Milliseconds(20)).status()), Reason::kNotAnswering);
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(QueueGrantTest, DescriptorsOfNobodyKeptOpen) {
  int before = OpenFds();
  Send(1, 2);
  inbox_->DrainIfIdle();
  EXPECT_EQ(OpenFds(), before);
  {
    GrantInbox::Expectation expectation(*inbox_);
    Send(2, 2);
    Send(3, 2);
    ASSERT_TRUE(Receive(3).ok());
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(QueueGrantTest, WrongNumberOfDescriptors) {
  GrantInbox::Expectation expectation(*inbox_);
  int before = OpenFds();
  for (size_t fds : {0, 1, 3}) {
    Send(static_cast<uint32_t>(10 + fds), fds);
    EXPECT_EQ(ReasonOf(Receive(static_cast<uint32_t>(10 + fds)).status()), Reason::kMalformedFrame);
    EXPECT_EQ(OpenFds(), before);
  }
  Send(20, 2);
  EXPECT_TRUE(Receive(20).ok());
}

TEST_F(QueueGrantTest, WaitersForLeaseAndQueueBlockEachOther) {
  GrantInbox::Expectation expectation(*inbox_);
  std::thread lease([&] {
    GrantWanted wanted = {.lease = LeaseId(5), .generation = Generation(105), .blocks = 1};
    absl::Status status = inbox_->Receive(wanted, Deadline::After(absl::Seconds(30)),
                                          [](uint32_t, absl::Span<const UniqueFd>) { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
  });
  std::thread queue([&] { EXPECT_TRUE(Receive(7, absl::Seconds(30)).ok()); });
  Send(7, 2);
  auto grant = wire::NewFrame<wire::Grant>();
  grant.lease = 5;
  grant.generation = 105;
  grant.count = grant.total = 1;
  grant.access = static_cast<uint32_t>(Access::kReadWrite);
  grant.delivery = 1;
  int fd = memfd_.get();
  ASSERT_TRUE(wire::SendPacket(daemon_.get(), wire::AsBytes(grant), absl::Span<const int>(&fd, 1)).ok());
  lease.join();
  queue.join();
}

TEST_F(QueueGrantTest, HangUpMissed) {
  GrantInbox::Expectation expectation(*inbox_);
  daemon_.reset();
  EXPECT_EQ(ReasonOf(Receive(1).status()), Reason::kSessionEnded);
}

}  // namespace
}  // namespace ub
