#include "client/src/grant_inbox.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <memory>
#include <thread>

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

class GrantInboxTest : public testing::Test {
 protected:
  GrantInboxTest() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) ::abort();
    client_.reset(ends[0]);
    daemon_.reset(ends[1]);
    inbox_ = std::make_unique<GrantInbox>(client_.get());
  }

  wire::Grant Frame(uint64_t lease, uint32_t first, uint32_t count, uint32_t total, uint64_t delivery = 1) {
    auto grant = wire::NewFrame<wire::Grant>();
    grant.lease = lease;
    grant.generation = 100 + lease;
    grant.first = first;
    grant.count = count;
    grant.total = total;
    grant.access = static_cast<uint32_t>(Access::kReadWrite);
    grant.delivery = delivery;
    return grant;
  }
  void Send(const wire::Grant& grant, size_t fds) {
    std::vector<int> numbers(fds, memfd_.get());
    absl::Status sent = wire::SendPacket(daemon_.get(), wire::AsBytes(grant), numbers);
    ASSERT_TRUE(sent.ok()) << sent;
  }
  void Fail(uint64_t lease) {
    auto failed = wire::NewFrame<wire::GrantFailed>();
    failed.lease = lease;
    failed.code = static_cast<int32_t>(absl::StatusCode::kResourceExhausted);
    wire::SetText(failed.reason, "DAEMON_FD_LIMIT");
    wire::SetText(failed.text, "no fds left");
    ASSERT_TRUE(wire::SendPacket(daemon_.get(), wire::AsBytes(failed), {}).ok());
  }
  GrantWanted Wanted(uint64_t lease, uint64_t blocks) {
    return {
        .lease = LeaseId(lease), .generation = Generation(100 + lease), .blocks = blocks, .access = Access::kReadWrite};
  }
  // Receives and notes in which order blocks came.
  absl::Status Receive(uint64_t lease, uint64_t blocks, absl::Duration wait = absl::Seconds(5)) {
    GrantInbox::Expectation expectation(*inbox_);
    return inbox_->Receive(Wanted(lease, blocks), Deadline::After(wait),
                           [&](uint32_t first, absl::Span<const UniqueFd> fds) {
                             for (size_t i = 0; i < fds.size(); ++i)
                               blocks_.push_back(first + static_cast<uint32_t>(i));
                             return absl::OkStatus();
                           });
  }

  UniqueFd memfd_ = MakeMemfd(4096);
  UniqueFd client_;
  UniqueFd daemon_;
  std::unique_ptr<GrantInbox> inbox_;
  std::vector<uint32_t> blocks_;
};

