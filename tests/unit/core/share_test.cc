// Shares: tickets, holders, and what a share does to the memory's next life.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

struct ShareTest : testing::Test {
  Rig rig{8};
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  Grant grant = rig.Take(alice, {.blocks = 2});

  absl::StatusOr<Ticket> Share(Uid uid, Access access = Access::kReadOnly) {
    return rig.broker->Share({alice, grant.lease, access, uid, {}});
  }
  ReclaimOrder TheOrder() {
    EXPECT_EQ(rig.memory.pending().size(), 2u);
    return rig.memory.pending().empty() ? ReclaimOrder() : rig.memory.pending()[0].order;
  }
};

TEST_F(ShareTest, TicketWorksOnceForTheNamedUidOnly) {
  absl::StatusOr<Ticket> ticket = Share(kBob);
  ASSERT_TRUE(ticket.ok());
  SessionId carol = rig.Open(Uid(1003));
  absl::Status wrong = rig.broker->Attach(carol, ticket->id).status();
  EXPECT_EQ(wrong.code(), StatusCode::kNotFound);
  EXPECT_EQ(wrong, rig.broker->Attach(carol, TicketId{9, 9}).status()) << "a stranger's try tells nothing";
  absl::StatusOr<Grant> attached = rig.broker->Attach(bob, ticket->id);
  ASSERT_TRUE(attached.ok());
  EXPECT_EQ(attached->lease, grant.lease);
  EXPECT_EQ(attached->generation, grant.generation);
  EXPECT_EQ(attached->blocks.size(), 2u);
  EXPECT_EQ(attached->access, Access::kReadOnly);
  EXPECT_FALSE(attached->word.has_value());
  EXPECT_EQ(rig.broker->Attach(rig.Open(kBob), ticket->id).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(rig.events.Count(EventKind::kShared, alice), 1);
  EXPECT_EQ(rig.events.Count(EventKind::kAttached, bob), 1);
}

TEST_F(ShareTest, TicketExpires) {
  absl::StatusOr<Ticket> ticket = Share(kBob);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(ticket->expires_in, absl::Seconds(60));
  rig.Pass(absl::Seconds(60));
  EXPECT_EQ(ub::ReasonOf(rig.broker->Attach(bob, ticket->id).status()), Reason::kNoSuchTicket);
}

TEST_F(ShareTest, TicketDiesWithItsLeaseAndWithItsOwner) {
  absl::StatusOr<Ticket> ticket = Share(kBob);
  rig.Release(alice, grant);
  EXPECT_EQ(ub::ReasonOf(rig.broker->Attach(bob, ticket->id).status()), Reason::kNoSuchTicket);
  Grant other = rig.Take(alice);
  ticket = rig.broker->Share({alice, other.lease, Access::kReadOnly, kBob, {}});
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  EXPECT_EQ(ub::ReasonOf(rig.broker->Attach(bob, ticket->id).status()), Reason::kNoSuchTicket);
}

TEST_F(ShareTest, TicketsOfOneLeaseAreLimitedAndExpiredOnesMakeRoom) {
  uint64_t serial = 0;  // the rig's own ids run over after 256
  Broker broker(OnePool(2), {}, {rig.clock, rig.memory, rig.words, rig.events, [&](absl::Span<uint8_t> bytes) {
                                   ++serial;
                                   for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(serial >> (8 * i));
                                 }});
  broker.OpenSession({.id = SessionId(1), .uid = kAlice});
  LeaseId lease;
  broker.Acquire({.session = SessionId(1), .bytes = kBlock, .request = RequestId(1)},
                 [&](absl::StatusOr<Grant> result) { lease = result->lease; });
  ShareRequest request = {SessionId(1), lease, Access::kReadOnly, kBob, {}};
  absl::Status last;
  int made = 0;
  while ((last = broker.Share(request).status()).ok() && made < 100000) ++made;
  EXPECT_EQ(last.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(made, 256);
  rig.clock.Advance(absl::Seconds(61));
  EXPECT_TRUE(broker.Share(request).ok());
}

TEST_F(ShareTest, BadAccessAndBadTtlAreRefused) {
  EXPECT_EQ(ub::ReasonOf(Share(kBob, static_cast<Access>(0)).status()), Reason::kBadField);
  EXPECT_EQ(ub::ReasonOf(rig.broker->Share({alice, grant.lease, Access::kReadOnly, kBob, absl::Seconds(-1)}).status()),
            Reason::kBadField);
}

TEST_F(ShareTest, ReadOnlyShareCannotBePinnedForWriting) {
  rig.ShareWith(alice, grant, bob, kBob);
  absl::Status refused = rig.broker->Pin(bob, grant.lease, Access::kReadWrite).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ub::ReasonOf(refused), Reason::kReadOnly);
  EXPECT_TRUE(rig.broker->Pin(bob, grant.lease, Access::kReadOnly).ok());
  SessionId bob2 = rig.Open(kBob);
  rig.ShareWith(alice, grant, bob2, kBob, Access::kReadWrite);
  EXPECT_TRUE(rig.broker->Pin(bob2, grant.lease, Access::kReadWrite).ok());
}

TEST_F(ShareTest, AdvisoryReadOnlyIsSaid) {
  SessionId root = rig.Open(Uid(0), /*advisory=*/true);
  EXPECT_TRUE(rig.ShareWith(alice, grant, root, Uid(0)).read_only_advisory);
  EXPECT_FALSE(rig.ShareWith(alice, grant, bob, kBob).read_only_advisory);
  SessionId root2 = rig.Open(Uid(0), true);
  EXPECT_FALSE(rig.ShareWith(alice, grant, root2, Uid(0), Access::kReadWrite).read_only_advisory);
  EXPECT_TRUE(rig.LeaseOf(grant.lease)->holders[1].advisory);
}

TEST_F(ShareTest, ShareIsNotPassedOnAndNotAttachedTwice) {
  rig.ShareWith(alice, grant, bob, kBob);
  EXPECT_EQ(rig.broker->Share({bob, grant.lease, Access::kReadOnly, kBob, {}}).status().code(), StatusCode::kNotFound);
  absl::StatusOr<Ticket> again = Share(kBob);
  EXPECT_EQ(ub::ReasonOf(rig.broker->Attach(bob, again->id).status()), Reason::kBadField);
  EXPECT_TRUE(rig.broker->Attach(rig.Open(kBob), again->id).ok()) << "the ticket was not used up";
}

TEST_F(ShareTest, OwnersReleaseEndsItForAll) {
  rig.ShareWith(alice, grant, bob, kBob);
  rig.Release(alice, grant);
  EXPECT_EQ(rig.broker->Release(bob, grant.lease).code(), StatusCode::kNotFound);
  EXPECT_EQ(rig.events.Count(EventKind::kReleased, alice), 1);
  EXPECT_EQ(rig.events.Count(EventKind::kOwnerReleased, bob), 1);
  ReclaimOrder order = TheOrder();
  EXPECT_TRUE(order.must_be_fresh) << "two uids had it";
  EXPECT_EQ(order.charge, (Charge{kAlice, kBob}));
}

TEST_F(ShareTest, HoldersReleaseEndsItsPartOnly) {
  rig.ShareWith(alice, grant, bob, kBob);
  rig.Release(bob, grant);
  EXPECT_EQ(rig.events.Count(EventKind::kDetached, bob), 1);
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value());
  EXPECT_FALSE(rig.broker->Pin(bob, grant.lease, Access::kReadOnly).ok());
  EXPECT_EQ(rig.broker->Release(bob, grant.lease).code(), StatusCode::kNotFound);
  rig.Release(alice, grant);
  ReclaimOrder order = TheOrder();
  EXPECT_TRUE(order.must_be_fresh) << "another uid has seen it";
  EXPECT_EQ(order.charge, Charge{kAlice}) << "who detached is not charged";
}

