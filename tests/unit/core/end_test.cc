// How leases end, and what must happen to their memory then: the fourth part of the reuse rule.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

// The orders given for the last lease that ended; all alike.
ReclaimOrder TheOrder(Rig& rig, size_t blocks = 1) {
  std::vector<Order> orders = rig.memory.pending();
  EXPECT_EQ(orders.size(), blocks);
  return orders.empty() ? ReclaimOrder() : orders[0].order;
}

TEST(End, SecondReleaseIsNotFoundAndDoesNotFreeTheNextTenant) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant first = rig.Take(alice);
  rig.Release(alice, first);
  EXPECT_EQ(rig.broker->Release(alice, first.lease).code(), StatusCode::kNotFound);
  rig.Reclaim();
  Grant second = rig.Take(alice);
  EXPECT_EQ(rig.broker->Release(alice, first.lease).code(), StatusCode::kNotFound);
  EXPECT_TRUE(rig.LeaseOf(second.lease).has_value());
  EXPECT_EQ(rig.Pool().leased, 1u);
}

TEST(End, ForeignAndAbsentLeasesAreNotToldApart) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  Grant grant = rig.Take(alice);
  absl::Status foreign = rig.broker->Release(bob, grant.lease);
  EXPECT_EQ(foreign, rig.broker->Release(bob, LeaseId(4711)));
  EXPECT_EQ(ub::ReasonOf(foreign), Reason::kNoSuchLease);
  EXPECT_EQ(foreign, rig.broker->Pin(bob, grant.lease, Access::kReadOnly).status());
  EXPECT_EQ(foreign, rig.broker->Revoke({false, kBob}, grant.lease, ""));
  EXPECT_EQ(foreign, rig.broker->Share({bob, grant.lease, Access::kReadOnly, kBob, {}}).status());
  rig.broker->FailDelivery(bob, grant.lease);
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value());
}

TEST(End, CleanReleaseIsTestedOnce) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  ReclaimOrder order = TheOrder(rig, 2);
  EXPECT_FALSE(order.must_be_fresh);
  EXPECT_EQ(order.grace, absl::ZeroDuration());
  EXPECT_EQ(order.charge, Charge{kAlice});
  EXPECT_EQ(rig.Pool().draining, 2u);
  EXPECT_EQ(rig.events.Count(EventKind::kReleased, alice), 1);
}

TEST(End, EveryUncleanEndMeansFreshBacking) {
  for (SessionEnd end : {SessionEnd::kHangUp, SessionEnd::kDied, SessionEnd::kProtocol, SessionEnd::kShutdown}) {
    Rig rig(1);
    SessionId alice = rig.Open(kAlice);
    rig.Take(alice);
    rig.broker->CloseSession(alice, end);
    EXPECT_TRUE(TheOrder(rig).must_be_fresh);
    EXPECT_EQ(TheOrder(rig).grace, absl::ZeroDuration());
    EXPECT_EQ(rig.events.Count(EventKind::kReclaimed, alice), 1);
  }
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant revoked = rig.Take(alice);
  EXPECT_TRUE(rig.broker->Revoke(kAdmin, revoked.lease, "maintenance").ok());
  EXPECT_EQ(rig.events.all.back().text, "maintenance");
  rig.Take(alice, {.ttl = absl::Seconds(1)});
  rig.Pass(absl::Seconds(1));
  rig.broker->FailDelivery(alice, rig.Take(alice).lease);
  ASSERT_EQ(rig.memory.pending().size(), 3u);
  for (const Order& order : rig.memory.pending()) EXPECT_TRUE(order.order.must_be_fresh);
}

TEST(End, UncleanEndMeansFreshBackingEvenWithoutIsolation) {
  Rig rig(1, {}, Isolation::kNone);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  EXPECT_TRUE(TheOrder(rig).must_be_fresh);
}

