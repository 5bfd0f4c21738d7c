// The life of a block's backing: reused, recycled, retired, freed; for small and huge pages.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <thread>

#include "daemon/memory/mono_now.h"
#include "proto/wire/error.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

using ::testing::ElementsAre;

const Charge kAlice = {Uid(1001)};

class Reclaim : public ::testing::TestWithParam<Bytes> {
 protected:
  void SetUp() override { SKIP_WITHOUT_PAGES(GetParam()); }
  void TearDown() override {
    if (memory_ == nullptr) return;
    memory_->Stop();
    memory_.reset();
    EXPECT_EQ(OpenFds(), fds_);
    EXPECT_EQ(MemfdMaps(), 0U);
  }
  void Boot(uint32_t blocks, uint32_t reserve, HostMemoryDeps deps = RealDeps()) {
    HostPoolConfig pool = SmallPool("p", GetParam(), blocks, reserve);
    pool.lock_pages = Demand::kOff;
    BootWith({pool}, std::move(deps));
  }
  void BootWith(const std::vector<HostPoolConfig>& pools, HostMemoryDeps deps = RealDeps()) {
    fds_ = OpenFds();
    absl::StatusOr<std::unique_ptr<Memory>> made = CreateHostMemory(pools, nullptr, deps);
    ASSERT_TRUE(made.ok()) << made.status();
    memory_ = std::move(*made);
    memory_->Start(&sink_);
  }
  ub::UniqueFd Open(uint32_t block, Access access = Access::kReadWrite) {
    absl::StatusOr<ub::UniqueFd> fd = memory_->OpenForHolder(BlockId(block), access);
    EXPECT_TRUE(fd.ok()) << fd.status();
    return fd.ok() ? std::move(*fd) : ub::UniqueFd();
  }
  void Order(uint32_t block, bool must_be_fresh = false, absl::Duration grace = absl::ZeroDuration()) {
    memory_->Reclaim(BlockId(block), {must_be_fresh, grace, kAlice});
  }
  void Write(uint32_t block, char value) {
    ub::UniqueFd fd = Open(block);
    Mapping mapping(fd.get(), kBlock, PROT_READ | PROT_WRITE);
    ASSERT_TRUE(mapping.ok());
    mapping.data()[0] = value;
  }
  char FirstByte(uint32_t block) {
    ub::UniqueFd fd = Open(block, Access::kReadOnly);
    Mapping mapping(fd.get(), kBlock, PROT_READ);
    return mapping.ok() ? mapping.data()[0] : '?';
  }
  uint64_t Reserve() { return memory_->Facts()[0].reserve; }

  size_t fds_ = 0;
  RecordingSink sink_;
  std::unique_ptr<Memory> memory_;
};

TEST_P(Reclaim, UntouchedBlockIsReusedWithItsBytes) {
  Boot(2, 1);
  EXPECT_EQ(memory_->ReuseTest(), "sole-holder");
  Write(0, 'a');
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(FirstByte(0), 'a');
  EXPECT_EQ(sink_.All().size(), 1U);
}

TEST_P(Reclaim, HeldBlockGetsFreshBackingAndTheOldOneIsChargedUntilItIsLetGo) {
  Boot(2, 1);
  Write(0, 'a');
  ub::UniqueFd held = Open(0);
  Mapping mapping(held.get(), kBlock, PROT_READ);
  held.reset();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(FirstByte(0), 0);
  EXPECT_EQ(mapping.data()[0], 'a');
  EXPECT_EQ(sink_.Count(Event::kRetired), 1U);
  EXPECT_FALSE(sink_.WaitFor(Event::kFreed, 1, absl::Milliseconds(50))) << "freed while somebody holds it";
  mapping.Unmap();
  ASSERT_TRUE(sink_.WaitFor(Event::kFreed));
  for (const Seen& seen : sink_.All()) {
    if (seen.event != Event::kRetired && seen.event != Event::kFreed) continue;
    EXPECT_THAT(seen.charge, ElementsAre(Uid(1001)));
  }
}

