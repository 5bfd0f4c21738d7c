// Clients' own memory as leases: in no pool, charged like any other, dropped and never reclaimed.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

constexpr Viewer kAsAlice{false, kAlice};
constexpr Viewer kAsBob{false, kBob};
constexpr BlockId kFirst(100);  // the memory layer's number, after all pools'

struct OwnRig : Rig {
  explicit OwnRig(const BrokerLimits& limits = {}) : Rig(4, limits) {}
  absl::StatusOr<Grant> Own(SessionId session, BlockId block = kFirst, Bytes bytes = kBlock,
                            Access access = Access::kReadWrite) {
    absl::StatusOr<Grant> grant = broker->GrantOwn(session, block, bytes, access);
    Check();
    return grant;
  }
  Reason Refused(SessionId session, BlockId block = kFirst, Bytes bytes = kBlock) {
    return ub::ReasonOf(Own(session, block, bytes).status());
  }
  absl::StatusOr<RangePin> PinRange(SessionId session, const Grant& grant, Bytes offset, Bytes length,
                                    Access needed = Access::kReadWrite) {
    return broker->PinRange(RangeOf(session, grant, offset, length, needed));
  }
};

TEST(Own, IsALeaseOfOneBlockInNoPool) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  absl::StatusOr<Grant> grant = rig.Own(alice, kFirst, ub::KiB(12));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->pool, kOwnPool);
  EXPECT_EQ(grant->block_bytes, ub::KiB(12));
  ASSERT_EQ(grant->blocks.size(), 1u);
  EXPECT_EQ(grant->blocks[0].block, kFirst);
  EXPECT_EQ(grant->access, Access::kReadWrite);
  EXPECT_FALSE(grant->word.has_value());
  EXPECT_FALSE(grant->expires.has_value());
  Grant other = rig.Take(alice);
  EXPECT_GT(other.generation, grant->generation);
  EXPECT_NE(other.lease, grant->lease);
  ASSERT_EQ(rig.events.Count(EventKind::kGranted, alice), 2);
  for (const Event& event : rig.events.all) {
    EXPECT_EQ(event.lease == grant->lease, event.pool == "own");
  }
}

TEST(Own, LiesAtAnAddressThatNothingElseEverHas) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant first = *rig.Own(alice, BlockId(100), ub::KiB(4));
  Grant second = *rig.Own(alice, BlockId(101), ub::GiB(1));
  const UbAddr after_pools(UbAddr::kBase + ub::GiB(1).count());
  EXPECT_EQ(first.blocks[0].addr, after_pools);
  EXPECT_EQ(second.blocks[0].addr, after_pools + ub::GiB(1));
  EXPECT_EQ(rig.broker->AddrOf(BlockId(101)), second.blocks[0].addr);
  rig.Release(alice, second);
  EXPECT_EQ(rig.broker->AddrOf(BlockId(101)), UbAddr());
  EXPECT_EQ(rig.Own(alice, BlockId(102))->blocks[0].addr, after_pools + ub::GiB(2));
}

TEST(Own, TransfersGoThroughLikeAnyOther) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant grant = *rig.Own(alice, kFirst, ub::MiB(3));
  absl::StatusOr<RangePin> pin = rig.PinRange(alice, grant, ub::MiB(1), ub::MiB(2));
  ASSERT_TRUE(pin.ok()) << pin.status();
  ASSERT_EQ(pin->pieces().size(), 1u);
  EXPECT_EQ(pin->pieces()[0].block, kFirst);
  EXPECT_EQ(pin->pieces()[0].offset, ub::MiB(1));
  EXPECT_EQ(pin->pieces()[0].length, ub::MiB(2));
  EXPECT_EQ(ub::ReasonOf(rig.PinRange(alice, grant, ub::MiB(1), ub::MiB(3)).status()), Reason::kOutOfRange);
  EXPECT_TRUE(rig.broker->Pin(alice, grant.lease, Access::kReadWrite).ok());
  rig.Check();
}

TEST(Own, ReadOnlyMemoryIsNotWritten) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice, /*advisory=*/true);
  Grant grant = *rig.Own(alice, kFirst, kBlock, Access::kReadOnly);
  EXPECT_EQ(grant.access, Access::kReadOnly);
  EXPECT_FALSE(grant.read_only_advisory) << "it is its own memory";
  EXPECT_EQ(ub::ReasonOf(rig.PinRange(alice, grant, Bytes(), Bytes(1)).status()), Reason::kReadOnly);
  EXPECT_TRUE(rig.PinRange(alice, grant, Bytes(), Bytes(1), Access::kReadOnly).ok());
}