TEST_F(ShareTest, WithinOneUidTheBackingIsReused) {
  SessionId worker = rig.Open(kAlice);
  rig.ShareWith(alice, grant, worker, kAlice);
  rig.Release(alice, grant);
  ReclaimOrder order = TheOrder();
  EXPECT_FALSE(order.must_be_fresh);
  EXPECT_EQ(order.grace, absl::Milliseconds(20)) << "the holder needs a moment to unmap";
}

TEST_F(ShareTest, WithoutIsolationSharesDoNotForceFreshBacking) {
  Rig open(2, {}, Isolation::kNone);
  SessionId a = open.Open(kAlice);
  SessionId b = open.Open(kBob);
  Grant shared = open.Take(a);
  open.ShareWith(a, shared, b, kBob);
  open.Release(b, shared);
  open.Release(a, shared);
  EXPECT_FALSE(open.memory.pending()[0].order.must_be_fresh);
}

TEST_F(ShareTest, DeadHolderMakesTheLeaseUncleanForGood) {
  SessionId worker = rig.Open(kAlice);
  rig.ShareWith(alice, grant, worker, kAlice);
  rig.broker->CloseSession(worker, SessionEnd::kDied);
  rig.Check();
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value()) << "the owner keeps it";
  EXPECT_EQ(rig.events.Count(EventKind::kDetached, worker), 1);
  EXPECT_EQ(rig.broker->Totals().reclaimed_sessions, 0u);
  rig.Release(alice, grant);
  EXPECT_TRUE(TheOrder().must_be_fresh);
}