TEST_P(Reclaim, ReadOnlyHolderCountsToo) {
  Boot(1, 1);
  ub::UniqueFd held = Open(0, Access::kReadOnly);
  Order(0);
  EXPECT_TRUE(sink_.WaitFor(Event::kFresh));
}

TEST_P(Reclaim, MustBeFreshNeverReusesAnUntouchedBlock) {
  Boot(1, 1);
  Write(0, 'a');
  Order(0, /*must_be_fresh=*/true);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(FirstByte(0), 0);
  EXPECT_EQ(sink_.Count(Event::kRetired), 0U) << "nobody held it";
}

TEST_P(Reclaim, GraceLetsAnObedientClientUnmap) {
  Boot(1, 1);
  Write(0, 'a');
  ub::UniqueFd held = Open(0);
  Order(0, false, kSoon);
  EXPECT_FALSE(sink_.WaitFor(Event::kFree, 1, absl::Milliseconds(30)));
  held.reset();
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(FirstByte(0), 'a');
}

TEST_P(Reclaim, GraceEndsForAClientThatDoesNotUnmap) {
  Boot(1, 1);
  ub::UniqueFd held = Open(0);
  const MonoTime before = MonoNow();
  Order(0, false, absl::Milliseconds(40));
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_GE(MonoNow() - before, absl::Milliseconds(40));
}

TEST_P(Reclaim, PunchedBlockGetsFreshBackingAndIsReportedWherePagesStay) {
  Boot(1, 1);
  ub::UniqueFd client = Open(0);
  ASSERT_EQ(
      ::fallocate(client.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(GetParam().count())),
      0);
  client.reset();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  // Unlocked small pages may have been swapped out: no proof, no audit line.
  const bool huge = GetParam() == ub::MiB(2);
  EXPECT_EQ(sink_.Count(Event::kTampering), huge ? 1U : 0U);
  EXPECT_EQ(sink_.Count(Event::kFree), 0U);
}

TEST_P(Reclaim, PunchedLockedBlockIsReported) {
  if (GetParam() != ub::KiB(4)) GTEST_SKIP() << "huge pages need no locking";
  HostPoolConfig pool = SmallPool("p", GetParam(), 1, 1);
  pool.lock_pages = Demand::kRequired;
  BootWith({pool});
  EXPECT_EQ(memory_->Facts()[0].locked, "yes");
  ub::UniqueFd client = Open(0);
  ASSERT_EQ(::fallocate(client.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
  client.reset();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  ASSERT_EQ(sink_.Count(Event::kTampering), 1U);
  EXPECT_EQ(sink_.All()[0].what, "1 of 512 pages were removed, the first at offset 8192");
}

TEST_P(Reclaim, ReserveIsUsedAndRefilled) {
  Boot(2, 1);
  EXPECT_EQ(Reserve(), 1U);
  for (size_t round = 1; round <= 3; ++round) {
    Order(0, true);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, round));
    EXPECT_TRUE(Eventually([&] { return Reserve() == 1; }));
  }
  EXPECT_EQ(sink_.Count(Event::kRecycling), 0U);
}

TEST_P(Reclaim, WithoutReserveTheOldBackingIsFreedFirst) {
  Boot(2, 0);
  Write(0, 'a');
  Order(0, true);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(sink_.Count(Event::kRecycling), 1U);
  EXPECT_EQ(FirstByte(0), 0);
}

