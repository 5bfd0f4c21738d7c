// Waiting: order, deadlines, patience, pressure.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

constexpr absl::Duration kLong = absl::Seconds(30);

TEST(Wait, LargeRequestIsNotStarvedBySmallOnes) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  std::vector<Grant> held;
  for (int i = 0; i < 4; ++i) held.push_back(rig.Take(alice));
  AnswerPtr large = rig.Acquire(alice, {.blocks = 3, .wait = kLong});
  AnswerPtr small = rig.Acquire(alice, {.wait = kLong});
  rig.Release(alice, held[0]);
  rig.Reclaim();
  EXPECT_EQ(small->calls, 0) << "one block is free, but the large request came first";
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kPoolEmpty) << "nobody overtakes the queue";
  rig.Release(alice, held[1]);
  rig.Release(alice, held[2]);
  rig.Reclaim();
  EXPECT_TRUE(large->granted());
  EXPECT_EQ(small->calls, 0);
  rig.Release(alice, held[3]);
  rig.Reclaim();
  EXPECT_TRUE(small->granted());
}

TEST(Wait, QueueOfOnePoolDoesNotHoldUpAnother) {
  Rig rig({{"a", "host", kBlock, 1, Isolation::kPerUid}, {"b", "host", kBlock, 1, Isolation::kPerUid}}, {});
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.pool = "a"});
  AnswerPtr waits = rig.Acquire(alice, {.wait = kLong, .pool = "a"});
  EXPECT_TRUE(rig.Acquire(alice, {.pool = "b"})->granted());
  EXPECT_EQ(waits->calls, 0);
}

TEST(Wait, TimeoutEndsTheWaitAndNamesTheFigures) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 4});
  AnswerPtr waits = rig.Acquire(alice, {.blocks = 2, .wait = absl::Milliseconds(50)});
  rig.Pass(absl::Milliseconds(49));
  EXPECT_EQ(waits->calls, 0);
  rig.Pass(absl::Milliseconds(1));
  EXPECT_EQ(waits->calls, 1);
  EXPECT_EQ(waits->result.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(waits->reason(), Reason::kWaitTimeout);
  EXPECT_EQ(waits->detail("leased"), 4 * kBlock.count());
  EXPECT_EQ(rig.broker->NextDeadline(), std::nullopt);
}

TEST(Wait, TimedOutHeadLetsTheNextOneThrough) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 3});
  AnswerPtr large = rig.Acquire(alice, {.blocks = 3, .wait = absl::Milliseconds(50)});
  AnswerPtr small = rig.Acquire(alice, {.blocks = 1, .wait = kLong});
  EXPECT_EQ(small->calls, 0);
  rig.Pass(absl::Milliseconds(50));
  EXPECT_EQ(large->reason(), Reason::kWaitTimeout);
  EXPECT_TRUE(small->granted());
}

TEST(Wait, LongerThanTheConfiguredLimitIsCut) {
  Rig rig(1, {.max_wait = absl::Seconds(2)});
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  AnswerPtr waits = rig.Acquire(alice, {.wait = absl::InfiniteDuration()});
  rig.Pass(absl::Seconds(2));
  EXPECT_EQ(waits->reason(), Reason::kWaitTimeout);
}

TEST(Wait, ForEverHasNoDeadline) {
  Rig rig(1, {.max_wait = absl::InfiniteDuration()});
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice);
  AnswerPtr waits = rig.Acquire(alice, {.wait = absl::InfiniteDuration()});
  EXPECT_EQ(rig.broker->NextDeadline(), std::nullopt);
  rig.Pass(absl::Hours(100000));
  EXPECT_EQ(waits->calls, 0);
  rig.Release(alice, grant);
  rig.Reclaim();
  EXPECT_TRUE(waits->granted());
}

TEST(Wait, EarlierDeadlinePokesTheLoop) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  int pokes = 0;
  rig.broker->OnDeadlineChange([&] {
    ++pokes;
    EXPECT_TRUE(rig.broker->NextDeadline().has_value());  // without the lock
  });
  rig.Acquire(alice, {.wait = absl::Seconds(5)});
  EXPECT_EQ(pokes, 1);
  rig.Acquire(alice, {.wait = absl::Seconds(9)});
  EXPECT_EQ(pokes, 1);
  rig.Acquire(alice, {.wait = absl::Seconds(1)});
  EXPECT_EQ(pokes, 2);
  EXPECT_EQ(rig.broker->NextDeadline(), rig.clock.Now() + absl::Seconds(1));
}

TEST(Wait, DeadWaitersGetNothing) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  SessionId dies = rig.Open(kAlice);
  Grant held = rig.Take(alice);
  AnswerPtr dead = rig.Acquire(dies, {.wait = kLong});
  rig.broker->CloseSession(dies, SessionEnd::kDied);
  EXPECT_EQ(dead->result.status().code(), StatusCode::kAborted);
  EXPECT_EQ(dead->reason(), Reason::kSessionEnded);
  rig.Release(alice, held);
  rig.Reclaim();
  EXPECT_EQ(rig.Pool().free, 1u);
  EXPECT_EQ(dead->calls, 1);
}

