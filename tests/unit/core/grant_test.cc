// Granting: which blocks, in which order, and what is refused at once.
#include <set>

#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

using absl::StatusCode;
using ub::Reason;

TEST(Grant, FreeBlocksInAnyPositionServeOneRequest) {
  Rig rig(32);
  SessionId alice = rig.Open(kAlice);
  std::vector<Grant> all;
  for (int i = 0; i < 32; ++i) all.push_back(rig.Take(alice));
  for (int i = 0; i < 32; i += 2) rig.Release(alice, all[i]);
  rig.Reclaim();
  EXPECT_EQ(rig.Take(alice, {.blocks = 16}).blocks.size(), 16u);
  EXPECT_EQ(rig.Pool().free, 0u);
}

TEST(Grant, NoBlockIsInTwoLeasesAndGenerationsRise) {
  Rig rig(8);
  SessionId alice = rig.Open(kAlice);
  Grant a = rig.Take(alice, {.blocks = 3});
  Grant b = rig.Take(alice, {.blocks = 5});
  std::set<BlockId> seen;
  for (const Grant* grant : {&a, &b}) {
    for (const GrantedBlock& block : grant->blocks) {
      EXPECT_TRUE(seen.insert(block.block).second);
      EXPECT_EQ(rig.broker->AddrOf(block.block), block.addr);
    }
  }
  EXPECT_LT(a.generation, b.generation);
  EXPECT_NE(a.lease, b.lease);
}

TEST(Grant, PartOfABlockCostsAWholeOne) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  auto answer = std::make_shared<Answer>();
  AcquireRequest request{.session = alice, .bytes = Bytes(kBlock.count() + 1), .request = RequestId(1)};
  rig.broker->Acquire(request, [&](absl::StatusOr<Grant> result) { answer->result = std::move(result); });
  ASSERT_TRUE(answer->result.ok());
  EXPECT_EQ(answer->result->blocks.size(), 2u);
}

TEST(Grant, PoolsDoNotMixAndAddressesStartAtAGiBEach) {
  std::vector<PoolSpec> pools = {{"small", "host", kBlock, 2, Isolation::kPerUid},
                                 {"large", "host", ub::GiB(1), 2, Isolation::kPerUid},
                                 {"last", "host", kBlock, 1, Isolation::kPerUid}};
  Rig rig(pools, {});
  SessionId alice = rig.Open(kAlice);
  EXPECT_EQ(rig.broker->AddrOf(BlockId(0)).value(), UbAddr::kBase);
  EXPECT_EQ(rig.broker->AddrOf(BlockId(1)).value(), UbAddr::kBase + kBlock.count());
  EXPECT_EQ(rig.broker->AddrOf(BlockId(2)).value(), UbAddr::kBase + (uint64_t{1} << 30));
  EXPECT_EQ(rig.broker->AddrOf(BlockId(4)).value(), UbAddr::kBase + (uint64_t{3} << 30));
  EXPECT_EQ(rig.broker->AddrOf(BlockId(5)), UbAddr());
  Grant last = rig.Take(alice, {.pool = "last"});
  EXPECT_EQ(last.pool, PoolId(2));
  EXPECT_EQ(last.blocks[0].block, BlockId(4));
  EXPECT_EQ(rig.Take(alice).pool, PoolId(0));  // no name: the first
}

TEST(Grant, UnknownPoolAndNonsenseAreRefused) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  EXPECT_EQ(rig.Acquire(alice, {.pool = "q"})->reason(), Reason::kNoSuchPool);
  EXPECT_EQ(rig.Acquire(alice, {.blocks = 0})->reason(), Reason::kBadField);
  EXPECT_EQ(rig.Acquire(alice, {.ttl = absl::ZeroDuration()})->reason(), Reason::kBadField);
  EXPECT_EQ(rig.Acquire(SessionId(99))->reason(), Reason::kSessionEnded);
}

TEST(Grant, LargerThanThePoolIsRefusedForGoodNotQueued) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  AnswerPtr answer = rig.Acquire(alice, {.blocks = 5, .wait = absl::Hours(1)});
  EXPECT_EQ(answer->calls, 1);
  EXPECT_EQ(answer->result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(answer->reason(), Reason::kNeverSatisfiable);
  EXPECT_EQ(answer->detail("asked"), 5 * kBlock.count());
  EXPECT_EQ(answer->detail("limit"), 4 * kBlock.count());
}

TEST(Grant, HugeSizesDoNotOverflow) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  Answer answer;
  AcquireRequest request{.session = alice, .bytes = Bytes(UINT64_MAX), .request = RequestId(1)};
  rig.broker->Acquire(request, [&](absl::StatusOr<Grant> result) { answer.result = std::move(result); });
  EXPECT_EQ(answer.reason(), Reason::kNeverSatisfiable);
}

