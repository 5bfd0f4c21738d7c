// Ends that come before the device's: deadlines, cancels, revokes, closes. Whatever happens to the caller, the memory
// is pinned until the device is done.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/engine/dispatcher_rig.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::Op;
using ub::wire::QueueState;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

constexpr uint64_t kChunk = 65536;

class Life : public ::testing::Test {
 protected:
  SubmitEntry Cancel(uint64_t target) const {
    SubmitEntry entry = Nop(1000 + target);
    entry.op = static_cast<uint8_t>(Op::kCancel);
    entry.offset = target;
    return entry;
  }
  void Pass(uint64_t ms) {
    rig.now_ns += ms * 1'000'000;
    rig.Run({&a});
  }
  DispatcherRig rig;
  Tenant a = rig.Open(kAlice, 2);
};

TEST_F(Life, ADeadlineAnswersAndTheDeviceFollows) {
  SubmitEntry entry = a.Read(7, 2 * kBlock.count());
  entry.deadline_ms = 5;
  rig.Submit(a, entry);
  Pass(4);
  EXPECT_FALSE(a.client->Poll());
  Pass(2);
  CompletionEntry first = rig.Only(a);
  EXPECT_EQ(first.user_data, 7U);
  EXPECT_EQ(ErrorIn(first), TransferError::kDeadline);
  EXPECT_EQ(first.flags, ub::wire::kCompletionMore);
  EXPECT_EQ(rig.InFlight(a), 1U);
  const size_t posted = rig.ring.posted().size();
  while (!rig.ring.posted().empty()) {
    EXPECT_LE(rig.ring.posted().size(), posted) << "nothing is posted any more";
    EXPECT_EQ(rig.InFlight(a), 1U);
    rig.ring.End();
    rig.Run({&a});
  }
  CompletionEntry last = rig.Only(a);
  EXPECT_EQ(last.user_data, 7U);
  EXPECT_EQ(ErrorIn(last), TransferError::kDeadline);
  EXPECT_EQ(last.flags & ub::wire::kCompletionMore, 0);
  EXPECT_EQ(last.bytes, posted * kChunk);
  EXPECT_EQ(rig.InFlight(a), 0U);
  EXPECT_EQ(a.queue->ring.reserved(), 0U);
}

TEST_F(Life, ADeadlineOnWhatWasNeverPostedIsTheOnlyAnswer) {
  rig.Submit(a, a.Read(1, kBlock.count()));  // fills the ring
  SubmitEntry entry = a.Read(2, kChunk);
  entry.deadline_ms = 5;
  rig.Submit(a, entry);
  Pass(6);
  CompletionEntry only = rig.Only(a);
  EXPECT_EQ(only.user_data, 2U);
  EXPECT_EQ(ErrorIn(only), TransferError::kDeadline);
  EXPECT_EQ(only.flags, 0);
}

TEST_F(Life, ADeadlineThatWasMetIsForgotten) {
  SubmitEntry entry = a.Read(1, kChunk);
  entry.deadline_ms = 5;
  rig.Submit(a, entry);
  EXPECT_EQ(rig.dispatcher.next_deadline_ns(), rig.now_ns + 5'000'000 - (rig.now_ns - 1'001'000));
  rig.ring.End();
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kOk);
  EXPECT_EQ(rig.dispatcher.next_deadline_ns(), kNeverNs);
  Pass(10);
  EXPECT_FALSE(a.client->Poll());
  EXPECT_EQ(a.queue->ring.reserved(), 0U);
}

TEST_F(Life, CancelDropsWhatIsNotPostedAndWaitsForTheRest) {
  rig.Submit(a, a.Read(7, 2 * kBlock.count()));
  const size_t posted = rig.ring.posted().size();
  rig.Submit(a, Cancel(7));
  CompletionEntry answer = rig.Only(a);
  EXPECT_EQ(answer.user_data, 1007U);
  EXPECT_EQ(ErrorIn(answer), TransferError::kOk);
  EXPECT_EQ(rig.ring.cancelled().size(), posted);
  EXPECT_EQ(rig.InFlight(a), 1U);
  rig.ring.End();
  rig.Run({&a});
  while (!rig.ring.posted().empty()) {
    rig.ring.End(-ECANCELED);
    rig.Run({&a});
  }
  CompletionEntry target = rig.Only(a);
  EXPECT_EQ(target.user_data, 7U);
  EXPECT_EQ(ErrorIn(target), TransferError::kCancelled);
  EXPECT_EQ(target.bytes, kChunk);
  rig.Submit(a, Cancel(7));
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kNoSuchTransfer);
}

