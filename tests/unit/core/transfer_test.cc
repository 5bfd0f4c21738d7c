// Ranges pinned for transfers: what is checked, what is counted, and that no end of a lease frees memory under a
// device.
#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

std::vector<uint64_t> InFlight(const Rig& rig) {
  std::vector<uint64_t> counts;
  for (const BlockListing& block : rig.broker->Blocks(kAdmin)) counts.push_back(block.in_flight);
  return counts;
}

TEST(Transfer, RangeComesInPiecesOfItsBlocks) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 3});
  absl::StatusOr<RangePin> pin = rig.broker->PinRange(RangeOf(alice, grant, kBlock - Bytes(10), kBlock + Bytes(30)));
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_TRUE(pin->valid());
  const std::vector<Piece>& pieces = pin->pieces();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].offset, kBlock - Bytes(10));
  EXPECT_EQ(pieces[0].length, Bytes(10));
  EXPECT_EQ(pieces[1].offset, Bytes());
  EXPECT_EQ(pieces[1].length, kBlock);
  EXPECT_EQ(pieces[2].offset, Bytes());
  EXPECT_EQ(pieces[2].length, Bytes(20));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(pieces[i].block, grant.blocks[i].block);
}

TEST(Transfer, RangeThatEndsWithABlockDoesNotTouchTheNext) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  for (uint64_t block = 0; block < 2; ++block) {
    absl::StatusOr<RangePin> pin = rig.broker->PinRange(RangeOf(alice, grant, kBlock * block, kBlock));
    ASSERT_TRUE(pin.ok());
    ASSERT_EQ(pin->pieces().size(), 1u);
    EXPECT_EQ(pin->pieces()[0].block, grant.blocks[block].block);
    EXPECT_EQ(pin->pieces()[0].length, kBlock);
  }
}

TEST(Transfer, EmptyRangeHasNoPiecesAndPinsAllTheSame) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice);
  absl::StatusOr<RangePin> pin = rig.broker->PinRange(RangeOf(alice, grant, kBlock, Bytes()));
  ASSERT_TRUE(pin.ok());
  EXPECT_TRUE(pin->valid());
  EXPECT_TRUE(pin->pieces().empty());
  rig.Release(alice, grant);
  EXPECT_TRUE(rig.memory.pending().empty());
  *pin = RangePin();
  EXPECT_EQ(rig.memory.pending().size(), 1u);
}

TEST(Transfer, FaultsAreFoundInOrder) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  Grant grant = rig.Take(alice);
  Grant shared = rig.ShareWith(alice, grant, bob, kBob);
  RangeRequest request = RangeOf(bob, shared, kBlock, Bytes(1));
  request.lease = LeaseId(4711);
  request.generation += 1;
  auto refused = [&] { return rig.broker->PinRange(request).status(); };
  EXPECT_EQ(refused().code(), StatusCode::kNotFound);
  EXPECT_EQ(ub::ReasonOf(refused()), Reason::kNoSuchLease);
  request.lease = grant.lease;
  EXPECT_EQ(refused().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ub::ReasonOf(refused()), Reason::kStaleGeneration);
  request.generation -= 1;
  EXPECT_EQ(refused().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ub::ReasonOf(refused()), Reason::kReadOnly);
  request.needed = Access::kReadOnly;
  EXPECT_EQ(refused().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(ub::ReasonOf(refused()), Reason::kOutOfRange);
  EXPECT_EQ(ub::DetailOf(refused(), "offset"), "2097152");
  EXPECT_EQ(ub::DetailOf(refused(), "length"), "1");
  EXPECT_EQ(ub::DetailOf(refused(), "size"), "2097152");
  request.offset = Bytes();
  EXPECT_EQ(refused(), absl::OkStatus());
  request.session = SessionId(4711);
  EXPECT_EQ(ub::ReasonOf(refused()), Reason::kNoSuchLease);
  EXPECT_EQ(rig.LeaseOf(grant.lease)->in_flight, 0u) << "what was refused is still pinned";
}

TEST(Transfer, NoNumbersOverflow) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2});
  const uint64_t size = kBlock.count() * 2;
  const uint64_t most = UINT64_MAX;
  for (auto [offset, length] : std::vector<std::pair<uint64_t, uint64_t>>{{most, most},
                                                                          {most, 0},
                                                                          {most, 1},
                                                                          {0, most},
                                                                          {1, most},
                                                                          {size, most},
                                                                          {size, 1},
                                                                          {size + 1, 0},
                                                                          {most - size + 1, size},
                                                                          {size - 1, most - size + 2},
                                                                          {1, size},
                                                                          {0, size + 1}}) {
    absl::Status refused = rig.broker->PinRange(RangeOf(alice, grant, Bytes(offset), Bytes(length))).status();
    EXPECT_EQ(ub::ReasonOf(refused), Reason::kOutOfRange) << offset << " " << length;
  }
  EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{0, 0}));
}

TEST(Transfer, InFlightIsCountedByBlockAndByLease) {
  Rig rig(3);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 3});
  absl::StatusOr<RangePin> first = rig.broker->PinRange(RangeOf(alice, grant, Bytes(), kBlock * 2));
  absl::StatusOr<RangePin> second = rig.broker->PinRange(RangeOf(alice, grant, kBlock, Bytes(1)));
  EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{1, 2, 0}));
  EXPECT_EQ(rig.LeaseOf(grant.lease)->in_flight, 2u);
  {
    absl::StatusOr<LeasePin> whole = rig.broker->Pin(alice, grant.lease, Access::kReadOnly);
    EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{2, 3, 1})) << "a pin of the lease is on each of its blocks";
    EXPECT_EQ(rig.LeaseOf(grant.lease)->in_flight, 3u);
  }
  *first = RangePin();
  EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{0, 1, 0}));
  *second = RangePin();
  EXPECT_EQ(rig.LeaseOf(grant.lease)->in_flight, 0u);
  EXPECT_EQ(rig.LeaseOf(grant.lease)->draining_for, std::nullopt);
}

