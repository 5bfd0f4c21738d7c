#include "client/src/lease_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/client/test_memory.h"

namespace ub {
namespace {

constexpr Bytes kBlock = MiB(2);

class LeaseCacheTest : public testing::Test {
 protected:
  LeaseCacheTest() : words_(*WordPage::Map(page_.Dup(), wire::kWordsPerSession)) {}

  // A held lease with word `id` - 1 and generation 100 + id.
  std::unique_ptr<LeaseImpl> Make(uint64_t id, uint64_t blocks = 1, const std::string& pool = "p") {
    page_.Busy(static_cast<uint32_t>(id - 1), 100 + id);
    LeaseInfo info = {.id = LeaseId(id),
                      .generation = Generation(100 + id),
                      .pool = pool,
                      .block_bytes = kBlock,
                      .page_bytes = KiB(4)};
    for (uint64_t i = 0; i < blocks; ++i) info.ub_addr.emplace_back(UbAddr::kBase + i * kBlock.count());
    info.word = words_.word(static_cast<uint32_t>(id - 1));
    absl::StatusOr<Mapping> mapping = Mapping::Reserve(kBlock, blocks, KiB(4), Access::kReadWrite);
    return std::make_unique<LeaseImpl>(&host_, &registry_, std::move(info), *std::move(mapping));
  }
  LeaseCache::Kept Put(LeaseCache& cache, std::unique_ptr<LeaseImpl> lease) {
    return cache.Put(lease, &give_back_, &dead_);
  }
  bool Recall(uint64_t id) { return wire::TryRecall(page_.page().words[id - 1], 100 + id); }

  TestPage page_;
  WordPage words_;
  TestHost host_;
  LeaseRegistry registry_;
  LeaseList give_back_;
  LeaseList dead_;
};

TEST_F(LeaseCacheTest, OldestTakenFirst) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  for (uint64_t id : {1, 2, 3}) EXPECT_EQ(Put(cache, Make(id)), LeaseCache::Kept::kYes);
  for (uint64_t id : {3, 2, 1}) {
    std::unique_ptr<LeaseImpl> lease = cache.Take("p", Bytes(1), &dead_);
    ASSERT_NE(lease, nullptr);
    EXPECT_EQ(lease->info().id, LeaseId(id));
    EXPECT_EQ(page_.State(static_cast<uint32_t>(id - 1)), wire::WordState::kBusy);
  }
  EXPECT_EQ(cache.Take("p", Bytes(1), &dead_), nullptr);
  EXPECT_EQ(page_.page().header.take_backs.load(), 3u);
}

TEST_F(LeaseCacheTest, OtherSizeOrPoolServed) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  Put(cache, Make(1, 2));
  EXPECT_EQ(cache.Take("p", kBlock, &dead_), nullptr);
  EXPECT_EQ(cache.Take("p", kBlock * 3, &dead_), nullptr);
  EXPECT_EQ(cache.Take("q", kBlock * 2, &dead_), nullptr);
  EXPECT_EQ(cache.Take("", kBlock * 2, &dead_), nullptr);  // which pool is the default is not known yet
  cache.SetDefaultPool("p");
  EXPECT_NE(cache.Take("", kBlock + Bytes(1), &dead_), nullptr);
}

TEST_F(LeaseCacheTest, RecalledLeaseServed) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  Put(cache, Make(1));
  Put(cache, Make(2));
  ASSERT_TRUE(Recall(2));
  std::unique_ptr<LeaseImpl> lease = cache.Take("p", Bytes(1), &dead_);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->info().id, LeaseId(1));
  ASSERT_EQ(dead_.size(), 1u);
  EXPECT_EQ(dead_[0]->info().id, LeaseId(2));
  EXPECT_EQ(cache.cached_bytes(), Bytes());
}

TEST_F(LeaseCacheTest, LeaseOfAnEndedSessionServed) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  Put(cache, Make(1));
  registry_.EndAll(LeaseEnd::kDisconnected);
  EXPECT_EQ(cache.Take("p", Bytes(1), &dead_), nullptr);
  EXPECT_EQ(dead_.size(), 1u);
}

TEST_F(LeaseCacheTest, KeptWhileSomebodyWaits) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  page_.page().header.pressure.store(1);
  std::unique_ptr<LeaseImpl> lease = Make(1);
  EXPECT_EQ(cache.Put(lease, &give_back_, &dead_), LeaseCache::Kept::kGiveBack);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(page_.State(0), wire::WordState::kBusy);  // nobody can recall it while it is being released
  EXPECT_EQ(cache.cached_bytes(), Bytes());
}

TEST_F(LeaseCacheTest, WordOfTheNextLeaseOverwritten) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  std::unique_ptr<LeaseImpl> lease = Make(1);
  page_.Busy(0, 999);  // the daemon ended the lease and gave its word to another
  EXPECT_EQ(lease->ended(), LeaseEnd::kRevoked);
  EXPECT_EQ(cache.Put(lease, &give_back_, &dead_), LeaseCache::Kept::kEnded);
  EXPECT_EQ(page_.page().words[0].word.load(), wire::PackWord(wire::WordState::kBusy, 999));
}

