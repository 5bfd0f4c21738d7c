#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "client/src/slot_magazines.h"
#include "proto/wire/error.h"
#include "tests/unit/client/test_client.h"
#include "ub/slot_pool.h"

namespace ub {
namespace {

constexpr Bytes kBlock = TestClient::kBlock;

class SlotPoolTest : public testing::Test {
 protected:
  std::unique_ptr<SlotPool> Make(Bytes slot, Bytes bytes) {
    absl::StatusOr<std::unique_ptr<SlotPool>> pool = SlotPool::Create(client_, {.slot = slot, .bytes = bytes});
    return pool.ok() ? *std::move(pool) : nullptr;
  }
  TestClient client_;
};

TEST_F(SlotPoolTest, SlotGivenTwiceOrOverlapping) {
  std::unique_ptr<SlotPool> pool = Make(KiB(64), kBlock * 3);
  ASSERT_NE(pool, nullptr);
  ASSERT_EQ(pool->slots(), 96u);
  std::vector<Slot> slots;
  std::set<std::byte*> seen;
  while (Slot slot = pool->Take()) {
    EXPECT_TRUE(seen.insert(slot.data()).second);
    slots.push_back(std::move(slot));
  }
  EXPECT_EQ(slots.size(), 96u);
  EXPECT_FALSE(pool->Take());
  for (auto it = seen.begin(); std::next(it) != seen.end(); ++it) EXPECT_GE(*std::next(it) - *it, 64 << 10);
}

TEST_F(SlotPoolTest, SlotCrossesABlock) {
  Bytes slot = KiB(192);  // does not divide a block
  std::unique_ptr<SlotPool> pool = Make(slot, kBlock * 4);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->slots(), 4u * 10);
  std::vector<Slot> slots;
  std::byte* lowest = nullptr;
  while (Slot taken = pool->Take()) {
    if (lowest == nullptr || taken.data() < lowest) lowest = taken.data();
    slots.push_back(std::move(taken));
  }
  for (const Slot& taken : slots) {
    uint64_t offset = static_cast<uint64_t>(taken.data() - lowest);
    uint64_t last = offset + taken.size() - 1;
    EXPECT_EQ(offset / kBlock.count(), last / kBlock.count());
    // The address that devices use lies in the same block at the same place.
    uint64_t block_addr = UbAddr::kBase + (4 - offset / kBlock.count()) * 7 * kBlock.count();
    EXPECT_EQ(taken.ub_addr(), UbAddr(block_addr + offset % kBlock.count()));
  }
}

TEST_F(SlotPoolTest, MovedSlotReturnedTwice) {
  std::unique_ptr<SlotPool> pool = Make(kBlock, kBlock * 2);
  Slot a = pool->Take();
  Slot b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: what a moved-from slot is, is the point
  EXPECT_EQ(a.data(), nullptr);
  a.Return();
  b.Return();
  b.Return();
  Slot c = pool->Take();
  Slot d = pool->Take();
  EXPECT_TRUE(c && d);
  EXPECT_NE(c.data(), d.data());
  EXPECT_FALSE(pool->Take());
  c = std::move(d);  // gives c's own back first
  EXPECT_TRUE(pool->Take());
}

TEST_F(SlotPoolTest, BadSizesAccepted) {
  for (auto [slot, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 4096},
                                                                       {63, 4096},
                                                                       {32, 4096},
                                                                       {100, 4096},
                                                                       {4096, 0},
                                                                       {4096, 4095},
                                                                       {kBlock.count() * 2, kBlock.count() * 2}}) {
    absl::StatusOr<std::unique_ptr<SlotPool>> pool =
        SlotPool::Create(client_, {.slot = Bytes(slot), .bytes = Bytes(bytes)});
    EXPECT_EQ(pool.status().code(), absl::StatusCode::kInvalidArgument) << slot << " " << bytes;
  }
  EXPECT_EQ(client_.host.given_back, 1);  // the one that was found wanting only after the lease was there
}

TEST_F(SlotPoolTest, LeaseKeptWhenThePoolIsGone) {
  Make(KiB(64), kBlock).reset();
  EXPECT_EQ(client_.host.given_back, 1);
}

TEST_F(SlotPoolTest, RevokedPoolPassesCheck) {
  std::unique_ptr<SlotPool> pool = Make(KiB(64), kBlock);
  EXPECT_TRUE(pool->Check().ok());
  client_.registry.End(LeaseId(1), LeaseEnd::kRevoked);
  EXPECT_EQ(ReasonOf(pool->Check()), Reason::kRevoked);
}

TEST_F(SlotPoolTest, ForkedChildUsesTheParentsSlots) {
  std::unique_ptr<SlotPool> pool = Make(KiB(64), kBlock);
  Slot held = pool->Take();
  int status = InChild([&] {
    if (pool->Take()) return 1;
    if (ReasonOf(pool->Check()) != Reason::kForked) return 2;
    held.Return();
    pool.reset();
    return client_.host.given_back;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pool->Check().ok());
  EXPECT_TRUE(pool->Take());
}

TEST(SlotMagazinesTest, SlotsLostWithTheThreadThatTookThem) {
  SlotMagazines slots(100);
  std::vector<uint32_t> taken;
  std::thread taker([&] {
    while (std::optional<uint32_t> slot = slots.Take()) taken.push_back(*slot);
  });
  taker.join();
  ASSERT_EQ(taken.size(), 100u);
  for (uint32_t slot : taken) slots.Return(slot);  // by another thread, after the taker's end
  std::set<uint32_t> again;
  while (std::optional<uint32_t> slot = slots.Take()) again.insert(*slot);
  EXPECT_EQ(again.size(), 100u);
  EXPECT_EQ(*again.rbegin(), 99u);
}

TEST(SlotMagazinesTest, EveryCount) {
  for (uint32_t count = 1; count <= 700; ++count) {
    SlotMagazines slots(count);
    std::set<uint32_t> seen;
    while (std::optional<uint32_t> slot = slots.Take()) seen.insert(*slot);
    ASSERT_EQ(seen.size(), count);
    ASSERT_EQ(*seen.rbegin(), count - 1);
  }
}

// Four threads and four slots, each holding at most one: there is always a free one for the thread that asks.
TEST(SlotMagazinesTest, EmptyThoughASlotIsFree) {
  SlotMagazines slots(4);
  std::atomic<int> held[4] = {};
  std::atomic<int> false_empties = 0;
  std::atomic<int> doubles = 0;
  auto worker = [&] {
    for (int i = 0; i < 200000; ++i) {
      std::optional<uint32_t> slot = slots.Take();
      if (!slot) {
        ++false_empties;
        continue;
      }
      if (held[*slot].exchange(1) != 0) ++doubles;
      held[*slot].store(0);
      slots.Return(*slot);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(worker);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(false_empties, 0);
  EXPECT_EQ(doubles, 0);
}

// Slots taken here and returned there, across more pools than a thread keeps hints for.
TEST(SlotMagazinesTest, HintOfADeadPoolUsed) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<SlotMagazines>> pools;
    for (uint32_t i = 0; i < 9; ++i) pools.push_back(std::make_unique<SlotMagazines>(1 + (round * 37 + i * 101) % 300));
    for (auto& pool : pools) {
      std::optional<uint32_t> slot = pool->Take();
      ASSERT_TRUE(slot);
      std::thread([&] { pool->Return(*slot); }).join();
    }
  }
}

}  // namespace
}  // namespace ub
