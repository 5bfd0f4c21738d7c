// Memory in flight: it is nobody's to hand out until the device is done with it.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "client/src/lease_cache.h"
#include "client/src/use_count.h"
#include "proto/wire/error.h"
#include "tests/unit/client/test_client.h"
#include "ub/queue.h"

namespace ub {
namespace {

class TransferMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Open();
    int fd = ::memfd_create("file", MFD_CLOEXEC);
    file_ = *File::FromDescriptor(client_, fd);
    ::close(fd);
  }
  void Open() { queue_ = *Queue::Open(client_, {.depth = 8}); }
  RingDaemon& daemon() { return *client_.transfers.daemons.back(); }
  std::unique_ptr<SlotPool> Slots(Bytes slot = KiB(512)) {
    return *SlotPool::Create(client_, {.slot = slot, .bytes = MiB(2)});
  }
  Lease Get() { return *client_.Acquire({.bytes = MiB(2)}); }
  absl::Status Submit(const Op& op) { return queue_->Submit({&op, 1}); }
  Op Read(const Lease& lease) { return ReadOp(1, file_, Bytes(0), lease, Bytes(0), Bytes(4096)); }
  size_t Poll() {
    std::array<Completion, 16> out;
    return queue_->Poll(absl::MakeSpan(out));
  }
  // What one deadline looks like: an answer now, the end later.
  void AnswerLate(const wire::SubmitEntry& entry) {
    wire::CompletionEntry late = daemon().Done(entry, wire::TransferError::kDeadline);
    late.flags = wire::kCompletionMore;
    daemon().Answer(late);
  }
  Op WithDeadline(Op op) {
    op.entry.deadline_ms = 1;
    return op;
  }

  TestClient client_;
  File file_;
  std::unique_ptr<Queue> queue_;
};

TEST_F(TransferMemoryTest, LeaseGivenBackInFlight) {
  Lease lease = Get();
  ASSERT_TRUE(Submit(Read(lease)).ok());
  ASSERT_TRUE(Submit(CopyOp(2, lease, Bytes(0), lease, MiB(1), KiB(4))).ok());
  EXPECT_TRUE(lease.Release().ok());
  EXPECT_EQ(client_.host.given_back, 0);
  daemon().Serve();
  EXPECT_EQ(Poll(), 1u);
  EXPECT_EQ(client_.host.given_back, 0);
  daemon().Serve();
  EXPECT_EQ(Poll(), 1u);
  // By the poll, which must not wait for the daemon.
  EXPECT_EQ(client_.host.given_back, 1);
  EXPECT_EQ(client_.host.later, 1);
}

TEST_F(TransferMemoryTest, DeadlineFreesMemoryThatIsStillWritten) {
  Lease lease = Get();
  ASSERT_TRUE(Submit(WithDeadline(Read(lease))).ok());
  wire::SubmitEntry entry = daemon().Take();
  lease = Lease();
  AnswerLate(entry);
  EXPECT_EQ(Poll(), 1u);
  EXPECT_EQ(client_.host.given_back, 0);
  daemon().Answer(daemon().Done(entry));
  EXPECT_EQ(Poll(), 1u);
  EXPECT_EQ(client_.host.given_back, 1);
}

TEST_F(TransferMemoryTest, SlotHandedOutInFlight) {
  auto slots = Slots();
  ASSERT_EQ(slots->slots(), 4u);
  std::vector<Slot> taken;
  taken.reserve(4);
  for (int i = 0; i < 4; ++i) taken.push_back(slots->Take());
  ASSERT_TRUE(Submit(WithDeadline(ReadOp(1, file_, Bytes(0), taken[2]))).ok());
  wire::SubmitEntry entry = daemon().Take();
  EXPECT_EQ(entry.length, KiB(512).count());
  EXPECT_EQ(entry.offset, static_cast<uint64_t>(taken[2].data() - taken[0].data()));
  std::byte* in_flight = taken[2].data();
  taken[2].Return();
  EXPECT_FALSE(slots->Take());
  AnswerLate(entry);
  Poll();
  EXPECT_FALSE(slots->Take());
  daemon().Answer(daemon().Done(entry));
  Poll();
  Slot again = slots->Take();
  ASSERT_TRUE(again);
  EXPECT_EQ(again.data(), in_flight);
}