TEST(Own, ListingsShowItToThoseWhoMaySee) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant grant = *rig.Own(alice);
  absl::StatusOr<RangePin> pin = rig.PinRange(alice, grant, Bytes(), kBlock);
  for (const Viewer& viewer : {kAsAlice, kAdmin}) {
    std::optional<LeaseListing> lease = rig.LeaseOf(grant.lease, viewer);
    ASSERT_TRUE(lease.has_value());
    EXPECT_EQ(lease->pool, "own");
    EXPECT_EQ(lease->bytes, kBlock);
    EXPECT_EQ(lease->blocks, 1u);
    EXPECT_EQ(lease->state, "held");
    EXPECT_EQ(lease->in_flight, 1u);
    std::vector<BlockListing> blocks = rig.broker->Blocks(viewer);
    ASSERT_EQ(blocks.size(), 5u);
    EXPECT_EQ(blocks[4].pool, "own");
    EXPECT_EQ(blocks[4].block.id, kFirst);
    EXPECT_EQ(blocks[4].block.state, BlockState::kLeased);
    EXPECT_EQ(blocks[4].lease, grant.lease);
    EXPECT_EQ(blocks[4].in_flight, 1u);
    EXPECT_EQ(rig.broker->Sessions(viewer)[0].leases, 1u);
    EXPECT_EQ(rig.broker->Sessions(viewer)[0].bytes, kBlock);
  }
  EXPECT_FALSE(rig.LeaseOf(grant.lease, kAsBob).has_value());
  EXPECT_EQ(rig.broker->Blocks(kAsBob).size(), 4u);
  ASSERT_EQ(rig.broker->Pools().size(), 1u);
  EXPECT_EQ(rig.Pool().free, 4u);
  EXPECT_EQ(rig.broker->Totals().leases, 1u);
  rig.Release(alice, grant);
  EXPECT_EQ(rig.broker->Blocks(kAdmin)[4].block.state, BlockState::kDraining);
  EXPECT_TRUE(rig.LeaseOf(grant.lease)->draining_for.has_value());
}

TEST(Own, IsDroppedOnceWhenNothingIsInFlight) {
  for (int way = 0; way < 4; ++way) {
    OwnRig rig;
    SessionId alice = rig.Open(kAlice);
    Grant grant = *rig.Own(alice);
    absl::StatusOr<RangePin> pin = rig.PinRange(alice, grant, Bytes(), Bytes(1));
    if (way == 0) rig.Release(alice, grant);
    if (way == 1) (void)rig.broker->Revoke(kAsAlice, grant.lease, "x");
    if (way == 2) rig.broker->CloseSession(alice, SessionEnd::kDied);
    if (way == 3) rig.broker->FailDelivery(alice, grant.lease);
    rig.Check();
    EXPECT_FALSE(rig.broker->Release(alice, grant.lease).ok());
    EXPECT_TRUE(rig.memory.dropped().empty()) << "a device still works on it";
    EXPECT_EQ(rig.LeaseOf(grant.lease)->state, "draining");
    EXPECT_EQ(ub::ReasonOf(rig.PinRange(alice, grant, Bytes(), Bytes(1)).status()), Reason::kNoSuchLease);
    *pin = RangePin();
    rig.Check();
    EXPECT_EQ(rig.memory.dropped(), std::vector<BlockId>{kFirst});
    EXPECT_TRUE(rig.memory.pending().empty()) << "not the pool's to reclaim";
    EXPECT_EQ(rig.broker->Totals().leases, 0u);
  }
}

TEST(Own, OthersMayNotEndOrUseIt) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  Grant grant = *rig.Own(alice);
  EXPECT_EQ(rig.broker->Release(bob, grant.lease).code(), StatusCode::kNotFound);
  EXPECT_EQ(rig.broker->Revoke(kAsBob, grant.lease, "").code(), StatusCode::kNotFound);
  EXPECT_EQ(rig.PinRange(bob, grant, Bytes(), Bytes(1)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ub::ReasonOf(rig.broker->Share({bob, grant.lease, Access::kReadOnly, kBob, {}}).status()),
            Reason::kNoSuchLease);
  EXPECT_TRUE(rig.memory.dropped().empty());
}

TEST(Own, CannotBeShared) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant grant = *rig.Own(alice);
  absl::Status refused = rig.broker->Share({alice, grant.lease, Access::kReadOnly, kBob, {}}).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ub::ReasonOf(refused), Reason::kNotShareable);
}

TEST(Own, CountsForTheQuotaUntilItsLastTransferIsDone) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock * 2;
  OwnRig rig(limits);
  SessionId alice = rig.Open(kAlice);
  Grant grant = *rig.Own(alice, kFirst, kBlock);
  rig.Take(alice);
  EXPECT_EQ(rig.Acquire(alice)->reason(), Reason::kQuotaExceeded);
  EXPECT_EQ(rig.Refused(alice, BlockId(101)), Reason::kQuotaExceeded);
  absl::StatusOr<RangePin> pin = rig.PinRange(alice, grant, Bytes(), Bytes(1));
  rig.Release(alice, grant);
  EXPECT_EQ(rig.Refused(alice, BlockId(101)), Reason::kQuotaExceeded);
  *pin = RangePin();
  EXPECT_TRUE(rig.Own(alice, BlockId(101)).ok());
}