TEST_F(ShareTest, DeadHolderIsStillCharged) {
  rig.ShareWith(alice, grant, bob, kBob);
  rig.broker->CloseSession(bob, SessionEnd::kHangUp);
  rig.Release(alice, grant);
  EXPECT_EQ(TheOrder().charge, (Charge{kAlice, kBob}));
}

TEST_F(ShareTest, FailedDeliveryToAHolderCountsAsExposed) {
  rig.ShareWith(alice, grant, bob, kBob);
  rig.broker->FailDelivery(bob, grant.lease);
  rig.Check();
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value());
  rig.Release(alice, grant);
  EXPECT_TRUE(TheOrder().must_be_fresh);
  EXPECT_EQ(TheOrder().charge, (Charge{kAlice, kBob}));
}

TEST_F(ShareTest, RevokeExpiryAndOwnersDeathReachEveryHolder) {
  rig.ShareWith(alice, grant, bob, kBob);
  EXPECT_TRUE(rig.broker->Revoke(kAdmin, grant.lease, "why").ok());
  EXPECT_EQ(rig.events.Count(EventKind::kRevoked, bob), 1);
  Grant short_lived = rig.Take(alice, {.ttl = absl::Seconds(1)});
  rig.ShareWith(alice, short_lived, bob, kBob);
  rig.Pass(absl::Seconds(1));
  EXPECT_EQ(rig.events.Count(EventKind::kExpired, bob), 1);
  Grant orphan = rig.Take(alice);
  rig.ShareWith(alice, orphan, bob, kBob);
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  EXPECT_EQ(rig.events.Count(EventKind::kOwnerReleased, bob), 1);
  EXPECT_FALSE(rig.broker->Pin(bob, orphan.lease, Access::kReadOnly).ok());
  rig.Check();
}

TEST_F(ShareTest, SharedLeaseIsNoLongerCacheable) {
  Grant cacheable = rig.Take(alice, {.cacheable = true});
  ASSERT_TRUE(cacheable.word.has_value());
  ASSERT_TRUE(rig.broker->Share({alice, cacheable.lease, Access::kReadOnly, kBob, {}}).ok());
  rig.Check();
  EXPECT_EQ(ub::wire::StateOfWord(rig.words.StateOf(alice, *cacheable.word)), ub::wire::WordState::kRecalled);
  EXPECT_EQ(rig.LeaseOf(cacheable.lease)->state, "held") << "the lease lives on";
}

TEST_F(ShareTest, AttachedLeasesCountForTheSessionsLimit) {
  Rig small(4, {.max_leases_per_session = 1});
  SessionId a = small.Open(kAlice);
  SessionId b = small.Open(kBob);
  Grant mine = small.Take(a);
  small.Take(b);
  absl::StatusOr<Ticket> ticket = small.broker->Share({a, mine.lease, Access::kReadOnly, kBob, {}});
  EXPECT_EQ(ub::ReasonOf(small.broker->Attach(b, ticket->id).status()), Reason::kTooManyLeases);
}

}  // namespace
}  // namespace ubd
