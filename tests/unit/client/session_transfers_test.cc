// Descriptors that the client sends down the lifeline, and calls that nobody waits for.
#include "client/src/session_transfers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "tests/unit/client/test_memory.h"

namespace ub {
namespace {

class OfferTest : public testing::Test {
 protected:
  OfferTest() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) ::abort();
    client_.reset(ends[0]);
    daemon_.reset(ends[1]);
    inbox_ = std::make_unique<GrantInbox>(client_.get());
    transfers_ = std::make_unique<SessionTransfers>(client_.get(), rpc_, *inbox_, nullptr);
  }
  // As many as the socket takes.
  int Fill() {
    int sent = 0;
    while (transfers_->Offer(memfd_.get(), Deadline::After(absl::ZeroDuration())).ok()) ++sent;
    return sent;
  }

  UniqueFd memfd_ = MakeMemfd(4096);
  UniqueFd client_;
  UniqueFd daemon_;
  BrokerRpc rpc_{grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials()), "token"};
  std::unique_ptr<GrantInbox> inbox_;
  std::unique_ptr<SessionTransfers> transfers_;
};

TEST_F(OfferTest, OffersWithoutDescriptorOrWithTheSameNumber) {
  for (uint64_t number : {1, 2, 3}) {
    auto offer = transfers_->Offer(memfd_.get(), Deadline::After(absl::Seconds(1)));
    ASSERT_TRUE(offer.ok()) << offer.status();
    EXPECT_EQ(*offer, number);
    auto packet = wire::ReceivePacket(daemon_.get());
    ASSERT_TRUE(packet.ok());
    auto frame = wire::ParseFrame(packet->bytes);
    ASSERT_TRUE(frame.ok());
    EXPECT_EQ(std::get<wire::Offer>(*frame).offer, number);
    EXPECT_EQ(packet->fds.size(), 1u);
  }
}

TEST_F(OfferTest, DaemonThatDoesNotReadBlocksForEver) {
  EXPECT_GT(Fill(), 0);
  absl::Time begin = absl::Now();
  auto refused = transfers_->Offer(memfd_.get(), Deadline::After(absl::Milliseconds(50)));
  EXPECT_EQ(ReasonOf(refused.status()), Reason::kNotAnswering) << refused.status();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  // Once it reads again, it goes on.
  std::thread reader([&] {
    while (wire::ReceivePacket(daemon_.get()).ok()) {
    }
  });
  auto sent = transfers_->Offer(memfd_.get(), Deadline::After(absl::Seconds(30)));
  EXPECT_TRUE(sent.ok()) << sent.status();
  reader.join();
}

TEST_F(OfferTest, DaemonThatIsGone) {
  daemon_.reset();
  EXPECT_EQ(ReasonOf(transfers_->Offer(memfd_.get(), Deadline::After(absl::Seconds(1))).status()),
            Reason::kSessionEnded);
}

TEST_F(OfferTest, OptionsThatCannotBe) {
  for (uint32_t depth : {0u, 1u, 3u, 8192u, UINT32_MAX}) {
    absl::Status status = transfers_->OpenQueue({.depth = depth}, Deadline::After(absl::Seconds(1))).status();
    EXPECT_EQ(ReasonOf(status), Reason::kBadField) << depth << " " << status;
  }
}

TEST_F(OfferTest, EndedSessionWaits) {
  transfers_->EndAll();
  EXPECT_EQ(ReasonOf(transfers_->OpenQueue({}, Deadline::After(absl::Seconds(30))).status()), Reason::kSessionEnded);
  EXPECT_EQ(ReasonOf(transfers_->OpenFile(memfd_.get(), Deadline::After(absl::Seconds(30))).status()),
            Reason::kSessionEnded);
}

TEST(LaterCallsTest, CallsLostOrOutOfOrder) {
  std::vector<int> order;
  {
    LaterCalls later;
    later.AwaitIdle(absl::InfiniteDuration());
    for (int i = 0; i < 100; ++i) later.Add([&order, i] { order.push_back(i); });
    later.AwaitIdle(absl::Seconds(30));
    EXPECT_EQ(order.size(), 100u);
    later.Add([&] { order.push_back(100); });
  }  // runs what is left
  ASSERT_EQ(order.size(), 101u);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace ub
