// The rules of proto/wire/queue_layout.h, kept by the daemon's end whatever the client's end does.
#include "daemon/engine/queue_ring.h"

#include <gtest/gtest.h>

#include <memory>

#include "daemon/engine/queue_memory.h"
#include "tests/unit/engine/ring_client.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::QueueHeader;
using ub::wire::QueueState;
using ub::wire::SubmitEntry;

struct Pair {
  explicit Pair(uint32_t sq = 4, uint32_t cq = 8, uint32_t first = 0)
      : memory(*QueueMemory::Create({sq, cq})),
        ring(memory->data(), memory->layout(), 7, first),
        client(memory->data(), memory->layout()) {
    client.StartAt(first, first);
  }
  // Takes what is there and completes it, in the order of submission.
  int Serve() {
    SubmitEntry entry;
    int served = 0;
    for (; ring.Take(entry); ++served) {
      CompletionEntry completion = {};
      completion.user_data = entry.user_data;
      ring.Complete(completion);
      if (entry.deadline_ms != 0) ring.GiveBackRoom(1);
    }
    ring.Publish();
    return served;
  }
  std::unique_ptr<QueueMemory> memory;
  QueueRing ring;
  RingClient client;
};

TEST(QueueRing, HeaderSaysWhatIsThere) {
  Pair p(4, 16);
  const auto& header = *static_cast<const QueueHeader*>(p.memory->data());
  EXPECT_EQ(header.magic, ub::wire::kQueueMagic);
  EXPECT_EQ(header.queue, 7U);
  EXPECT_EQ(header.sq_entries, 4U);
  EXPECT_EQ(header.cq_entries, 16U);
  EXPECT_EQ(header.sq_offset, 640U);
  EXPECT_EQ(header.cq_offset, 640U + 4 * 64);
  EXPECT_EQ(header.bytes, 4096U);
  EXPECT_EQ(p.client.state(), QueueState::kOpen);
}