TEST_F(LeaseCacheTest, SharedLeaseTakenForRevoked) {
  std::unique_ptr<LeaseImpl> lease = Make(1);
  lease->MarkShared();
  page_.Busy(0, 999);  // the daemon takes the word of a shared lease away
  EXPECT_EQ(lease->ended(), LeaseEnd::kNot);
  EXPECT_FALSE(lease->cacheable());
}

TEST_F(LeaseCacheTest, LimitExceeded) {
  LeaseCache cache(&words_, kBlock * 2);
  Put(cache, Make(1));
  Put(cache, Make(2));
  EXPECT_EQ(Put(cache, Make(3)), LeaseCache::Kept::kYes);
  ASSERT_EQ(give_back_.size(), 1u);
  EXPECT_EQ(give_back_[0]->info().id, LeaseId(1));
  EXPECT_EQ(page_.State(0), wire::WordState::kBusy);
  EXPECT_EQ(cache.cached_bytes(), kBlock * 2);
  EXPECT_EQ(Put(cache, Make(4, 3)), LeaseCache::Kept::kGiveBack);
  LeaseCache none(&words_, Bytes());
  EXPECT_EQ(Put(none, Make(5)), LeaseCache::Kept::kGiveBack);
}

TEST_F(LeaseCacheTest, RecalledLeaseStaysMapped) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  for (uint64_t id : {1, 2, 3}) Put(cache, Make(id));
  ASSERT_TRUE(Recall(2));
  cache.RemoveRecalled(&dead_);
  ASSERT_EQ(dead_.size(), 1u);
  EXPECT_EQ(dead_[0]->info().id, LeaseId(2));
  std::unique_ptr<LeaseImpl> gone = cache.Remove(LeaseId(1));
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(cache.Remove(LeaseId(1)), nullptr);
  cache.TakeAll(&give_back_, &dead_);
  ASSERT_EQ(give_back_.size(), 1u);
  EXPECT_EQ(give_back_[0]->info().id, LeaseId(3));
  EXPECT_EQ(page_.State(2), wire::WordState::kBusy);
  EXPECT_EQ(cache.cached_bytes(), Bytes());
}

TEST_F(LeaseCacheTest, WarmTakeAllocatesOrFaults) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  Put(cache, Make(1));
  auto lease = cache.Take("p", Bytes(1), &dead_);
  cache.Put(lease, &give_back_, &dead_);
  long before = PageFaults();
  for (int i = 0; i < 1000; ++i) {
    lease = cache.Take("p", Bytes(1), &dead_);
    ASSERT_NE(lease, nullptr);
    ASSERT_EQ(cache.Put(lease, &give_back_, &dead_), LeaseCache::Kept::kYes);
  }
  if (!kShadowMemory) {
    EXPECT_EQ(PageFaults() - before, 0);
  }
}

// Every lease is at any time either held by one thread, cached, or recalled: never two of them.
TEST_F(LeaseCacheTest, LeaseHeldAndRecalledAtOnce) {
  LeaseCache cache(&words_, Bytes(UINT64_MAX));
  constexpr int kLeases = 64;
  std::atomic<int> held[kLeases + 1] = {};
  std::atomic<int> recalled = 0;
  std::atomic<int> found_dead = 0;
  for (uint64_t id = 1; id <= kLeases; ++id) Put(cache, Make(id));
  auto client = [&] {
    LeaseList give_back;
    LeaseList dead;
    for (int i = 0; i < 20000; ++i) {
      std::unique_ptr<LeaseImpl> lease = cache.Take("p", Bytes(1), &dead);
      if (lease == nullptr) break;
      std::atomic<int>& flag = held[lease->info().id.value()];
      EXPECT_EQ(flag.exchange(1), 0);
      flag.store(0);
      if (cache.Put(lease, &give_back, &dead) == LeaseCache::Kept::kEnded) dead.push_back(std::move(lease));
    }
    found_dead += static_cast<int>(dead.size());
  };
  std::thread daemon([&] {
    for (uint64_t id = 1; id <= kLeases; id += 2) {
      while (!Recall(id)) std::this_thread::yield();
      EXPECT_EQ(held[id].exchange(2), 0);  // whoever takes it after this is wrong
      ++recalled;
    }
  });
  std::thread one(client);
  std::thread two(client);
  one.join();
  two.join();
  daemon.join();
  LeaseList left;
  cache.TakeAll(&left, &dead_);
  EXPECT_EQ(found_dead + static_cast<int>(dead_.size()), recalled);
  EXPECT_EQ(left.size(), static_cast<size_t>(kLeases - recalled));
}

}  // namespace
}  // namespace ub
