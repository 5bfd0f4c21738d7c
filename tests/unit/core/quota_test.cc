// Quotas: per uid over all sessions, per session; leased, waited-for and retired memory all count.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

BrokerLimits PerUid(uint64_t blocks) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock * blocks;
  return limits;
}

TEST(Quota, OfAUidCoversAllItsSessions) {
  Rig rig(8, PerUid(3));
  SessionId a = rig.Open(kAlice);
  SessionId b = rig.Open(kAlice);
  rig.Take(a, {.blocks = 2});
  AnswerPtr over = rig.Acquire(b, {.blocks = 2, .wait = absl::Hours(1)});
  EXPECT_EQ(over->calls, 1) << "waiting under one's own quota would hold up the others";
  EXPECT_EQ(over->result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(over->reason(), Reason::kQuotaExceeded);
  EXPECT_EQ(over->detail("limit"), 3 * kBlock.count());
  EXPECT_EQ(over->detail("used"), 2 * kBlock.count());
  EXPECT_EQ(over->detail("asked"), 2 * kBlock.count());
  EXPECT_TRUE(rig.Acquire(b)->granted());
  EXPECT_TRUE(rig.Acquire(rig.Open(kBob), {.blocks = 3})->granted());
}

TEST(Quota, OfASessionIsItsOwn) {
  BrokerLimits limits;
  limits.default_per_session = kBlock * 2;
  Rig rig(8, limits);
  SessionId a = rig.Open(kAlice);
  rig.Take(a, {.blocks = 2});
  EXPECT_EQ(rig.Acquire(a)->reason(), Reason::kQuotaExceeded);
  EXPECT_TRUE(rig.Acquire(rig.Open(kAlice), {.blocks = 2})->granted());
  EXPECT_EQ(rig.Acquire(rig.Open(kAlice), {.blocks = 3})->reason(), Reason::kNeverSatisfiable);
}

TEST(Quota, NamedUidHasItsOwnLimit) {
  BrokerLimits limits = PerUid(1);
  limits.per_uid[kBob] = kBlock * 3;
  Rig rig(8, limits);
  EXPECT_TRUE(rig.Acquire(rig.Open(kBob), {.blocks = 3})->granted());
  AnswerPtr never = rig.Acquire(rig.Open(kAlice), {.blocks = 2});
  EXPECT_EQ(never->result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(never->reason(), Reason::kNeverSatisfiable);
  EXPECT_EQ(never->detail("limit"), kBlock.count());
}

TEST(Quota, CountsWhatIsWaitedFor) {
  Rig rig(4, PerUid(4));
  SessionId alice = rig.Open(kAlice);
  rig.Take(rig.Open(kBob), {.blocks = 4});
  AnswerPtr waits = rig.Acquire(alice, {.blocks = 3, .wait = absl::Seconds(1)});
  EXPECT_EQ(rig.Acquire(alice, {.blocks = 2, .wait = absl::Seconds(1)})->reason(), Reason::kQuotaExceeded);
  rig.Pass(absl::Seconds(1));
  EXPECT_EQ(waits->reason(), Reason::kWaitTimeout);
  EXPECT_EQ(rig.Acquire(alice, {.blocks = 4, .wait = absl::Seconds(1)})->calls, 0) << "the old wait counts no more";
}

TEST(Quota, CountsRetiredMemoryUntilItIsLetGo) {
  Rig rig(8, PerUid(2));
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  for (const GrantedBlock& block : grant.blocks) rig.memory.held.insert(block.block);
  rig.Release(alice, grant);
  rig.Reclaim();
  EXPECT_EQ(rig.Pool().retired, 2u);
  EXPECT_EQ(rig.Pool().free, 8u);
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded);
  EXPECT_EQ(rig.broker->Sessions(kAdmin)[0].uid_bytes, kBlock * 2);
  rig.memory.LetGo(*rig.broker);
  EXPECT_EQ(rig.Pool().retired, 0u);
  EXPECT_TRUE(rig.Acquire(alice, {.blocks = 2})->granted());
}

TEST(Quota, WaiterOverQuotaAtItsTurnIsRefusedAndHoldsUpNobody) {
  Rig rig(2, PerUid(2));
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  Grant bobs = rig.Take(bob, {.blocks = 1});
  rig.Take(alice);
  AnswerPtr alice_waits = rig.Acquire(alice, {.wait = absl::Hours(1)});
  AnswerPtr bob_waits = rig.Acquire(bob, {.wait = absl::Hours(1)});
  rig.broker->SetLimits(PerUid(1));
  EXPECT_EQ(alice_waits->reason(), Reason::kQuotaExceeded);
  EXPECT_EQ(bob_waits->reason(), Reason::kQuotaExceeded);
  rig.Release(bob, bobs);
  rig.Reclaim();
  EXPECT_TRUE(rig.Acquire(bob)->granted());
}

TEST(Quota, OwnIdleLeasesAreRecalledBeforeARefusal) {
  Rig rig(8, PerUid(2));
  SessionId alice = rig.Open(kAlice);
  Grant busy = rig.Take(alice, {.cacheable = true});
  Grant idle = rig.Take(alice, {.cacheable = true});
  ASSERT_TRUE(rig.words.ClientIdle(alice, *idle.word, idle.generation));
  AnswerPtr answer = rig.Acquire(alice);
  EXPECT_FALSE(rig.LeaseOf(idle.lease).has_value());
  EXPECT_EQ(answer->calls, 0) << "whether its memory is free is not known yet";
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
  EXPECT_TRUE(rig.LeaseOf(busy.lease).has_value());
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded) << "nothing idle is left";
}