TEST(Grant, EmptyPoolIsRefusedAtOnceWithFiguresAndNoNames) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 3});
  AnswerPtr answer = rig.Acquire(rig.Open(kBob), {.blocks = 2});
  EXPECT_EQ(answer->calls, 1);
  EXPECT_EQ(answer->result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(answer->reason(), Reason::kPoolEmpty);
  EXPECT_EQ(answer->detail("free"), kBlock.count());
  EXPECT_EQ(answer->detail("asked"), 2 * kBlock.count());
  EXPECT_EQ(answer->detail("leased"), 3 * kBlock.count());
  EXPECT_EQ(answer->detail("retired"), 0u);
  EXPECT_EQ(answer->detail("reclaimable"), 0u);
  std::string text(answer->result.status().message());
  EXPECT_EQ(text.find("job"), std::string::npos) << text;
  EXPECT_EQ(text.find("1001"), std::string::npos) << text;
  EXPECT_EQ(rig.words.pressure_changes, 0) << "a refusal must not wake all clients";
}

TEST(Grant, OneUidGetsItsOwnBlocksBackWithoutRecycling) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  SessionId again = rig.Open(kAlice);
  Grant first = rig.Take(alice);
  rig.Release(alice, first);
  ASSERT_EQ(rig.memory.pending().size(), 1u);
  EXPECT_FALSE(rig.memory.pending()[0].order.must_be_fresh);
  rig.Reclaim();
  Grant second = rig.Take(again);
  EXPECT_EQ(second.blocks[0].block, first.blocks[0].block) << "its own blocks come before clean ones";
  EXPECT_GT(second.generation, first.generation);
  EXPECT_EQ(rig.events.Count(EventKind::kRecycled), 0);
}

TEST(Grant, AnotherUidsBlockIsNeverGrantedAsItIs) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  SessionId bob = rig.Open(kBob);
  rig.Release(alice, rig.Take(alice, {.blocks = 4}));
  rig.Reclaim();
  ASSERT_EQ(rig.Pool().free, 4u);
  AnswerPtr answer = rig.Acquire(bob, {.blocks = 3});
  EXPECT_EQ(answer->calls, 0) << "memory is on its way, so even one that does not wait is not refused";
  std::vector<Order> orders = rig.memory.pending();
  ASSERT_EQ(orders.size(), 3u) << "only as many as are lacking";
  for (const Order& order : orders) {
    EXPECT_TRUE(order.order.must_be_fresh);
    EXPECT_EQ(order.order.charge, Charge{kAlice});
  }
  EXPECT_EQ(rig.Pool().recycling, 3u);
  rig.Reclaim();
  EXPECT_TRUE(answer->granted());
  EXPECT_EQ(rig.events.Count(EventKind::kRecycled), 3);
  EXPECT_TRUE(rig.Acquire(alice)->granted()) << "the fourth is still Alice's";
}

TEST(Grant, CleanBlocksAreUsedBeforeOthersAreRecycled) {
  Rig rig(4);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  rig.Reclaim();
  EXPECT_TRUE(rig.Acquire(rig.Open(kBob), {.blocks = 2})->granted());
  EXPECT_TRUE(rig.memory.pending().empty());
}

TEST(Grant, WithoutIsolationAnyFreeBlockServes) {
  Rig rig(2, {}, Isolation::kNone);
  SessionId alice = rig.Open(kAlice);
  rig.Release(alice, rig.Take(alice, {.blocks = 2}));
  rig.Reclaim();
  EXPECT_TRUE(rig.Acquire(rig.Open(kBob), {.blocks = 2})->granted());
}

TEST(Grant, OldBackingWhereFreshWasOrderedIsNotAccepted) {
  Rig rig(1);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  rig.broker->CloseSession(alice, SessionEnd::kDied);
  Order order = *rig.memory.Take();
  rig.broker->BlockFree(order.block, /*fresh=*/false);
  EXPECT_EQ(rig.Pool().free, 0u);
  ASSERT_EQ(rig.memory.pending().size(), 1u);
  EXPECT_TRUE(rig.memory.pending()[0].order.must_be_fresh);
}

TEST(Grant, ReportsOfTheMemoryLayerForLeasedBlocksChangeNothing) {
  Rig rig(2);
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice, {.blocks = 2});
  rig.broker->BlockFree(BlockId(0), true);
  rig.broker->BlockFree(BlockId(77), true);
  rig.broker->BlockRecycling(BlockId(1));
  rig.broker->BackingFreed(BlockId(0), {kAlice});
  rig.Check();
  EXPECT_EQ(rig.Pool().leased, 2u);
}

TEST(Grant, LeasesPerSessionAreLimited) {
  Rig rig(8, {.max_leases_per_session = 2});
  SessionId alice = rig.Open(kAlice);
  rig.Take(alice);
  rig.Take(alice);
  AnswerPtr answer = rig.Acquire(alice);
  EXPECT_EQ(answer->reason(), Reason::kTooManyLeases);
  EXPECT_EQ(answer->detail("limit"), 2u);
  EXPECT_TRUE(rig.Acquire(rig.Open(kAlice))->granted());
}

}  // namespace
}  // namespace ubd