TEST_F(TransferMemoryTest, SlotOfAFinishedTransferLost) {
  auto slots = Slots();
  Slot slot = slots->Take();
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(Submit(ReadOp(1, file_, Bytes(0), slot)).ok());
    daemon().Serve();
    EXPECT_EQ(Poll(), 1u);
  }
  slot.Return();
  std::vector<Slot> all;
  while (Slot taken = slots->Take()) all.push_back(std::move(taken));
  EXPECT_EQ(all.size(), 4u);
}

TEST_F(TransferMemoryTest, PoolEndsUnderItsTransfers) {
  auto slots = Slots();
  {
    Slot slot = slots->Take();
    ASSERT_TRUE(Submit(ReadOp(1, file_, Bytes(0), slot)).ok());
    auto handle = queue_->Read(file_, Bytes(0), slots->Take());
    ASSERT_TRUE(handle.ok());
  }
  slots.reset();
  EXPECT_EQ(client_.host.given_back, 0);
  daemon().Serve();
  daemon().Serve();
  EXPECT_EQ(Poll(), 1u);
  EXPECT_EQ(client_.host.given_back, 1);
}

TEST_F(TransferMemoryTest, HandleShowsMemoryInFlight) {
  auto slots = Slots();
  Slot slot = slots->Take();
  std::byte* at = slot.data();
  auto transfer = queue_->Read(file_, Bytes(512), std::move(slot));
  ASSERT_TRUE(transfer.ok());
  EXPECT_FALSE(transfer->Done());
  EXPECT_FALSE(transfer->slot());
  EXPECT_EQ(ReasonOf(transfer->Wait(absl::Milliseconds(20)).status), Reason::kTransferDeadline);
  daemon().Serve();
  Completion done = transfer->Wait();
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(done.bytes, KiB(512));
  EXPECT_TRUE(transfer->Done());
  Slot back = std::move(transfer->slot());
  EXPECT_EQ(back.data(), at);
  EXPECT_EQ(ReasonOf(transfer->Cancel()), Reason::kNoSuchTransfer);
  EXPECT_EQ(queue_->in_flight(), 0u);

  Lease lease = Get();
  LeaseId id = lease.id();
  auto written = queue_->Write(std::move(lease), file_, Bytes(0));
  ASSERT_TRUE(written.ok());
  EXPECT_FALSE(written->lease().valid());
  daemon().Serve();
  EXPECT_TRUE(written->Wait().status.ok());
  EXPECT_EQ(written->lease().id(), id);
}

TEST_F(TransferMemoryTest, DroppedHandleGivesBackTooEarlyOrNever) {
  {
    auto transfer = queue_->Write(Get(), file_, Bytes(0));
    ASSERT_TRUE(transfer.ok());
  }
  EXPECT_EQ(client_.host.given_back, 0);
  daemon().Serve();
  EXPECT_EQ(Poll(), 0u);
  EXPECT_EQ(client_.host.given_back, 1);
  EXPECT_EQ(client_.host.later, 1);
}

TEST_F(TransferMemoryTest, HandlesAndBatchesStealFromEachOther) {
  auto slots = Slots();
  ASSERT_TRUE(Submit(NopOp(41)).ok());
  auto transfer = queue_->Read(file_, Bytes(0), slots->Take());
  ASSERT_TRUE(transfer.ok());
  ASSERT_TRUE(Submit(NopOp(42)).ok());
  for (int i = 0; i < 3; ++i) daemon().Serve();
  EXPECT_TRUE(transfer->Wait().status.ok());  // reads 41 and 42 on its way
  std::array<Completion, 4> out;
  ASSERT_EQ(queue_->Poll(absl::MakeSpan(out)), 2u);
  EXPECT_EQ(out[0].tag, 41u);
  EXPECT_EQ(out[1].tag, 42u);
  // And the other way round.
  auto second = queue_->Read(file_, Bytes(0), slots->Take());
  daemon().Serve();
  EXPECT_EQ(Poll(), 0u);
  EXPECT_TRUE(second->Done());
}

