// Listings: true at one moment, and cut to what the viewer may see.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

constexpr Viewer kAsAlice{false, kAlice};
constexpr Viewer kAsBob{false, kBob};
constexpr Viewer kAsCarol{false, Uid(1003)};

TEST(Listing, OthersSeeNoLeaseNoSessionAndNoBlockOwner) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  EXPECT_TRUE(rig.broker->Leases(kAsBob).empty());
  EXPECT_TRUE(rig.broker->Sessions(kAsBob).empty());
  for (const BlockListing& block : rig.broker->Blocks(kAsBob)) {
    EXPECT_FALSE(block.lease.has_value());
    EXPECT_EQ(block.block.lease, LeaseId());
  }
  EXPECT_EQ(rig.broker->Leases(kAsAlice).size(), 1u);
  EXPECT_EQ(rig.broker->Sessions(kAsAlice).size(), 1u);
  EXPECT_EQ(rig.broker->Blocks(kAsAlice)[0].lease, grant.lease);
  EXPECT_EQ(rig.broker->Leases(kAdmin).size(), 1u);
  rig.Release(alice, grant);
  rig.Reclaim();
  EXPECT_EQ(rig.broker->Blocks(kAsBob)[0].block.last_uid, std::nullopt);
  EXPECT_EQ(rig.broker->Blocks(kAdmin)[0].block.last_uid, kAlice);
}

TEST(Listing, HolderSeesItsPartOfAForeignLeaseOnly) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  SessionId carol = rig.Open(Uid(1003));
  Grant grant = rig.Take(alice);
  rig.ShareWith(alice, grant, bob, kBob);
  rig.ShareWith(alice, grant, carol, Uid(1003), Access::kReadWrite);
  std::optional<LeaseListing> bobs = rig.LeaseOf(grant.lease, kAsBob);
  ASSERT_TRUE(bobs.has_value());
  EXPECT_EQ(bobs->owner, SessionId());
  ASSERT_EQ(bobs->holders.size(), 1u);
  EXPECT_EQ(bobs->holders[0].session, bob);
  EXPECT_EQ(bobs->holders[0].access, Access::kReadOnly);
  EXPECT_EQ(rig.broker->Blocks(kAsBob)[0].lease, grant.lease);
  std::optional<LeaseListing> all = rig.LeaseOf(grant.lease);
  ASSERT_EQ(all->holders.size(), 3u);
  EXPECT_EQ(all->holders[0].session, alice) << "the owner first";
  EXPECT_EQ(all->holders[0].name, "job1");
  EXPECT_EQ(all->holders[2].session, carol);
  std::optional<LeaseListing> owners = rig.LeaseOf(grant.lease, kAsAlice);
  ASSERT_EQ(owners->holders.size(), 3u);
  EXPECT_EQ(owners->holders[1].uid, kBob) << "whom it shared with, the owner knows";
  EXPECT_EQ(owners->holders[1].pid, 0);
  EXPECT_EQ(owners->holders[1].name, "");
  EXPECT_EQ(owners->holders[1].session, SessionId());
  rig.Release(bob, grant);
  EXPECT_FALSE(rig.LeaseOf(grant.lease, kAsBob).has_value());
  EXPECT_TRUE(rig.LeaseOf(grant.lease, kAsCarol).has_value());
}

TEST(Listing, SessionFiguresAddUp) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock * 6;
  limits.default_per_session = kBlock * 5;
  Rig rig(8, limits);
  SessionId a = rig.Open(kAlice);
  SessionId b = rig.Open(kAlice);
  rig.Take(rig.Open(kBob), {.blocks = 5});
  rig.Take(a, {.blocks = 2});
  rig.Acquire(b, {.blocks = 3, .wait = absl::Hours(1)});
  rig.Pass(absl::Seconds(3));
  std::vector<SessionListing> sessions = rig.broker->Sessions(kAsAlice);
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0].leases, 1u);
  EXPECT_EQ(sessions[0].bytes, kBlock * 2);
  EXPECT_EQ(sessions[0].age, absl::Seconds(3));
  EXPECT_EQ(sessions[0].uid_bytes, kBlock * 5);
  EXPECT_EQ(sessions[0].quota, kBlock * 5) << "the tighter one";
  EXPECT_EQ(sessions[1].waiters, 1u);
  EXPECT_EQ(sessions[1].bytes, Bytes());
  EXPECT_EQ(rig.broker->Totals().waiters, 1u);
  EXPECT_EQ(rig.Pool().waiters, 1u);
}

TEST(Listing, NoLimitIsNoneNotZero) {
  Rig rig(2);
  rig.Open(kAlice);
  EXPECT_EQ(rig.broker->Sessions(kAdmin)[0].quota, std::nullopt);
}

TEST(Listing, TamperingIsToldToEachWhoMayHaveDoneIt) {
  Rig rig(2);
  rig.broker->TamperingFound(BlockId(1), {kAlice, kBob}, "3 of 512 pages missing");
  ASSERT_EQ(rig.events.Count(EventKind::kTampered), 2);
  EXPECT_EQ(rig.events.all[0].uid, kAlice);
  EXPECT_EQ(rig.events.all[1].uid, kBob);
  EXPECT_EQ(rig.events.all[1].text, "block 1: 3 of 512 pages missing");
  rig.broker->TamperingFound(BlockId(99), {kAlice}, "");
  EXPECT_EQ(rig.events.Count(EventKind::kTampered), 2);
}

TEST(Listing, EveryEventSaysWhoseItIs) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  rig.Release(alice, grant);
  rig.broker->CloseSession(alice, SessionEnd::kHangUp);
  ASSERT_EQ(rig.events.all.size(), 4u);
  EXPECT_EQ(rig.events.all[0].kind, EventKind::kSessionOpened);
  EXPECT_EQ(rig.events.all[3].kind, EventKind::kSessionClosed);
  for (const Event& event : rig.events.all) {
    EXPECT_EQ(event.session, alice);
    EXPECT_EQ(event.uid, kAlice);
    EXPECT_EQ(event.pid, 10001);
  }
  EXPECT_EQ(rig.events.all[1].lease, grant.lease);
  EXPECT_EQ(rig.events.all[1].pool, "p");
  EXPECT_EQ(rig.events.all[1].bytes, kBlock * 2);
}

TEST(Listing, NamesOfStatesAndEventsAreComplete) {
  EXPECT_STREQ(BlockStateName(BlockState::kRecycling), "recycling");
  for (int kind = 2; kind <= static_cast<int>(EventKind::kOwnerReleased); ++kind) {
    EXPECT_STRNE(EventKindName(static_cast<EventKind>(kind)), "unknown");
  }
}

TEST(Listing, SystemClockOnlyGoesForward) {
  SystemClock clock;
  MonoTime a = clock.Now();
  EXPECT_LE(a, clock.Now());
  EXPECT_GT(a, MonoTime());
}

}  // namespace
}  // namespace ubd