TEST(End, DeathIsCountedOnceWithAllItsLeases) {
  Rig rig(8);
  SessionId alice = rig.Open(kAlice);
  SessionId idle = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 2});
  rig.Take(alice);
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  rig.broker->CloseSession(alice, SessionEnd::kHangUp);
  rig.broker->CloseSession(idle, SessionEnd::kHangUp);
  BrokerTotals totals = rig.broker->Totals();
  EXPECT_EQ(totals.reclaimed_sessions, 1u);
  EXPECT_EQ(totals.reclaimed_leases, 2u);
  EXPECT_EQ(totals.sessions, 0u);
  EXPECT_EQ(totals.leases, 0u);
  EXPECT_EQ(rig.events.Count(EventKind::kSessionClosed), 2);
  rig.Reclaim();
  EXPECT_EQ(rig.Pool().free, 8u);
}

TEST(End, OwnUidMayRevokeOthersMayNot) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice);
  EXPECT_EQ(rig.broker->Revoke({false, kBob}, grant.lease, "").code(), StatusCode::kNotFound);
  EXPECT_TRUE(rig.broker->Revoke({false, kAlice}, grant.lease, "mine").ok());
  EXPECT_EQ(rig.broker->Revoke(kAdmin, grant.lease, "").code(), StatusCode::kNotFound);
  EXPECT_EQ(rig.events.Count(EventKind::kRevoked, alice), 1);
}

TEST(End, TtlEndsTheLeaseOnTheMonotonicClock) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.ttl = absl::Seconds(60)});
  ASSERT_TRUE(grant.expires.has_value());
  EXPECT_EQ(rig.broker->NextDeadline(), grant.expires);
  rig.Pass(absl::Seconds(59));
  EXPECT_EQ(rig.LeaseOf(grant.lease)->ttl_left, absl::Seconds(1));
  rig.clock.Advance(absl::Seconds(10));  // the loop is late
  EXPECT_EQ(rig.LeaseOf(grant.lease)->ttl_left, absl::ZeroDuration()) << "never negative";
  rig.Pass(absl::ZeroDuration());
  EXPECT_FALSE(rig.LeaseOf(grant.lease).has_value());
  EXPECT_EQ(rig.events.Count(EventKind::kExpired, alice), 1);
  EXPECT_EQ(rig.broker->Release(alice, grant.lease).code(), StatusCode::kNotFound);
}

TEST(End, TtlIsCutToTheLimitAndGivenToThoseWithout) {
  BrokerLimits limits;
  limits.max_ttl = absl::Seconds(10);
  Rig rig(4, limits);
  SessionId alice = rig.Open(kAlice);
  MonoTime now = rig.clock.Now();
  EXPECT_EQ(rig.Take(alice, {.ttl = absl::Hours(1)}).expires, now + absl::Seconds(10));
  EXPECT_EQ(rig.Take(alice, {.ttl = absl::Seconds(3)}).expires, now + absl::Seconds(3));
  Grant without = rig.Take(alice, {.cacheable = true});
  EXPECT_EQ(without.expires, now + absl::Seconds(10));
  EXPECT_FALSE(without.word.has_value()) << "what ends by itself is not cached";
}

TEST(End, ReleasedLeaseHasNoDeadlineLeft) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.ttl = absl::Seconds(5)}));
  EXPECT_EQ(rig.broker->NextDeadline(), std::nullopt);
}