TEST(Own, RefusalsAreThoseOfAnAcquire) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock * 2;
  limits.default_per_session = kBlock;
  limits.max_leases_per_session = 2;
  limits.max_own_per_uid = 3;
  OwnRig rig(limits);
  SessionId alice = rig.Open(kAlice);
  EXPECT_EQ(rig.Refused(alice, kFirst, kBlock * 2), Reason::kNeverSatisfiable) << "more than the session's quota";
  EXPECT_EQ(rig.Refused(alice, kFirst, kBlock * 3), Reason::kNeverSatisfiable);
  EXPECT_EQ(rig.Refused(alice, kFirst, Bytes()), Reason::kBadField);
  EXPECT_EQ(rig.Refused(alice, kFirst, ub::GiB(1) + Bytes(1)), Reason::kBadField);
  EXPECT_EQ(ub::ReasonOf(rig.Own(alice, kFirst, kBlock, static_cast<Access>(7)).status()), Reason::kBadField);
  EXPECT_EQ(rig.Refused(SessionId(4711)), Reason::kSessionEnded);
  EXPECT_EQ(rig.Own(alice, BlockId(0)).status().code(), StatusCode::kInternal) << "a pool's block";
  ASSERT_TRUE(rig.Own(alice, BlockId(100), ub::KiB(4)).ok());
  EXPECT_EQ(rig.Own(alice, BlockId(100), ub::KiB(4)).status().code(), StatusCode::kInternal) << "in use";
  EXPECT_EQ(rig.Refused(alice, BlockId(101), kBlock), Reason::kQuotaExceeded);
  ASSERT_TRUE(rig.Own(alice, BlockId(101), ub::KiB(4)).ok());
  EXPECT_EQ(rig.Refused(alice, BlockId(102), ub::KiB(4)), Reason::kTooManyLeases);
  SessionId second = rig.Open(kAlice);
  ASSERT_TRUE(rig.Own(second, BlockId(102), ub::KiB(4)).ok());
  absl::Status too_many = rig.Own(second, BlockId(103), ub::KiB(4)).status();
  EXPECT_EQ(ub::ReasonOf(too_many), Reason::kTooManyLeases);
  EXPECT_EQ(ub::DetailOf(too_many, "limit"), "3") << "ranges of one user";
  EXPECT_TRUE(rig.Own(rig.Open(kBob), BlockId(104), ub::KiB(4)).ok()) << "another user has its own limit";
  EXPECT_TRUE(rig.memory.dropped().empty()) << "what was refused is the caller's to drop";
}

TEST(Own, DrainAndStopGrantNoMore) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant grant = *rig.Own(alice);
  EXPECT_EQ(rig.broker->SetDrain(true), 1u) << "it is left";
  EXPECT_TRUE(rig.LeaseOf(grant.lease).has_value()) << "never recalled";
  EXPECT_EQ(rig.Refused(alice, BlockId(101)), Reason::kDraining);
  rig.broker->SetDrain(false);
  rig.broker->Stop("");
  EXPECT_EQ(rig.Refused(alice, BlockId(101)), Reason::kStopping);
  rig.Release(alice, grant);
  EXPECT_EQ(rig.memory.dropped().size(), 1u);
}

TEST(Own, MakesRoomInItsQuotaLikeAnAcquire) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock;
  OwnRig rig(limits);
  SessionId alice = rig.Open(kAlice);
  Grant idle = rig.Take(alice, {.cacheable = true});
  rig.words.ClientIdle(alice, *idle.word, idle.generation);
  EXPECT_TRUE(rig.Own(alice).ok());
  EXPECT_FALSE(rig.LeaseOf(idle.lease).has_value());
}

// A lease of own memory has no request id; 0 is one that a client may use.
TEST(Own, EndTakesNoRequestWithIt) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant asked = rig.Take(alice, {.request = 0});
  rig.Release(alice, *rig.Own(alice));
  AnswerPtr again = rig.Acquire(alice, {.request = 0});
  ASSERT_TRUE(again->granted());
  EXPECT_TRUE(again->result->repeated);
  EXPECT_EQ(again->result->lease, asked.lease);
}

TEST(Own, NewsOfTheMemoryLayerDoNotConcernIt) {
  OwnRig rig;
  SessionId alice = rig.Open(kAlice);
  Grant grant = *rig.Own(alice);
  rig.broker->BlockFree(kFirst, true);
  rig.broker->BlockRecycling(kFirst);
  rig.broker->BackingRetired(kFirst, {kAlice});
  rig.Check();
  EXPECT_EQ(rig.LeaseOf(grant.lease)->state, "held");
}

}  // namespace
}  // namespace ubd