TEST(QueueRing, EntriesComeInOrderAndOnce) {
  Pair p;
  for (uint64_t i = 1; i <= 4; ++i) p.client.Submit(Nop(i));
  EXPECT_EQ(p.ring.Waiting(), 4U);
  EXPECT_EQ(p.Serve(), 4);
  EXPECT_EQ(p.Serve(), 0);
  for (uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(p.client.Poll()->user_data, i);
  EXPECT_FALSE(p.client.Poll());
}

TEST(QueueRing, NothingShowsBeforePublish) {
  Pair p;
  p.client.Submit(Nop(1));
  SubmitEntry entry;
  ASSERT_TRUE(p.ring.Take(entry));
  CompletionEntry completion = {};
  p.ring.Complete(completion);
  EXPECT_FALSE(p.client.Poll());
  EXPECT_EQ(p.client.indices().sq_head.load(), 0U);
  EXPECT_FALSE(p.ring.Publish()) << "nobody sleeps";
  EXPECT_TRUE(p.client.Poll());
  EXPECT_EQ(p.client.indices().sq_head.load(), 1U);
}

TEST(QueueRing, TheEntryIsACopy) {
  Pair p;
  p.client.Submit(Nop(1));
  SubmitEntry entry;
  ASSERT_TRUE(p.ring.Take(entry));
  p.client.submits()[0].user_data = 99;
  EXPECT_EQ(entry.user_data, 1U);
}

TEST(QueueRing, NothingIsTakenWithoutRoomForItsCompletion) {
  Pair p(4, 4);
  SubmitEntry entry;
  for (uint64_t i = 0; i < 4; ++i) p.client.Submit(Nop(i));
  ASSERT_EQ(p.Serve(), 4);
  p.client.Submit(Nop(4));
  EXPECT_FALSE(p.ring.Take(entry));
  EXPECT_TRUE(p.ring.NeedsRoom());
  EXPECT_FALSE(p.ring.HasRoomNow());
  EXPECT_EQ(p.ring.unread(), 4U);
  EXPECT_EQ(p.client.Poll()->user_data, 0U);
  EXPECT_TRUE(p.ring.HasRoomNow());
  EXPECT_TRUE(p.ring.Take(entry));
  EXPECT_FALSE(p.ring.NeedsRoom());
  EXPECT_FALSE(p.ring.Take(entry));
  EXPECT_FALSE(p.ring.NeedsRoom()) << "it is empty, not full";
}

TEST(QueueRing, ADeadlineNeedsTwoPlaces) {
  Pair p(4, 4);
  SubmitEntry entry;
  p.client.Submit(Nop(1, 10));
  p.client.Submit(Nop(2));
  p.client.Submit(Nop(3, 10));
  ASSERT_TRUE(p.ring.Take(entry));
  ASSERT_TRUE(p.ring.Take(entry));
  EXPECT_FALSE(p.ring.Take(entry)) << "three places are promised, two are wanted";
  EXPECT_TRUE(p.ring.NeedsRoom());
  p.ring.GiveBackRoom(1);
  EXPECT_TRUE(p.ring.Take(entry));
  // Deadline first, then the end: both have their place.
  CompletionEntry completion = {};
  for (int i = 0; i < 4; ++i) p.ring.Complete(completion);
  p.ring.Publish();
  EXPECT_EQ(p.ring.reserved(), 0U);
  EXPECT_EQ(p.ring.unread(), 4U);
}

TEST(QueueRing, IndicesWrapAt32Bits) {
  for (uint32_t before = 0; before < 12; ++before) {
    Pair p(4, 4, 0U - before);
    uint64_t number = 0;
    for (int round = 0; round < 10; ++round) {
      for (uint64_t i = 0; i < 4; ++i) p.client.Submit(Nop(number + i));
      ASSERT_TRUE(p.client.Full());
      ASSERT_EQ(p.Serve(), 4) << "round " << round << ", " << before << " before the wrap";
      ASSERT_EQ(p.ring.unread(), 4U);
      p.client.Submit(Nop(0));
      SubmitEntry entry;
      ASSERT_FALSE(p.ring.Take(entry));
      ASSERT_TRUE(p.ring.NeedsRoom());
      for (int i = 0; i < 4; ++i) ASSERT_EQ(p.client.Poll()->user_data, number++);
      ASSERT_EQ(p.Serve(), 1);
      p.client.Poll();
    }
    EXPECT_EQ(p.ring.broken()[0], '\0');
  }
}

TEST(QueueRing, MoreSubmittedThanThereIsBreaksIt) {
  Pair p;
  p.client.indices().sq_tail = 5;
  EXPECT_EQ(p.ring.Waiting(), 0U);
  EXPECT_NE(p.ring.broken()[0], '\0');
  EXPECT_EQ(p.client.state(), QueueState::kBroken);
  p.client.indices().sq_tail = 1;
  SubmitEntry entry;
  EXPECT_FALSE(p.ring.Take(entry)) << "broken is for good";
}

TEST(QueueRing, ATailThatGoesBackBreaksIt) {
  Pair p;
  p.client.Submit(Nop(1));
  ASSERT_EQ(p.Serve(), 1);
  p.client.indices().sq_tail = 0;
  EXPECT_EQ(p.ring.Waiting(), 0U);
  EXPECT_NE(p.ring.broken()[0], '\0');
}

TEST(QueueRing, MoreReadThanWasCompletedBreaksIt) {
  Pair p(2, 2);
  p.client.Submit(Nop(1));
  ASSERT_EQ(p.Serve(), 1);
  p.client.indices().cq_head = 2;
  EXPECT_EQ(p.ring.unread(), 1U) << "what it was before";
  EXPECT_NE(p.ring.broken()[0], '\0');
}

TEST(QueueRing, AHeadThatGoesBackBreaksIt) {
  Pair p(2, 2);
  for (uint64_t i = 0; i < 2; ++i) {
    p.client.Submit(Nop(i));
    ASSERT_EQ(p.Serve(), 1);
    p.client.Poll();
  }
  EXPECT_EQ(p.ring.unread(), 0U);
  p.client.indices().cq_head = 1;
  p.ring.unread();
  EXPECT_NE(p.ring.broken()[0], '\0');
}

TEST(QueueRing, BreakingWakesWhoWaits) {
  Pair p;
  p.client.indices().sq_tail = 1000;
  const uint32_t before = p.client.indices().wake_count;
  p.ring.Waiting();
  EXPECT_EQ(p.client.indices().wake_count.load(), before + 1);
}

TEST(QueueRing, InFlightCompletesAfterClose) {
  Pair p;
  p.client.Submit(Nop(1));
  p.client.Submit(Nop(2));
  SubmitEntry entry;
  ASSERT_TRUE(p.ring.Take(entry));
  p.ring.Close(QueueState::kClosed);
  EXPECT_EQ(p.client.state(), QueueState::kClosed);
  EXPECT_FALSE(p.ring.Take(entry)) << "nothing is taken any more";
  CompletionEntry completion = {};
  completion.user_data = 1;
  p.ring.Complete(completion);
  p.ring.Publish();
  EXPECT_EQ(p.client.Poll()->user_data, 1U);
}

TEST(QueueRing, WakesOnlyWhoSleeps) {
  Pair p;
  p.client.Submit(Nop(1));
  p.Serve();
  EXPECT_EQ(p.client.indices().wake_count.load(), 0U);
  p.client.indices().waiters = 1;
  p.client.Submit(Nop(2));
  SubmitEntry entry;
  ASSERT_TRUE(p.ring.Take(entry));
  p.ring.Complete({});
  EXPECT_TRUE(p.ring.Publish());
  EXPECT_EQ(p.client.indices().wake_count.load(), 1U);
  EXPECT_FALSE(p.ring.Publish()) << "nothing new";
}

TEST(QueueRing, SleepsOnlyWhenNothingCame) {
  Pair p;
  EXPECT_TRUE(p.ring.PrepareSleep());
  EXPECT_TRUE(p.client.Submit(Nop(1))) << "the client rings";
  p.ring.EndSleep();
  EXPECT_FALSE(p.client.Submit(Nop(2))) << "it does not";
  EXPECT_FALSE(p.ring.PrepareSleep()) << "two entries wait";
  EXPECT_EQ(p.client.indices().daemon_sleep.load(), 0U);
}

TEST(QueueRing, SleepsOnEntriesThatHaveNoRoom) {
  Pair p(4, 4);
  for (uint64_t i = 0; i < 4; ++i) p.client.Submit(Nop(i));
  p.Serve();
  p.client.Submit(Nop(4));
  EXPECT_EQ(p.Serve(), 0);
  ASSERT_TRUE(p.ring.NeedsRoom());
  EXPECT_TRUE(p.ring.PrepareSleep());
  p.ring.EndSleep();
  p.client.Poll();
  EXPECT_FALSE(p.ring.PrepareSleep()) << "there is room now";
}

TEST(QueueMemory, IsSealedPrivateAndOfItsOwnDescription) {
  auto memory = *QueueMemory::Create({4096, 8192});
  ub::UniqueFd client = memory->TakeClientMemory();
  EXPECT_EQ(ftruncate(client.get(), 0), -1) << "a mapping could be cut short";
  EXPECT_EQ(ftruncate(client.get(), 1 << 30), -1);
  EXPECT_FALSE(memory->TakeClientMemory().valid()) << "once only";
  EXPECT_TRUE(memory->TakeClientEvent().valid());
}

}  // namespace
}  // namespace ubd