TEST_F(Life, CancelReachesOnlyItsOwnQueue) {
  Tenant b = rig.Open(kBob);
  rig.Submit(b, b.Read(7, kChunk));
  rig.Submit(a, Cancel(7));
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kNoSuchTransfer);
  rig.ring.End();
  EXPECT_EQ(ErrorIn(rig.Only(b)), TransferError::kOk);
}

TEST_F(Life, CancelEndsAnEndlessAgain) {
  rig.Submit(a, a.Read(7, kChunk));
  rig.ring.End(-EAGAIN);
  a.client->Submit(Cancel(7));
  rig.Run({&a});
  if (!rig.ring.posted().empty()) rig.ring.End(-EAGAIN);
  rig.Run({&a});
  EXPECT_TRUE(rig.ring.posted().empty());
  std::vector<CompletionEntry> all;
  while (auto one = a.client->Poll()) all.push_back(*one);
  ASSERT_EQ(all.size(), 2U);
}

TEST_F(Life, ReleaseWaitsForTheDevice) {
  rig.Submit(a, a.Read(1, kChunk));
  EXPECT_EQ(rig.core.broker->Release(a.session->id, a.lease.lease), absl::OkStatus());
  EXPECT_EQ(rig.core.LeaseOf(a.lease.lease)->state, "draining");
  EXPECT_EQ(rig.core.memory.pending().size(), 0U);
  rig.ring.End();
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kOk);
  EXPECT_EQ(rig.core.memory.pending().size(), 2U);
}

TEST_F(Life, RevokeWaitsForTheDevice) {
  rig.Submit(a, a.Read(1, kChunk));
  EXPECT_EQ(rig.core.broker->Revoke(kAdmin, a.lease.lease, "test"), absl::OkStatus());
  rig.Submit(a, a.Read(2, kChunk));
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kNoSuchLease);
  EXPECT_EQ(rig.core.memory.pending().size(), 0U);
  rig.ring.End();
  rig.Run({&a});
  EXPECT_EQ(rig.core.memory.pending().size(), 2U);
}

TEST_F(Life, DeathWaitsForTheDevice) {
  rig.Submit(a, a.Read(1, kChunk));
  rig.dispatcher.End(*a.queue, QueueState::kClosed, TransferError::kCancelled);
  rig.core.broker->CloseSession(a.session->id, SessionEnd::kDied);
  EXPECT_EQ(rig.core.memory.pending().size(), 0U);
  rig.ring.End();
  rig.Run({&a});
  EXPECT_EQ(rig.core.memory.pending().size(), 2U);
  EXPECT_EQ(rig.dispatcher.in_flight(), 0U);
}

TEST_F(Life, CloseDropsWhatIsNotPosted) {
  rig.Submit(a, a.Read(1, 2 * kBlock.count()));
  rig.Submit(a, a.Read(2, kChunk));
  rig.dispatcher.End(*a.queue, QueueState::kClosed, TransferError::kCancelled);
  a.client->Submit(Nop(3));
  const size_t posted = rig.ring.posted().size();
  for (size_t i = 0; i < posted; ++i) {
    rig.Run({&a});
    rig.ring.End();
  }
  rig.Run({&a});
  EXPECT_EQ(rig.ring.posts(), posted);
  EXPECT_EQ(rig.dispatcher.in_flight(), 0U);
  EXPECT_EQ(a.client->Poll()->user_data, 2U);
  EXPECT_EQ(a.client->Poll()->user_data, 1U);
  EXPECT_FALSE(a.client->Poll()) << "what came after the close is not taken";
}

TEST_F(Life, ABrokenQueueHurtsNobodyElse) {
  Tenant b = rig.Open(kBob);
  rig.Submit(a, a.Read(1, kChunk));
  a.client->indices().sq_tail = 100'000;
  rig.dispatcher.Ready(*a.queue);
  rig.Run({&a, &b});
  EXPECT_EQ(a.client->state(), QueueState::kBroken);
  EXPECT_EQ(a.queue->place, ServedQueue::Place::kEnded);
  rig.Submit(b, Nop(5));
  EXPECT_EQ(rig.Only(b).user_data, 5U);
  rig.ring.End();
  rig.Run({&a});
  EXPECT_EQ(rig.InFlight(a), 0U);
}

TEST_F(Life, TransfersAreRecycled) {
  for (uint64_t i = 0; i < 500; ++i) {
    rig.Submit(a, a.Read(i, kChunk, i * 512));
    rig.ring.End();
    ASSERT_EQ(rig.Only(a).user_data, i);
  }
  EXPECT_EQ(a.queue->submitted.read(), 500U);
  EXPECT_EQ(a.queue->bytes.read(), 500 * kChunk);
}

}  // namespace
}  // namespace ubd