TEST_F(GrantInboxTest, BatchesOutOfOrderOrFdsLeftOpen) {
  int before = OpenFds();
  Send(Frame(1, 0, 2, 5), 2);
  Send(Frame(1, 2, 3, 5), 3);
  ASSERT_TRUE(Receive(1, 5).ok());
  EXPECT_EQ(blocks_, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(GrantInboxTest, BadNumbersAccepted) {
  uint64_t lease = 0;
  for (auto [first, count, total, fds] :
       std::vector<std::tuple<uint32_t, uint32_t, uint32_t, size_t>>{{1, 1, 2, 1},
                                                                     {0, 0, 2, 0},
                                                                     {0, 3, 2, 3},
                                                                     {0, 1, 2, 2},
                                                                     {0, 2, 2, 1},
                                                                     {0, 254, 300, 2},
                                                                     {0, UINT32_MAX, 2, 1},
                                                                     {0, 2, 3, 2},
                                                                     {UINT32_MAX, 2, 2, 2}}) {
    ++lease;
    int before = OpenFds();
    Send(Frame(lease, first, count, total), fds);
    absl::Status status = Receive(lease, 2, absl::Milliseconds(200));
    EXPECT_EQ(ReasonOf(status), Reason::kMalformedFrame) << first << " " << count << " " << total << " " << status;
    EXPECT_EQ(OpenFds(), before);
  }
}

TEST_F(GrantInboxTest, GrantOfAnotherGenerationOrAccessTaken) {
  wire::Grant grant = Frame(1, 0, 1, 1);
  grant.generation = 5;
  Send(grant, 1);
  EXPECT_EQ(ReasonOf(Receive(1, 1)), Reason::kMalformedFrame);
  grant = Frame(2, 0, 1, 1);
  grant.access = static_cast<uint32_t>(Access::kReadOnly);
  Send(grant, 1);
  EXPECT_EQ(ReasonOf(Receive(2, 1)), Reason::kMalformedFrame);
  EXPECT_TRUE(blocks_.empty());
}

TEST_F(GrantInboxTest, LateFramesOfAFailedLeaseKeepFdsOpen) {
  Send(Frame(1, 1, 1, 3), 1);
  EXPECT_FALSE(Receive(1, 3).ok());
  int before = OpenFds();
  Send(Frame(1, 2, 1, 3), 1);
  Send(Frame(2, 0, 1, 1), 1);
  ASSERT_TRUE(Receive(2, 1).ok());
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(GrantInboxTest, GivenUpGrantsPileUp) {
  int before = OpenFds();
  for (uint64_t lease = 1; lease <= 50; ++lease) Send(Frame(lease, 0, 1, 1), 1);
  inbox_->DrainIfIdle();
  EXPECT_EQ(OpenFds(), before);
  {
    GrantInbox::Expectation expectation(*inbox_);
    Send(Frame(60, 0, 1, 1), 1);
    inbox_->DrainIfIdle();  // somebody's answer is still to come
    EXPECT_TRUE(Receive(60, 1).ok());
  }
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(GrantInboxTest, RepeatedDeliveryMixedUp) {
  // The first delivery broke off after one batch; the retried request gets all of it anew.
  Send(Frame(1, 0, 1, 3, 1), 1);
  Send(Frame(1, 0, 2, 3, 2), 2);
  Send(Frame(1, 1, 2, 3, 1), 2);
  Send(Frame(1, 2, 1, 3, 2), 1);
  ASSERT_TRUE(Receive(1, 3).ok());
  EXPECT_EQ(blocks_.back(), 2u);
}

TEST_F(GrantInboxTest, FailureOfTheDaemonHidden) {
  Send(Frame(1, 0, 1, 2), 1);
  Fail(1);
  absl::Status status = Receive(1, 2);
  EXPECT_EQ(ReasonOf(status), Reason::kDaemonFdLimit);
  EXPECT_EQ(status.message(), "no fds left");
}

TEST_F(GrantInboxTest, WaitsForeverForAStalledDaemon) {
  absl::Time start = absl::Now();
  Send(Frame(1, 0, 1, 2), 1);
  EXPECT_EQ(ReasonOf(Receive(1, 2, absl::Milliseconds(100))), Reason::kNotAnswering);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
}

TEST_F(GrantInboxTest, HangUpOrGarbageMissed) {
  std::array<char, 40> garbage = {};
  ASSERT_TRUE(wire::SendPacket(daemon_.get(), wire::AsBytes(garbage), {}).ok());
  EXPECT_EQ(ReasonOf(Receive(1, 1)), Reason::kMalformedFrame);
  EXPECT_EQ(ReasonOf(Receive(2, 1)), Reason::kMalformedFrame);  // for good
  GrantInbox fresh(client_.get());
  daemon_.reset();
  GrantInbox::Expectation expectation(fresh);
  absl::Status status = fresh.Receive(Wanted(1, 1), Deadline::After(absl::Seconds(5)), nullptr);
  EXPECT_EQ(ReasonOf(status), Reason::kSessionEnded);
}

TEST_F(GrantInboxTest, TooFewDescriptorsTakenForSuccess) {
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(OpenFds()) + 2;
  Send(Frame(1, 0, 20, 20), 20);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  absl::Status status = Receive(1, 20);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kClientFdLimit);
  EXPECT_NE(std::string(status.message()).find("ulimit -n"), std::string::npos);
}

TEST_F(GrantInboxTest, LeaseGivenToAnotherThread) {
  constexpr uint64_t kThreads = 8;
  constexpr uint32_t kBlocks = 300;
  std::vector<std::thread> threads;
  for (uint64_t lease = 1; lease <= kThreads; ++lease) {
    threads.emplace_back([&, lease] {
      GrantInbox::Expectation expectation(*inbox_);
      uint32_t next = 0;
      absl::Status status = inbox_->Receive(Wanted(lease, kBlocks), Deadline::After(absl::Seconds(30)),
                                            [&](uint32_t first, absl::Span<const UniqueFd> fds) {
                                              EXPECT_EQ(first, next);
                                              next += static_cast<uint32_t>(fds.size());
                                              return absl::OkStatus();
                                            });
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(next, kBlocks);
    });
  }
  // Interleaved; the socket's own limits pace the sender, as credits do in the daemon.
  for (uint32_t first = 0; first < kBlocks; first += 100) {
    for (uint64_t lease = kThreads; lease >= 1; --lease) {
      std::vector<int> numbers(100, memfd_.get());
      wire::Grant grant = Frame(lease, first, 100, kBlocks);
      while (!wire::SendPacket(daemon_.get(), wire::AsBytes(grant), numbers).ok()) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ub