TEST(Wait, RequestThatDoesNotWaitIsPatientWithMemoryOnItsWay) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  AnswerPtr answer = rig.Acquire(alice, {.blocks = 2});  // both are still in their test
  EXPECT_EQ(answer->calls, 0);
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
}

TEST(Wait, PatienceEnds) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  AnswerPtr answer = rig.Acquire(alice);
  rig.Pass(kPatience);
  EXPECT_EQ(answer->result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(answer->reason(), Reason::kPoolEmpty);
  EXPECT_EQ(answer->detail("reclaimable"), 2 * kBlock.count());
}

TEST(Wait, PatienceCountsThoseAhead) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  AnswerPtr ahead = rig.Acquire(alice, {.blocks = 2, .wait = kLong});
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kPoolEmpty) << "what is on its way is for the one ahead";
  rig.Reclaim();
  EXPECT_TRUE(ahead->granted());
}

TEST(Wait, NoPageForFreshBackingIsToldFromABusyPool) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 2});
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  while (std::optional<Order> order = rig.memory.Take()) {  // someone keeps both mapped, and the reserve is empty
    rig.broker->BlockRecycling(order->block);
    rig.broker->BackingRetired(order->block, order->order.charge);
  }
  AnswerPtr answer = rig.Acquire(rig.Open(kBob), {.wait = absl::Seconds(5)});
  rig.Pass(absl::Seconds(5));
  EXPECT_EQ(answer->result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(answer->reason(), Reason::kPoolEmpty);
  EXPECT_EQ(answer->detail("retired"), 2 * kBlock.count());
  EXPECT_EQ(answer->detail("reclaimable"), 2 * kBlock.count());
}

TEST(Wait, StuckBlocksDoNotKeepFreeOnesFromBeingRecycled) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice));
  rig.Reclaim();  // block 0: free, Alice's
  SessionId carol = rig.Open(Uid(1003));
  rig.Take(carol);
  rig.broker->CloseSession(carol, SessionEnd::kDied);
  Order stuck = *rig.memory.Take();
  rig.broker->BlockRecycling(stuck.block);
  rig.broker->BackingRetired(stuck.block, stuck.order.charge);
  AnswerPtr bob = rig.Acquire(rig.Open(kBob));
  EXPECT_EQ(rig.Reclaim(), 1) << "Alice's block gets fresh backing, though another one is Recycling";
  EXPECT_TRUE(bob->granted());
}

TEST(Wait, NumberOfWaitersPerUidIsLimited) {
  Rig rig(1, {.max_waiters_per_uid = 2});
  SessionId alice = rig.Open(kAlice);
  SessionId alice2 = rig.Open(kAlice);
  rig.Take(alice);
  rig.Acquire(alice, {.wait = kLong});
  rig.Acquire(alice2, {.wait = kLong});
  AnswerPtr third = rig.Acquire(alice, {.wait = kLong});
  EXPECT_EQ(third->reason(), Reason::kTooManyWaiters);
  EXPECT_EQ(third->detail("limit"), 2u);
  EXPECT_EQ(rig.Acquire(rig.Open(kBob), {.wait = kLong})->calls, 0) << "another user still may wait";
}

TEST(Wait, PressureIsOnExactlyWhileSomebodyWaits) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice);
  EXPECT_EQ(rig.words.pressure_changes, 0);
  rig.Acquire(alice, {.wait = kLong, .request = 1});
  rig.Acquire(alice, {.wait = kLong, .request = 2});
  EXPECT_TRUE(rig.words.pressure);
  rig.broker->Abandon(alice, RequestId(1));
  EXPECT_TRUE(rig.words.pressure);
  rig.broker->Abandon(alice, RequestId(2));
  EXPECT_FALSE(rig.words.pressure);
  EXPECT_EQ(rig.words.pressure_changes, 2);
}

TEST(Wait, CallbackMayCallTheBroker) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice, {.blocks = 2});
  bool released = false;
  AcquireRequest request{.session = alice, .bytes = kBlock, .request = RequestId(1), .wait = kLong};
  rig.broker->Acquire(request, [&](absl::StatusOr<Grant> result) {
    ASSERT_TRUE(result.ok());
    released = rig.broker->Release(alice, result->lease).ok();
  });
  rig.Release(alice, held);
  rig.Reclaim();
  EXPECT_TRUE(released);
}

TEST(Wait, NobodyIsLeftWithoutAnAnswerWhenTheBrokerGoes) {
  AnswerPtr waits;
  {
    Rig rig(1);
    SessionId alice = rig.Open(kAlice);
    rig.Take(alice);
    waits = rig.Acquire(alice, {.wait = kLong});
  }
  EXPECT_EQ(waits->calls, 1);
  EXPECT_EQ(waits->reason(), Reason::kStopping);
}

TEST(Wait, GrantSaysHowLongItWaited) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice);
  EXPECT_EQ(rig.events.all.back().waited, absl::ZeroDuration());
  AnswerPtr waits = rig.Acquire(alice, {.wait = kLong});
  rig.Pass(absl::Seconds(3));
  rig.Release(alice, held);
  rig.Reclaim();
  ASSERT_TRUE(waits->granted());
  EXPECT_EQ(rig.events.all.back().kind, EventKind::kGranted);
  EXPECT_EQ(rig.events.all.back().waited, absl::Seconds(3));
}

}  // namespace
}  // namespace ubd