TEST_P(Reclaim, HoarderStarvesTheReserveNeverTheMachine) {
  Boot(3, 1);
  std::vector<ub::UniqueFd> hoard;
  for (uint32_t block = 0; block < 3; ++block) hoard.push_back(Open(block));
  const size_t full = MemfdMaps();
  EXPECT_EQ(full, 4U);
  for (uint32_t block = 0; block < 3; ++block) Order(block, true);
  ASSERT_TRUE(sink_.WaitFor(Event::kRecycling, 2));
  EXPECT_EQ(sink_.Count(Event::kRetired), 3U);
  EXPECT_EQ(sink_.Count(Event::kFresh), 1U);
  EXPECT_FALSE(memory_->OpenForHolder(BlockId(2), Access::kReadWrite).ok());
  EXPECT_FALSE(sink_.WaitFor(Event::kFresh, 2, absl::Milliseconds(50)));
  EXPECT_EQ(MemfdMaps(), full);
  hoard.clear();
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh, 3));
  EXPECT_TRUE(sink_.WaitFor(Event::kFreed, 3));
  EXPECT_TRUE(Eventually([&] { return Reserve() == 1 && MemfdMaps() == full; }));
}

TEST_P(Reclaim, RecyclingIsToldBeforeFree) {
  Boot(4, 0);
  for (int round = 1; round <= 10; ++round) {
    for (uint32_t block = 0; block < 4; ++block) Order(block, true);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, static_cast<size_t>(round) * 4));
  }
  std::map<uint32_t, int> open;
  for (const Seen& seen : sink_.All()) {
    int& recycling = open[seen.block.value()];
    recycling += seen.event == Event::kRecycling ? 1 : -1;
    ASSERT_TRUE(recycling == 0 || recycling == 1);
  }
}

TEST_P(Reclaim, OrdersBeforeStartAreWorkedOffThen) {
  fds_ = OpenFds();
  absl::StatusOr<std::unique_ptr<Memory>> made =
      CreateHostMemory({SmallPool("p", GetParam(), 2, 1)}, nullptr, RealDeps());
  ASSERT_TRUE(made.ok()) << made.status();
  memory_ = std::move(*made);
  Order(0);
  Order(1);
  EXPECT_TRUE(sink_.All().empty());
  memory_->Start(&sink_);
  EXPECT_TRUE(sink_.WaitFor(Event::kFree, 2));
}

TEST_P(Reclaim, UntrustedKernelMeansFreshBackingAlwaysAndSaysWhy) {
  HostMemoryDeps deps = RealDeps();
  deps.distrust = "F_SETLEASE is blind here";
  Boot(2, 1, deps);
  EXPECT_EQ(memory_->ReuseTest(), "F_SETLEASE is blind here");
  for (size_t round = 1; round <= 3; ++round) {
    Write(0, 'a');
    Order(0);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, round));
    EXPECT_EQ(FirstByte(0), 0);
  }
  EXPECT_EQ(sink_.Count(Event::kFree), 0U);
}

TEST_P(Reclaim, BlocksAreNumberedThroughThePools) {
  BootWith({SmallPool("a", GetParam(), 2, 1), SmallPool("b", GetParam(), 3, 1)});
  Order(4);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(sink_.All()[0].block, BlockId(4));
  EXPECT_TRUE(memory_->OpenForHolder(BlockId(4), Access::kReadOnly).ok());
  EXPECT_FALSE(memory_->OpenForHolder(BlockId(5), Access::kReadOnly).ok());
}

TEST_P(Reclaim, ManyThreadsOpenAndReclaimWithoutAFalseAnswer) {
  Boot(4, 2);
  std::vector<std::thread> threads;
  for (uint32_t block = 0; block < 4; ++block) {
    threads.emplace_back([&, block] {
      RecordingSink unused;
      for (int i = 0; i < 200; ++i) {
        ub::UniqueFd fd = Open(block);
        ASSERT_TRUE(fd.valid());
        fd.reset();
        Order(block);
        // Nobody else orders this block, so its own events count.
        ASSERT_TRUE(Eventually([&] {
          size_t free = 0;
          for (const Seen& seen : sink_.All()) free += seen.block == BlockId(block) ? 1 : 0;
          return free == static_cast<size_t>(i) + 1;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sink_.Count(Event::kFree), 800U) << "a block that nobody held was taken for held";
}

INSTANTIATE_TEST_SUITE_P(Pages, Reclaim, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