TEST_F(TransferMemoryTest, DeadlineOfAHandleTakenForItsEnd) {
  auto transfer = queue_->Read(file_, Bytes(0), Get(), {.deadline = absl::Milliseconds(1)});
  wire::SubmitEntry entry = daemon().Take();
  AnswerLate(entry);
  Completion answer = transfer->Wait();
  EXPECT_TRUE(answer.more);
  EXPECT_EQ(ReasonOf(answer.status), Reason::kTransferDeadline);
  EXPECT_FALSE(transfer->Done());
  EXPECT_FALSE(transfer->lease().valid());
  daemon().Answer(daemon().Done(entry));
  answer = transfer->Wait();
  EXPECT_FALSE(answer.more);
  EXPECT_TRUE(transfer->lease().valid());
}

TEST_F(TransferMemoryTest, QueueEndsBeforeItsTransfers) {
  Lease lease = Get();
  ASSERT_TRUE(Submit(Read(lease)).ok());
  auto transfer = queue_->Read(file_, Bytes(0), Get());
  lease = Lease();
  queue_.reset();
  ASSERT_EQ(client_.transfers.orphans.size(), 1u);
  EXPECT_EQ(client_.host.given_back, 0);
  EXPECT_FALSE(transfer->Done());
  EXPECT_EQ(ReasonOf(transfer->Wait(absl::Milliseconds(10)).status), Reason::kTransferDeadline);
  std::thread drainer([&] { client_.transfers.orphans[0]->Drain(); });
  daemon().Serve();
  daemon().Serve();
  EXPECT_TRUE(transfer->Wait().status.ok());
  drainer.join();
  EXPECT_EQ(client_.host.given_back, 1);
  EXPECT_TRUE(transfer->lease().valid());
}

TEST_F(TransferMemoryTest, MemoryInDoubtHandedOutAgain) {
  client_.cacheable = true;
  auto slots = Slots();
  Slot slot = slots->Take();
  Lease lease = Get();
  EXPECT_TRUE(LeaseImpl::Of(lease)->cacheable());
  ASSERT_TRUE(Submit(Read(lease)).ok());
  ASSERT_TRUE(Submit(ReadOp(2, file_, Bytes(0), slot)).ok());
  daemon().Take();
  daemon().Take();
  // The daemon still works on both, and will never tell.
  daemon().ring().Close(wire::QueueState::kBroken);
  EXPECT_EQ(Poll(), 2u);
  EXPECT_TRUE(lease.Release().ok());
  EXPECT_EQ(client_.host.given_back, 1);
  EXPECT_FALSE(client_.host.last_cacheable);
  slot.Return();
  std::vector<Slot> all;
  while (Slot taken = slots->Take()) all.push_back(std::move(taken));
  EXPECT_EQ(all.size(), 3u);
  all.clear();
  slots.reset();
  EXPECT_EQ(client_.host.given_back, 2);
  EXPECT_FALSE(client_.host.last_cacheable);
}

TEST_F(TransferMemoryTest, FullQueueKeepsAHandlesMemory) {
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(Submit(NopOp(i)).ok());
  auto slots = Slots();
  EXPECT_EQ(ReasonOf(queue_->Read(file_, Bytes(0), slots->Take()).status()), Reason::kQueueFull);
  EXPECT_EQ(ReasonOf(queue_->Read(file_, Bytes(0), Get()).status()), Reason::kQueueFull);
  EXPECT_EQ(client_.host.given_back, 1);
  std::vector<Slot> all;
  while (Slot taken = slots->Take()) all.push_back(std::move(taken));
  EXPECT_EQ(all.size(), 4u);
}

// The holder lets go while the last transfer ends: exactly one of them gives back.
TEST(UseCountTest, GivenBackTwiceOrNever) {
  for (int round = 0; round < 2000; ++round) {
    UseCount uses;
    uses.Begin();
    uses.Begin();
    std::atomic<int> given_back{0};
    std::thread device([&] {
      given_back += uses.End() ? 1 : 0;
      given_back += uses.End() ? 1 : 0;
    });
    given_back += uses.Park() ? 0 : 1;
    device.join();
    ASSERT_EQ(given_back.load(), 1);
    ASSERT_EQ(uses.uses(), 0u);
  }
}

}  // namespace
}  // namespace ub