TEST(End, PinnedLeaseEndsAtOnceButItsBlocksWait) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  absl::StatusOr<LeasePin> pin = rig.broker->Pin(alice, grant.lease, Access::kReadWrite);
  absl::StatusOr<LeasePin> second = rig.broker->Pin(alice, grant.lease, Access::kReadOnly);
  ASSERT_TRUE(pin.ok() && second.ok());
  EXPECT_EQ(pin->blocks().size(), 2u);
  rig.Release(alice, grant);
  EXPECT_EQ(rig.broker->Release(alice, grant.lease).code(), StatusCode::kNotFound);
  EXPECT_FALSE(rig.broker->Pin(alice, grant.lease, Access::kReadOnly).ok());
  EXPECT_EQ(rig.LeaseOf(grant.lease)->state, "draining");
  EXPECT_EQ(rig.LeaseOf(grant.lease)->in_flight, 2u);
  EXPECT_EQ(rig.broker->Blocks(kAdmin)[0].lease, grant.lease);
  EXPECT_EQ(rig.Pool().draining, 2u);
  EXPECT_TRUE(rig.memory.pending().empty()) << "something is in flight";
  rig.broker->BlockFree(grant.blocks[0].block, true);
  EXPECT_EQ(rig.Pool().free, 0u) << "nobody frees a pinned block";
  LeasePin moved = *std::move(pin);
  moved = *std::move(second);  // unpins what it held
  EXPECT_TRUE(rig.memory.pending().empty());
  moved = LeasePin();
  EXPECT_EQ(rig.memory.pending().size(), 2u);
  EXPECT_FALSE(rig.LeaseOf(grant.lease).has_value());
}

TEST(End, PinOutlivesItsSession) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice);
  absl::StatusOr<LeasePin> pin = rig.broker->Pin(alice, grant.lease, Access::kReadWrite);
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  rig.Check();
  EXPECT_EQ(rig.LeaseOf(grant.lease)->state, "draining");
  *pin = LeasePin();
  EXPECT_TRUE(TheOrder(rig).must_be_fresh);
  rig.Reclaim();
  EXPECT_EQ(rig.Pool().free, 1u);
}

TEST(End, DrainGrantsNothingNewAndResumes) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice, {.blocks = 2});
  Grant idle = rig.Take(alice, {.cacheable = true});
  ASSERT_TRUE(rig.words.ClientIdle(alice, *idle.word, idle.generation));
  AnswerPtr waits = rig.Acquire(rig.Open(kBob), {.blocks = 4, .wait = absl::Hours(1)});
  EXPECT_TRUE(rig.LeaseOf(held.lease).has_value());
  EXPECT_EQ(rig.broker->SetDrain(true), 1u) << "the cached lease was recalled";
  rig.Check();
  EXPECT_EQ(waits->reason(), Reason::kDraining);
  AnswerPtr refused = rig.Acquire(alice);
  EXPECT_EQ(refused->result.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(refused->reason(), Reason::kDraining);
  EXPECT_TRUE(rig.words.pressure) << "clients must not cache what they release now";
  EXPECT_TRUE(rig.broker->Totals().draining);
  rig.Release(alice, held);
  EXPECT_EQ(rig.broker->SetDrain(true), 0u);
  EXPECT_EQ(rig.broker->SetDrain(false), 0u);
  EXPECT_FALSE(rig.words.pressure);
  EXPECT_EQ(rig.events.Count(EventKind::kDraining), 1);
  EXPECT_EQ(rig.events.Count(EventKind::kResumed), 1);
  rig.Reclaim();
  EXPECT_TRUE(rig.Acquire(alice, {.blocks = 3})->granted());
}

TEST(End, StopRefusesEverythingNewAndTellsWhy) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice, {.blocks = 2});
  AnswerPtr waits = rig.Acquire(alice, {.wait = absl::Hours(1)});
  rig.broker->Stop("upgrade");
  rig.broker->Stop("again");
  EXPECT_EQ(waits->reason(), Reason::kStopping);
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kStopping);
  EXPECT_EQ(ub::ReasonOf(rig.broker->Share({alice, held.lease, Access::kReadOnly, kBob, {}}).status()),
            Reason::kStopping);
  EXPECT_EQ(rig.events.Count(EventKind::kStopping), 1);
  EXPECT_EQ(rig.events.all.back().text, "upgrade");
  rig.Release(alice, held);
  EXPECT_TRUE(rig.broker->Totals().stopping);
}

}  // namespace
}  // namespace ubd
