// Leases that are wanted back while transfers are in flight on them.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using ub::Reason;

// One block, idle in alice's cache with a transfer in flight, and bob who wants it.
struct IdleAndBusy {
  IdleAndBusy() {
    grant = rig.Take(alice, {.cacheable = true});
    EXPECT_TRUE(rig.words.ClientIdle(alice, *grant.word, grant.generation));
    pin = rig.PinAll(alice, grant);
  }
  Rig rig{1};
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  Grant grant;
  RangePin pin;
};

TEST(TransferRecall, PinnedLeaseIsNotRecalledWhateverItsWordSays) {
  IdleAndBusy its;
  EXPECT_EQ(its.rig.LeaseOf(its.grant.lease)->state, "held") << "not cached: it is in use";
  EXPECT_EQ(its.rig.Pool().cached, 0u);
  AnswerPtr waits = its.rig.Acquire(its.bob, {.wait = absl::Seconds(10)});
  EXPECT_EQ(its.rig.LeaseOf(its.grant.lease)->state, "held");
  EXPECT_TRUE(its.rig.broker->PinRange(RangeOf(its.alice, its.grant, Bytes(), Bytes(1))).ok());
  // Alone the last completion makes it idle, and then nobody looks at it but the Broker.
  its.pin = RangePin();
  EXPECT_FALSE(its.rig.LeaseOf(its.grant.lease).has_value());
  EXPECT_EQ(its.rig.events.Count(EventKind::kRecalled, its.alice), 1);
  EXPECT_FALSE(its.rig.words.ClientTakeBack(its.alice, *its.grant.word, its.grant.generation));
  its.rig.Reclaim();
  its.rig.Reclaim();
  EXPECT_TRUE(waits->granted());
}

TEST(TransferRecall, LeaseThatItsClientTookBackMeanwhileStays) {
  IdleAndBusy its;
  AnswerPtr waits = its.rig.Acquire(its.bob, {.wait = absl::Seconds(10)});
  EXPECT_TRUE(its.rig.words.ClientTakeBack(its.alice, *its.grant.word, its.grant.generation));
  its.pin = RangePin();
  EXPECT_TRUE(its.rig.LeaseOf(its.grant.lease).has_value());
  EXPECT_EQ(waits->calls, 0);
}

TEST(TransferRecall, LeaseIsKeptWhenNobodyWantsItAnyMore) {
  IdleAndBusy its;
  AnswerPtr waits = its.rig.Acquire(its.bob, {.wait = absl::Seconds(10)});
  its.rig.Pass(absl::Seconds(10));
  EXPECT_EQ(waits->reason(), Reason::kWaitTimeout);
  its.pin = RangePin();
  EXPECT_EQ(its.rig.LeaseOf(its.grant.lease)->state, "cached");
}

TEST(TransferRecall, DrainRecallsItAfterTheLastTransfer) {
  IdleAndBusy its;
  EXPECT_EQ(its.rig.broker->SetDrain(true), 1u);
  EXPECT_EQ(its.rig.LeaseOf(its.grant.lease)->state, "held");
  its.pin = RangePin();
  EXPECT_EQ(its.rig.broker->Totals().leases, 0u);
}

TEST(TransferRecall, QuotaIsNotMadeRoomInByRecallingWhatIsInUse) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock;
  Rig rig(2, limits);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.cacheable = true});
  rig.words.ClientIdle(alice, *grant.word, grant.generation);
  RangePin pin = rig.PinAll(alice, grant);
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded);
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value());
  pin = RangePin();
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value()) << "nobody waits: no pressure";
  AnswerPtr answer = rig.Acquire(alice);
  EXPECT_FALSE(rig.LeaseOf(grant.lease).has_value());
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
}

TEST(TransferRecall, LeaseInUseIsNotCountedAsOnItsWay) {
  IdleAndBusy its;
  EXPECT_EQ(its.rig.Acquire(its.bob)->reason(), Reason::kPoolEmpty);
}

}  // namespace
}  // namespace ubd
