// Recall of cached leases: no answer from the client needed, and no more taken than is wanted.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using ub::Reason;

constexpr absl::Duration kLong = absl::Seconds(30);

// A cacheable lease that its client has idle.
Grant TakeIdle(Rig& rig, SessionId session, uint64_t blocks = 1) {
  Grant grant = rig.Take(session, {.blocks = blocks, .cacheable = true});
  EXPECT_TRUE(grant.word && rig.words.ClientIdle(session, *grant.word, grant.generation));
  return grant;
}

TEST(Recall, IdleLeaseServesAWaiterWithoutItsClientsAnswer) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant idle = TakeIdle(rig, alice, 2);
  EXPECT_EQ(rig.Pool().cached, 2u);
  EXPECT_EQ(rig.Pool().leased, 0u);
  EXPECT_EQ(rig.LeaseOf(idle.lease)->state, "cached");
  AnswerPtr bob = rig.Acquire(rig.Open(kBob), {.blocks = 2, .wait = kLong});
  EXPECT_FALSE(rig.LeaseOf(idle.lease).has_value());
  EXPECT_FALSE(rig.words.ClientTakeBack(alice, *idle.word, idle.generation));
  EXPECT_EQ(rig.events.Count(EventKind::kRecalled, alice), 1);
  ASSERT_EQ(rig.memory.pending().size(), 2u);
  EXPECT_FALSE(rig.memory.pending()[0].order.must_be_fresh);
  EXPECT_EQ(rig.memory.pending()[0].order.grace, absl::Milliseconds(20));
  rig.Reclaim();  // tested, then recycled for Bob
  EXPECT_TRUE(bob->granted());
  EXPECT_EQ(rig.broker->Release(alice, idle.lease).code(), absl::StatusCode::kNotFound);
}

TEST(Recall, RequestThatDoesNotWaitGetsIdleMemoryToo) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  TakeIdle(rig, alice, 2);
  AnswerPtr answer = rig.Acquire(rig.Open(kAlice));
  EXPECT_EQ(answer->calls, 0);
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
}

TEST(Recall, RequestThatDoesNotWaitTakesNothingWhenItWouldNotSuffice) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 3});
  Grant idle = TakeIdle(rig, alice);
  EXPECT_EQ(rig.Acquire(rig.Open(kBob), {.blocks = 2})->reason(), Reason::kPoolEmpty);
  EXPECT_TRUE(rig.LeaseOf(idle.lease).has_value());
  EXPECT_EQ(rig.words.pressure_changes, 0);
}

TEST(Recall, OnlyAsManyAsAreLackingOldestFirst) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  std::vector<Grant> idle;
  for (int i = 0; i < 4; ++i) idle.push_back(TakeIdle(rig, alice));
  rig.Acquire(rig.Open(kBob), {.blocks = 2, .wait = kLong});
  EXPECT_FALSE(rig.LeaseOf(idle[0].lease) || rig.LeaseOf(idle[1].lease));
  EXPECT_TRUE(rig.LeaseOf(idle[2].lease) && rig.LeaseOf(idle[3].lease));
}

TEST(Recall, MemoryInItsTestIsCountedBeforeMoreIsRecalled) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant released = rig.Take(alice);
  Grant idle = TakeIdle(rig, alice);
  rig.Release(alice, released);
  AnswerPtr answer = rig.Acquire(alice, {.wait = kLong});
  EXPECT_TRUE(rig.LeaseOf(idle.lease).has_value());
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
}

TEST(Recall, BusyLeaseIsNeverTaken) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant busy = rig.Take(alice, {.cacheable = true});
  AnswerPtr bob = rig.Acquire(rig.Open(kBob), {.wait = kLong});
  EXPECT_TRUE(rig.LeaseOf(busy.lease).has_value());
  EXPECT_FALSE(rig.words.ClientIdle(alice, *busy.word, busy.generation)) << "the client sees that somebody waits";
  rig.Release(alice, busy);
  rig.Reclaim();
  EXPECT_TRUE(bob->granted());
}

TEST(Recall, PressureComesBeforeTheFirstLookAtAWord) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  TakeIdle(rig, alice, 2);
  rig.Acquire(rig.Open(kBob), {.wait = kLong});
  EXPECT_EQ(rig.words.tries_without_pressure, 0);
}