TEST(Transfer, PinsMoveAndEndOnce) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  Grant first = rig.Take(alice);
  Grant second = rig.Take(alice);
  RangePin pin = rig.PinAll(alice, first);
  RangePin moved = std::move(pin);
  EXPECT_FALSE(pin.valid());  // NOLINT(bugprone-use-after-move)
  RangePin& same = moved;
  moved = std::move(same);
  EXPECT_TRUE(moved.valid());
  EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{1, 0}));
  moved = rig.PinAll(alice, second);
  EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{0, 1}));
  moved = RangePin();
  EXPECT_EQ(InFlight(rig), (std::vector<uint64_t>{0, 0}));
}

// Every way in which a lease can end, with two transfers in flight.
struct Ending {
  const char* name;
  bool fresh;
  void (*end)(Rig& rig, SessionId session, LeaseId lease);
};

class TransferEnd : public testing::TestWithParam<Ending> {};

TEST_P(TransferEnd, BlocksDrainUntilTheLastCompletion) {
  BrokerLimits limits;
  limits.default_per_uid = kBlock * 2;
  Rig rig(3, limits);
  SessionId alice = rig.Open(kAlice);
  SessionId other = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.blocks = 2, .ttl = absl::Seconds(1)});
  RangePin first = rig.PinAll(alice, grant);
  RangePin second = rig.PinAll(alice, grant);
  GetParam().end(rig, alice, grant.lease);
  rig.Check();
  EXPECT_EQ(rig.broker->PinRange(RangeOf(alice, grant, Bytes(), Bytes(1))).status().code(), StatusCode::kNotFound);
  for (RangePin* pin : {&first, &second}) {
    EXPECT_TRUE(rig.memory.pending().empty()) << "handed on with a device still working on it";
    EXPECT_EQ(rig.Pool().draining, 2u);
    std::optional<LeaseListing> lease = rig.LeaseOf(grant.lease);
    ASSERT_TRUE(lease.has_value());
    EXPECT_EQ(lease->state, "draining");
    EXPECT_EQ(ub::ReasonOf(rig.Acquire(other)->result.status()), Reason::kQuotaExceeded) << "still charged";
    absl::Duration before = *lease->draining_for;
    rig.Pass(absl::Minutes(1));
    EXPECT_EQ(*rig.LeaseOf(grant.lease)->draining_for, before + absl::Minutes(1));
    *pin = RangePin();
    rig.Check();
  }
  ASSERT_EQ(rig.memory.pending().size(), 2u);
  EXPECT_EQ(rig.memory.pending()[0].order.must_be_fresh, GetParam().fresh);
  EXPECT_FALSE(rig.LeaseOf(grant.lease).has_value());
  rig.Reclaim();
  EXPECT_EQ(rig.Pool().free, 3u);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, TransferEnd,
    testing::Values(
        Ending{"Release", false, [](Rig& rig, SessionId s, LeaseId id) { (void)rig.broker->Release(s, id); }},
        Ending{"Revoke", true, [](Rig& rig, SessionId, LeaseId id) { (void)rig.broker->Revoke(kAdmin, id, "x"); }},
        Ending{"Ttl", true, [](Rig& rig, SessionId, LeaseId) { rig.Pass(absl::Seconds(1)); }},
        Ending{"Undelivered", true, [](Rig& rig, SessionId s, LeaseId id) { rig.broker->FailDelivery(s, id); }},
        Ending{"Death", true, [](Rig& rig, SessionId s, LeaseId) { rig.broker->CloseSession(s, SessionEnd::kDied); }}),
    [](const auto& ending) { return ending.param.name; });

TEST(Transfer, DescriptorsBeingSentAndTransfersHoldTheLeaseTogether) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice);
  RangePin range = rig.PinAll(alice, grant);
  absl::StatusOr<LeasePin> whole = rig.broker->Pin(alice, grant.lease, Access::kReadWrite);
  rig.Release(alice, grant);
  range = RangePin();
  rig.Check();
  EXPECT_TRUE(rig.memory.pending().empty());
  *whole = LeasePin();
  EXPECT_EQ(rig.memory.pending().size(), 1u);
}

TEST(Transfer, ShareHoldersTransferOutlivesItsShare) {
  for (bool dies : {false, true}) {
    Rig rig(1);
    SessionId alice = rig.Open(kAlice);
    SessionId friend_ = rig.Open(kAlice);
    Grant grant = rig.Take(alice);
    Grant shared = rig.ShareWith(alice, grant, friend_, kAlice, Access::kReadWrite);
    RangePin pin = rig.PinAll(friend_, shared);
    if (dies) {
      rig.broker->CloseSession(friend_, SessionEnd::kDied);
    } else {
      rig.Release(friend_, shared);
    }
    EXPECT_EQ(ub::ReasonOf(rig.broker->PinRange(RangeOf(friend_, shared, Bytes(), Bytes(1))).status()),
              Reason::kNoSuchLease);
    EXPECT_TRUE(rig.broker->PinRange(RangeOf(alice, grant, Bytes(), Bytes(1))).ok()) << "the owner goes on";
    rig.Release(alice, grant);
    EXPECT_TRUE(rig.memory.pending().empty());
    pin = RangePin();
    ASSERT_EQ(rig.memory.pending().size(), 1u);
    EXPECT_EQ(rig.memory.pending()[0].order.must_be_fresh, dies);
  }
}

}  // namespace
}  // namespace ubd
