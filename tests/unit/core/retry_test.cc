// Retries with the same request id, and callers that are gone: one lease, never two, and none for the dead.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

constexpr absl::Duration kLong = absl::Seconds(30);

TEST(Retry, RetryTakesOverTheWaitAndYieldsOneLease) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice);
  AnswerPtr first = rig.Acquire(alice, {.wait = absl::Milliseconds(1), .request = 7});
  AnswerPtr behind = rig.Acquire(alice, {.wait = kLong});
  AnswerPtr retry = rig.Acquire(alice, {.wait = kLong, .request = 7});
  EXPECT_EQ(first->calls, 1);
  EXPECT_EQ(first->result.status().code(), StatusCode::kAborted);
  EXPECT_EQ(first->reason(), Reason::kSuperseded);
  rig.Pass(absl::Seconds(1));
  EXPECT_EQ(retry->calls, 0) << "the deadline is the retry's";
  EXPECT_EQ(rig.Pool().waiters, 2u);
  EXPECT_FALSE(rig.broker->Abandon(alice, RequestId(7), first->claim)) << "the first caller speaks for nobody now";
  rig.Release(alice, held);
  rig.Reclaim();
  EXPECT_TRUE(retry->granted()) << "the retry keeps the place in the queue";
  EXPECT_FALSE(retry->result->repeated);
  EXPECT_EQ(behind->calls, 0);
  EXPECT_EQ(rig.Pool().leased, 1u);
}

TEST(Retry, RetryTimesOutAtItsOwnDeadline) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  rig.Acquire(alice, {.wait = kLong, .request = 7});
  AnswerPtr retry = rig.Acquire(alice, {.wait = absl::Seconds(2), .request = 7});
  EXPECT_EQ(rig.broker->NextDeadline(), rig.clock.Now() + absl::Seconds(2));
  rig.Pass(absl::Seconds(2));
  EXPECT_EQ(retry->reason(), Reason::kWaitTimeout);
}

TEST(Retry, RetryAfterTheGrantGetsTheSameLease) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  AnswerPtr first = rig.Acquire(alice, {.blocks = 2, .request = 7});
  AnswerPtr retry = rig.Acquire(alice, {.blocks = 2, .request = 7});
  ASSERT_TRUE(first->granted() && retry->granted());
  EXPECT_EQ(first->result->lease, retry->result->lease);
  EXPECT_EQ(retry->result->blocks.size(), 2u);
  EXPECT_TRUE(retry->result->repeated);
  EXPECT_EQ(rig.Pool().leased, 2u);
  EXPECT_EQ(rig.events.Count(EventKind::kGranted), 1);
}

TEST(Retry, RetryAfterTheGrantSurvivesTheFirstCallersEnd) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  AnswerPtr first = rig.Acquire(alice, {.request = 7});
  AnswerPtr retry = rig.Acquire(alice, {.request = 7});
  EXPECT_FALSE(rig.broker->Abandon(alice, RequestId(7), first->claim));
  EXPECT_TRUE(rig.LeaseOf(retry->result->lease).has_value());
  EXPECT_TRUE(rig.broker->Abandon(alice, RequestId(7), retry->claim));
  EXPECT_FALSE(rig.LeaseOf(retry->result->lease).has_value());
}

TEST(Retry, RequestIdOfAnotherRequestIsRefusedAndHarmless) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  AnswerPtr first = rig.Acquire(alice, {.blocks = 2, .request = 7});
  EXPECT_EQ(rig.Acquire(alice, {.blocks = 1, .request = 7})->reason(), Reason::kBadField);
  EXPECT_TRUE(rig.broker->Abandon(alice, RequestId(7), first->claim)) << "the first still speaks for its lease";
  EXPECT_TRUE(rig.Acquire(alice, {.blocks = 1, .request = 7})->granted()) << "the id is free again";
  EXPECT_TRUE(rig.Acquire(rig.Open(kAlice), {.request = 7})->granted()) << "ids belong to their session";
}

TEST(Retry, AbandonedWaiterTakesNothing) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice, {.blocks = 4});
  AnswerPtr gone = rig.Acquire(alice, {.blocks = 4, .wait = kLong, .request = 7});
  AnswerPtr next = rig.Acquire(alice, {.blocks = 4, .wait = kLong});
  EXPECT_TRUE(rig.broker->Abandon(alice, RequestId(7), gone->claim));
  EXPECT_EQ(gone->result.status().code(), StatusCode::kCancelled);
  EXPECT_FALSE(rig.broker->Abandon(alice, RequestId(7), gone->claim));
  rig.Release(alice, held);
  rig.Reclaim();
  EXPECT_TRUE(next->granted());
  EXPECT_EQ(gone->calls, 1);
}

TEST(Retry, AbandonedGrantGoesBackAsExposed) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  AnswerPtr gone = rig.Acquire(alice, {.request = 7});
  ASSERT_TRUE(gone->granted());
  EXPECT_TRUE(rig.broker->Abandon(alice, RequestId(7)));
  EXPECT_EQ(rig.events.Count(EventKind::kReclaimed, alice), 1);
  EXPECT_EQ(rig.broker->Totals().reclaimed_leases, 1u);
  ASSERT_EQ(rig.memory.pending().size(), 1u);
  EXPECT_TRUE(rig.memory.pending()[0].order.must_be_fresh);
  EXPECT_EQ(rig.broker->Release(alice, gone->result->lease).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace ubd