TEST(Recall, BusyLeasesAreLookedAtOncePerSpellOfPressure) {
  Rig rig(64);
  rig.words.words_per_session = 64;
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  std::vector<Grant> busy;
  for (int i = 0; i < 60; ++i) busy.push_back(rig.Take(alice, {.cacheable = true}));
  Grant bobs = rig.Take(bob, {.blocks = 4});
  AnswerPtr waits = rig.Acquire(bob, {.blocks = 40, .wait = kLong});
  int first = rig.words.tries;
  EXPECT_EQ(first, 60);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(rig.broker->Release(alice, busy[i].lease).ok());
    rig.memory.Finish(*rig.broker);
  }
  EXPECT_EQ(rig.words.tries, first) << "each freed block must not cost a look at every word";
  EXPECT_EQ(waits->calls, 0);
}

TEST(Recall, NextSpellOfPressureLooksAgain) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.cacheable = true});
  AnswerPtr gone = rig.Acquire(rig.Open(kBob), {.wait = absl::Seconds(1)});
  rig.Pass(absl::Seconds(1));
  EXPECT_EQ(gone->reason(), Reason::kWaitTimeout);
  ASSERT_TRUE(rig.words.ClientIdle(alice, *grant.word, grant.generation));
  AnswerPtr next = rig.Acquire(rig.Open(kBob), {.wait = absl::Seconds(1)});
  rig.Reclaim();
  EXPECT_TRUE(next->granted());
}

TEST(Recall, IdleMemoryServesThoseBehindTheHeadAsWell) {
  Rig rig(3);
  SessionId alice = rig.Open(kAlice);
  for (int i = 0; i < 3; ++i) TakeIdle(rig, alice);
  AnswerPtr first = rig.Acquire(rig.Open(kAlice), {.blocks = 2, .wait = kLong});
  AnswerPtr second = rig.Acquire(rig.Open(kAlice), {.wait = kLong});
  rig.Reclaim();
  EXPECT_TRUE(first->granted() && second->granted());
}

TEST(Recall, FullPageOfWordsMeansNoCachingNotNoLease) {
  Rig rig(4);
  rig.words.words_per_session = 1;
  SessionId alice = rig.Open(kAlice);
  EXPECT_TRUE(rig.Take(alice, {.cacheable = true}).word.has_value());
  EXPECT_FALSE(rig.Take(alice, {.cacheable = true}).word.has_value());
  EXPECT_FALSE(rig.Take(alice, {.cacheable = false}).word.has_value());
}

TEST(Recall, WordIsGivenBackAtEveryEnd) {
  Rig rig(4);
  rig.words.words_per_session = 1;
  SessionId alice = rig.Open(kAlice);
  Grant released = rig.Take(alice, {.cacheable = true});
  rig.Release(alice, released);
  Grant revoked = rig.Take(alice, {.cacheable = true});
  ASSERT_TRUE(revoked.word.has_value());
  EXPECT_TRUE(rig.broker->Revoke(kAdmin, revoked.lease, "").ok());
  EXPECT_EQ(ub::wire::StateOfWord(rig.words.StateOf(alice, 0)), ub::wire::WordState::kRecalled)
      << "a client that has it idle must not take it back";
  EXPECT_TRUE(rig.Take(alice, {.cacheable = true}).word.has_value());
}

TEST(Recall, GarbageInAWordHarmsOnlyItsOwner) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.cacheable = true});
  rig.words.ClientIdle(alice, *grant.word, Generation(grant.generation.value() + 1));  // a wrong generation
  EXPECT_EQ(rig.Pool().cached, 0u);
  AnswerPtr waits = rig.Acquire(rig.Open(kBob), {.blocks = 2, .wait = kLong});
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value());
  rig.Release(alice, grant);
  rig.Reclaim();
  EXPECT_TRUE(waits->granted());
}

TEST(Recall, QuotaScanOfManyBusyLeasesGoesOnWhereItStopped) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock * 2000;
  Rig rig(2001, limits);
  rig.words.words_per_session = 2000;
  SessionId alice = rig.Open(kAlice);
  std::vector<Grant> all;
  for (int i = 0; i < 2000; ++i) {
    rig.broker->Acquire({.session = alice, .bytes = kBlock, .request = RequestId(1000000 + i), .cacheable = true},
                        [&](absl::StatusOr<Grant> result) { all.push_back(*result); });
  }
  ASSERT_TRUE(rig.words.ClientIdle(alice, *all[1500].word, all[1500].generation));
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded) << "one call looks at a bounded number";
  EXPECT_LE(rig.words.tries, 1024);
  AnswerPtr next = rig.Acquire(alice);
  rig.Reclaim();
  EXPECT_TRUE(next->granted()) << "the next call looks at the others";
}

}  // namespace
}  // namespace ubd