TEST(Quota, OthersIdleLeasesDoNotHelp) {
  BrokerLimits limits;
  limits.default_per_session = kBlock;
  Rig rig(8, limits);
  SessionId a = rig.Open(kAlice);
  SessionId b = rig.Open(kAlice);
  Grant idle = rig.Take(a, {.cacheable = true});
  ASSERT_TRUE(rig.words.ClientIdle(a, *idle.word, idle.generation));
  rig.Take(b);
  EXPECT_EQ(rig.Acquire(b)->reason(), Reason::kQuotaExceeded);
  EXPECT_TRUE(rig.LeaseOf(idle.lease).has_value()) << "it is not in this session's way";
}

TEST(Quota, PinnedMemoryStaysChargedAfterRelease) {
  Rig rig(8, PerUid(2));
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  {
    absl::StatusOr<LeasePin> pin = rig.broker->Pin(alice, grant.lease, Access::kReadWrite);
    ASSERT_TRUE(pin.ok());
    rig.Release(alice, grant);
    EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded);
  }
  AnswerPtr answer = rig.Acquire(alice);
  EXPECT_EQ(answer->calls, 0);
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
}

// A client that keeps hold of what it gives back, and is quicker than the test that finds out.
TEST(Quota, WhatIsBeingTestedIsNotGrantedAgainBeforeItsFateIsKnown) {
  Rig rig(8, PerUid(2));
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  for (const GrantedBlock& block : grant.blocks) rig.memory.held.insert(block.block);
  rig.Release(alice, grant);
  AnswerPtr again = rig.Acquire(alice, {.blocks = 2});
  EXPECT_EQ(again->calls, 0) << "six blocks are free, but its account may be used up";
  rig.Reclaim();
  EXPECT_EQ(again->reason(), Reason::kQuotaExceeded);
  EXPECT_EQ(rig.memory.retired.size(), 2u);
  EXPECT_TRUE(rig.Acquire(rig.Open(kBob), {.blocks = 2})->granted());
}

TEST(Quota, TestsHoldUpNobodyWhoseLimitHoldsThem) {
  Rig rig(8, PerUid(4));
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  EXPECT_TRUE(rig.Acquire(alice, {.blocks = 2})->granted());
  Rig unlimited(8, BrokerLimits());
  SessionId bob = unlimited.Open(kBob);
  unlimited.Release(bob, unlimited.Take(bob, {.blocks = 4}));
  EXPECT_TRUE(unlimited.Acquire(bob, {.blocks = 4})->granted());
}

TEST(Quota, EndOfATestInOnePoolServesAWaitInAnother) {
  Rig rig(std::vector<PoolSpec>{{"a", "host", kBlock, 2}, {"b", "host", kBlock, 2}}, PerUid(2));
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2, .pool = "a"}));
  AnswerPtr other = rig.Acquire(alice, {.blocks = 2, .pool = "b"});
  EXPECT_EQ(other->calls, 0);
  rig.Reclaim();
  EXPECT_TRUE(other->granted());
}

TEST(Quota, RaisedLimitTakesEffectAtOnce) {
  Rig rig(8, PerUid(1));
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded);
  rig.broker->SetLimits(PerUid(2));
  EXPECT_TRUE(rig.Acquire(alice)->granted());
}

}  // namespace
}  // namespace ubd
